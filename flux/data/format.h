// The formats of data, each a row of one table: what its options must be, and how its files are cut
// and opened. Internal to data/.
//
// A format is added by a row here and the file with its functions.
// Pure functions over checked options; safe from any thread.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <string>

#include "flux/data/block_readers.h"
#include "flux/data/dataset.h"

namespace flux {

struct DataFormat {
  const char* name;
  Status (*check)(const DataOptions& options);
  // Of a format with a record in each line; null for others, which have what is below.
  Result<std::unique_ptr<const BlockFormat>> (*lines)(const DataOptions& options);
  Result<Geometry> (*scan)(std::span<const std::string> files, const DataOptions& options,
                           const std::atomic<bool>* stop);
  Result<std::unique_ptr<Dataset>> (*open)(const Geometry& geometry, const DataOptions& options);
};

// Null: there is no such format.
const DataFormat* find_format(const std::string& name);

}  // namespace flux
