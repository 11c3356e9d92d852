// ModelShape: how large the parts of a model are, which both ends of the data path must agree on,
// and how the flat dense vector is cut into dense shards. Values; pure; no failure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "flux/protocol/shard_replica.h"

namespace flux {

// Dense shards for a vector of this size: ranges of at least 16 Ki floats, at most 8 of them.
uint32_t dense_shard_count(uint64_t parameters);

struct ModelShape {
  uint32_t sparse_shards = 0;
  std::vector<uint32_t> dims;  // floats per row, by table
  uint64_t parameters = 0;     // floats in the flat dense vector

  uint32_t dense_shards() const { return dense_shard_count(parameters); }
  uint32_t all_shards() const { return sparse_shards + dense_shards(); }
  // Where dense shard `d` (counted from 0) begins in the flat vector; d may be dense_shards().
  uint64_t dense_begin(uint32_t d) const;
  uint64_t dense_size(uint32_t d) const { return dense_begin(d + 1) - dense_begin(d); }
  bool operator==(const ModelShape&) const = default;
};

std::string to_string(const ModelShape& shape);  // "8 shards, tables of 4 and 1, 40000 parameters"

}  // namespace flux
