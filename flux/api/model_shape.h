// ModelShape: how large the parts of a model are, which both ends of the data path must agree on,
// sent with every pull and push so that a difference is seen. Values; pure; no failure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "flux/api/dense_shards.h"

namespace flux {

struct ModelShape {
  uint32_t sparse_shards = 0;
  std::vector<uint32_t> dims;  // floats per row, by table
  uint64_t parameters = 0;     // floats in the flat dense vector

  uint32_t dense_shards() const { return dense_shard_count(parameters); }
  uint32_t all_shards() const { return sparse_shards + dense_shards(); }
  // Where dense shard `d` (counted from 0) begins in the flat vector; d may be dense_shards().
  uint64_t dense_begin(uint32_t d) const { return dense_shard_begin(parameters, d); }
  uint64_t dense_size(uint32_t d) const { return dense_begin(d + 1) - dense_begin(d); }
  bool operator==(const ModelShape&) const = default;
};

std::string to_string(const ModelShape& shape);  // "8 shards, tables of 4 and 1, 40000 parameters"

}  // namespace flux
