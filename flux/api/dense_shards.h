// How the flat dense vector is cut into shards: ranges of at least 16 Ki floats, at most 64 of
// them: so many threads of one process may update it at a time. Clients, servers and encodings must
// agree on it; it is part of the checkpoint format. Pure.
#pragma once

#include <algorithm>
#include <cstdint>

namespace flux {

// Dense shards for a vector of this size.
constexpr uint32_t dense_shard_count(uint64_t parameters) {
  constexpr uint64_t kFloatsMin = 16384;
  constexpr uint64_t kShardsMax = 64;
  const uint64_t wanted = parameters / kFloatsMin + (parameters % kFloatsMin != 0 ? 1 : 0);
  return static_cast<uint32_t>(std::min(wanted, kShardsMax));
}

// Dense shard `d` is [dense_shard_begin(parameters, d), dense_shard_begin(parameters, d + 1)).
constexpr uint64_t dense_shard_begin(uint64_t parameters, uint32_t d) {
  const uint32_t shards = dense_shard_count(parameters);
  return shards == 0 ? 0 : parameters * d / shards;
}

}  // namespace flux
