// Block files as a Dataset. Internal to data/; see dataset.h there for threads and failures.
// A file that the job does not fit is refused before anything is read.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "flux/data/dataset.h"

namespace flux {

// No reading pass is needed: the index says how many records there are.
Result<Geometry> scan_block_files(std::span<const std::string> files, const DataOptions& options,
                                  const std::atomic<bool>* stop);
// The chunks of one file that hold its first records, a block each.
Result<std::vector<DataBlock>> first_chunks(const std::string& file, uint64_t records);
Result<std::unique_ptr<Dataset>> open_block_files(const Geometry& geometry,
                                                  const DataOptions& options);

}  // namespace flux
