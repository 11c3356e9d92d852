// For tests of api/ only: a batch with gradients for a small model, and memory as a receiver has
// it.
#pragma once

#include <cstring>
#include <numeric>
#include <span>
#include <vector>

#include "flux/api/model_shape.h"
#include "flux/api/server.h"
#include "flux/base/buffer.h"
#include "flux/base/key.h"
#include "flux/base/random.h"

namespace flux::test {

constexpr uint64_t kLife = 0x1122334455667788ULL;
constexpr uint32_t kShards = 8;
inline const ModelShape kShape{kShards, {4, 1}, 40000};  // three dense shards: 8, 9, 10

// A batch with its gradients, made from a seed; keys of a shard are adjacent.
struct BatchData {
  std::vector<uint64_t> keys;
  std::vector<uint32_t> begin{0}, counts;
  std::vector<float> wide, narrow, dense;
  std::vector<const float*> gradients;
  std::vector<ShardEpoch> epochs;
  PushRequest push;

  BatchData(uint64_t seed, size_t n, const std::vector<ShardId>& shards) {
    Random random(seed);
    std::vector<std::vector<uint64_t>> by_shard(kShards);
    for (size_t i = 0; i < n; ++i) {
      const uint64_t key = random.next();
      by_shard[shard_of(key, kShards)].push_back(key);
    }
    for (const auto& part : by_shard) {
      keys.insert(keys.end(), part.begin(), part.end());
      begin.push_back(static_cast<uint32_t>(keys.size()));
    }
    const auto numbers = [&](size_t size) {
      std::vector<float> out(size);
      for (float& x : out) x = static_cast<float>(random.normal());
      return out;
    };
    for (size_t i = 0; i < keys.size(); ++i) counts.push_back(static_cast<uint32_t>(i % 7 + 1));
    wide = numbers(keys.size() * 4);
    narrow = numbers(keys.size());
    dense = numbers(kShape.parameters);
    gradients = {wide.data(), narrow.data()};
    epochs.assign(shards.size(), {1, 1});
    push.claim = {kLife, 77, {{{0, 0, 0, 3}, 1, 4}}, Verdict::kApplied};
    push.shards = shards;
    push.epochs = epochs;
    push.keys = {keys.data(), begin.data()};
    push.counts = counts.data();
    push.tables = gradients;
    push.dense = dense.data();
    push.examples = 100;
  }
  BatchData(const BatchData&) = delete;
};

inline std::vector<ShardId> every_shard() {
  std::vector<ShardId> all(kShape.all_shards());
  std::iota(all.begin(), all.end(), 0U);
  return all;
}

// What a receiver gets: one piece of aligned memory.
inline Buffer<std::byte> gathered(const std::vector<std::span<const std::byte>>& spans) {
  size_t bytes = 0;
  for (const auto& span : spans) bytes += span.size();
  Buffer<std::byte> out(bytes);
  size_t at = 0;
  for (const auto& span : spans) {
    std::memcpy(out.data() + at, span.data(), span.size());
    at += span.size();
  }
  return out;
}
inline bool lies_in(const void* p, const Buffer<std::byte>& memory) {
  const auto* b = static_cast<const std::byte*>(p);
  return b >= memory.data() && b <= memory.data() + memory.size();
}
inline const ModelShape* shape_of_life(uint64_t incarnation) {
  return incarnation == kLife ? &kShape : nullptr;
}

}  // namespace flux::test
