// For tests of the server's service only: a small model, its server, batches made from a seed with
// their gradients, and a place for pulled rows. Values; nothing here is linked into the binary.
#pragma once

#include <algorithm>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "flux/api/model_shape.h"
#include "flux/base/hash.h"
#include "flux/base/key.h"
#include "flux/base/random.h"
#include "flux/server/job_namespace.h"
#include "flux/server/server.h"

namespace flux::test {

constexpr uint64_t kLife = 11, kGeometry = 22;
constexpr uint32_t kShards = 8;
inline const ModelShape kShape{kShards, {4, 1}, 40000};

inline ServerOptions options_of(const OpenJob& job) {
  ServerOptions o;
  o.shards = kShards;
  o.tables.resize(2);
  o.tables[0].dim = 4;
  o.tables[1].name = "wide";
  o.tables[1].dim = 1;
  o.tables[1].optimizer = {.rule = "sgd", .lr = 0.5F};
  o.dense_optimizer = {.rule = "adam", .lr = 0.01F};
  o.parameters = kShape.parameters;
  o.incarnation = job.incarnation;
  o.places = job.places;
  o.self = job.self;
  return o;
}
inline Result<std::shared_ptr<Server>> make_server(const OpenJob& job) {
  if (job.name == "broken") return invalid("this job cannot be built");
  FLUX_ASSIGN_OR_RETURN(auto server, Server::create(options_of(job)));
  std::vector<float> initial(kShape.parameters);
  for (size_t i = 0; i < initial.size(); ++i) initial[i] = hash_uniform(i, 1, 2);
  server->init_dense(initial);
  return server;
}
inline std::vector<ShardId> every_shard() {
  std::vector<ShardId> all(kShape.all_shards());
  std::iota(all.begin(), all.end(), 0U);
  return all;
}
// These shards, primary, without a backup.
inline Assignments alone(const std::vector<ShardId>& shards, ShardEpoch epoch = {1, 1}) {
  Assignments places;
  for (const ShardId id : shards)
    places.shards.push_back({id, epoch, ReplicaRole::kPrimary, kNoServer, kAnyOp});
  return places;
}

struct BatchData {
  std::vector<uint64_t> keys;
  std::vector<uint32_t> begin{0}, counts;
  std::vector<float> wide, narrow, dense;
  std::vector<const float*> gradients;
  std::vector<ShardId> shards;
  std::vector<ShardEpoch> epochs;
  PushRequest push;

  BatchData(uint64_t seed, uint32_t number, std::vector<ShardId> to = every_shard())
      : shards(std::move(to)), epochs(shards.size(), {1, 1}) {
    Random random(seed);
    std::vector<std::vector<uint64_t>> by_shard(kShards);
    for (int i = 0; i < 200; ++i) {
      const uint64_t key = random.below(2000);
      auto& part = by_shard[shard_of(key, kShards)];
      if (std::find(part.begin(), part.end(), key) == part.end()) part.push_back(key);
    }
    by_shard[5].clear();  // a shard that gets no rows
    for (const auto& part : by_shard) {
      keys.insert(keys.end(), part.begin(), part.end());
      begin.push_back(static_cast<uint32_t>(keys.size()));
    }
    const auto numbers = [&](size_t size) {
      std::vector<float> out(size);
      for (float& x : out) x = static_cast<float>(random.normal());
      return out;
    };
    counts.assign(keys.size(), 2);
    wide = numbers(keys.size() * 4);
    narrow = numbers(keys.size());
    dense = numbers(kShape.parameters);
    gradients = {wide.data(), narrow.data()};
    const BatchId id{{0, 0, 0, number / 4}, static_cast<uint8_t>(number % 4), 4};
    push.claim = {kLife, kGeometry, {id}, Verdict::kApplied};
    push.shards = shards;
    push.epochs = epochs;
    push.keys = {keys.data(), begin.data()};
    push.counts = counts.data();
    push.tables = gradients;
    push.dense = dense.data();
    push.examples = 10;
  }
  BatchData(const BatchData&) = delete;
};

struct Rows {
  std::vector<float> wide, narrow, dense;
  std::vector<float*> tables;
  PullRequest pull;
  explicit Rows(const BatchData& data)
      : wide(data.wide.size(), -7), narrow(data.narrow.size(), -7), dense(kShape.parameters, -7) {
    tables = {wide.data(), narrow.data()};
    pull = {kLife, data.shards, data.push.keys, tables, dense.data(), {}};
  }
  Rows(const Rows&) = delete;
};

}  // namespace flux::test
