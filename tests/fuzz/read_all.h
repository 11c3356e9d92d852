// read_all: every record of a file, as a job with these options reads it: it ends, in batches that
// are whole or in a Status that names the file. Included by the fuzz targets of files.
// Ends the program where that does not hold.
#pragma once

#include <string>

#include "flux/data/dataset.h"

namespace flux {

inline void expect_whole(const Batch& batch) {
  if (batch.begin.empty()) {
    if (batch.keys.size() != size_t{batch.size} * batch.slots) __builtin_trap();
    return;
  }
  if (batch.begin.size() != size_t{batch.size} * batch.slots + 1) __builtin_trap();
  for (size_t i = 1; i < batch.begin.size(); ++i)
    if (batch.begin[i] < batch.begin[i - 1]) __builtin_trap();
  if (batch.begin.back() != batch.keys.size()) __builtin_trap();
}

inline void expect_named(const Status& refused, const std::string& path) {
  if (refused.message().find(path) == std::string::npos) __builtin_trap();
}

// Calls look(batch) for each batch that can be read. False: the file or a record was refused.
template <typename Look>
bool read_all(const std::string& path, const DataOptions& options, const Look& look) {
  constexpr uint32_t kBlocksMax = 64;
  const auto geometry = Dataset::scan({&path, 1}, options, 1);
  if (!geometry.is_ok()) return false;
  const auto opened = Dataset::open(geometry.value(), options);
  if (!opened.is_ok()) return false;
  bool all = true;
  Batch batch;
  for (uint32_t b = 0; b < geometry.value().blocks.size() && b < kBlocksMax; ++b) {
    const auto block = opened.value()->open_block(b, 0);
    if (!block.is_ok()) expect_named(block.status(), path);
    all = all && block.is_ok();
    for (uint32_t j = 0; block.is_ok() && j < geometry.value().batches_in(b); ++j) {
      const Status read = block.value()->read_batch(j, &batch);
      all = all && read.is_ok();
      if (!read.is_ok()) {
        expect_named(read, path);
        continue;
      }
      expect_whole(batch);
      look(batch);
    }
  }
  return all;
}

}  // namespace flux
