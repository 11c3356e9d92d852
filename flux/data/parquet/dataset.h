// Parquet files as a Dataset. Internal to data/; see dataset.h there.
//
// Blocks are cut by row number, like lines of text, so that a file has the same blocks and batches
// in every format. A row group can only be read from its begin; where it is larger than some
// blocks, the file's blocks are leased in order and read by a cursor that stays where the last read
// ended.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <string>

#include "flux/data/dataset.h"

namespace flux {

// No reading pass is needed: the footer says how many rows there are.
Result<Geometry> scan_parquet_files(std::span<const std::string> files, const DataOptions& options,
                                    const std::atomic<bool>* stop);
Result<std::unique_ptr<Dataset>> open_parquet_files(const Geometry& geometry,
                                                    const DataOptions& options);

}  // namespace flux
