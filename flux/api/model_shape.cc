#include "flux/api/model_shape.h"

#include <algorithm>

#include <fmt/core.h>

namespace flux {
namespace {
constexpr uint64_t kDenseShardFloatsMin = 16384;
constexpr uint32_t kDenseShardsMax = 8;
}  // namespace

uint32_t dense_shard_count(uint64_t parameters) {
  const uint64_t wanted =
      parameters / kDenseShardFloatsMin + (parameters % kDenseShardFloatsMin != 0 ? 1 : 0);
  return static_cast<uint32_t>(std::min<uint64_t>(wanted, kDenseShardsMax));
}

uint64_t ModelShape::dense_begin(uint32_t d) const {
  const uint32_t n = dense_shards();
  return n == 0 ? 0 : parameters * d / n;
}

std::string to_string(const ModelShape& shape) {
  std::string dims;
  for (const uint32_t dim : shape.dims) dims += fmt::format("{}{}", dims.empty() ? "" : ",", dim);
  return fmt::format("{} shards, rows of [{}] floats, {} dense parameters", shape.sparse_shards,
                     dims, shape.parameters);
}

}  // namespace flux
