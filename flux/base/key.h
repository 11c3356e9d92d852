// Keys of sparse features and the shard each belongs to. Clients and tables must agree on this for
// ever: it is part of the checkpoint format. Pure.
#pragma once

#include <cstdint>

#include "flux/base/hash.h"

namespace flux {

using Key = uint64_t;

// Both the shard map and a shard's index draw from this hash: the shard uses its high half, the
// index its low half.
constexpr uint64_t key_hash(Key key) {
  return mix64(key);
}

constexpr uint32_t shard_of_hash(uint64_t hash, uint32_t shards) {
  return static_cast<uint32_t>(((hash >> 32) * shards) >> 32);
}
// Shard of a key among `shards` (1 to 65536).
constexpr uint32_t shard_of(Key key, uint32_t shards) {
  return shard_of_hash(key_hash(key), shards);
}

}  // namespace flux
