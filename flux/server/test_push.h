// A small model and its pushes, for the tests of this folder: two tables, three dense shards,
// gradients made from a seed. Included by tests only.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <numeric>
#include <string>
#include <vector>

#include "flux/base/check.h"
#include "flux/base/key.h"
#include "flux/base/random.h"
#include "flux/server/server.h"

namespace flux {

constexpr uint64_t kLife = 11, kGeometry = 22;
constexpr uint32_t kShards = 8, kDim = 4;
constexpr uint64_t kParameters = 40000;  // three dense shards

inline ServerOptions test_options() {
  ServerOptions o;
  o.shards = kShards;
  o.tables.resize(2);
  o.tables[0].dim = kDim;
  o.tables[1].name = "wide";
  o.tables[1].dim = 1;
  o.tables[1].init = "zero";
  o.tables[1].optimizer = {.rule = "sgd", .lr = 0.5F};
  o.dense_optimizer = {.rule = "adam", .lr = 0.01F};
  o.parameters = kParameters;
  o.incarnation = kLife;
  o.epoch = {1, 1};
  return o;
}

// These shards, primary, without a backup.
inline Assignments alone(const std::vector<ShardId>& shards, ShardEpoch epoch = {1, 1}) {
  Assignments places;
  for (const ShardId id : shards)
    places.shards.push_back({id, epoch, ReplicaRole::kPrimary, kNoServer, kAnyOp});
  return places;
}

// The coordinator's verbs of a server without backups, for all its primaries: answered at once.
inline Status open_pass(Server* server, uint32_t pass, uint64_t geometry) {
  Status status(Code::kIo, "not answered");
  server->open_pass(server->primaries(), pass, geometry, [&](const Status& s) { status = s; });
  return status;
}
inline Status close_below(Server* server, uint32_t pass) {
  Status status(Code::kIo, "not answered");
  server->close_below(server->primaries(), pass, [&](const Status& s) { status = s; });
  return status;
}
inline Status mark(Server* server, uint64_t geometry, const std::vector<BatchId>& ids, Verdict v) {
  Status status(Code::kIo, "not answered");
  server->mark(server->primaries(), geometry, ids, v, [&](const Status& s) { status = s; });
  return status;
}
inline std::vector<uint32_t> marked(const Server& server, const BlockId& section, uint32_t blocks,
                                    bool any = false) {
  return server.marked(server.primaries(), section, blocks, any).value();
}
inline Status void_member(Server* server, uint64_t round, const BlockId& block) {
  return server->void_member(server->primaries(), round, block);
}
// Every shard that `call` names, to a server; answered when all are, with a failure if there was
// one.
inline void copy_all(Server* server, const AdminCall& call, ServerId target,
                     const std::string& address, const std::function<void(const Status&)>& done) {
  struct Answers {
    std::mutex mutex;
    size_t left = 0;
    Status failure;
  };
  const auto answers = std::make_shared<Answers>();
  answers->left = call.shards.size();
  for (size_t i = 0; i < call.shards.size(); ++i) {
    const AdminCall one{call.incarnation, call.term, {call.shards[i]}, {call.epochs[i]}};
    server->copy(one, target, address, [answers, done](const Result<std::vector<ShardState>>& r) {
      Status failure;
      {
        const std::lock_guard lock(answers->mutex);
        if (!r.is_ok()) answers->failure = r.status();
        if (--answers->left > 0) return;
        failure = answers->failure;
      }
      done(failure);
    });
  }
}

// With pass 0 open.
inline std::shared_ptr<Server> make_test_server(const ServerOptions& o = test_options()) {
  auto server = Server::create(o);
  FLUX_CHECK(server.is_ok(), "{}", server.status().message());
  FLUX_CHECK(open_pass(server.value().get(), 0, kGeometry).is_ok(), "a new pass opens");
  return std::move(server).value();
}

// A batch of distinct keys grouped by shard, with gradients; made from a seed.
struct TestPush {
  std::vector<uint64_t> keys;
  std::vector<uint32_t> begin, counts;
  std::vector<float> wide, narrow, dense;
  std::vector<const float*> tables;
  std::vector<ShardId> shards;
  std::vector<ShardEpoch> epochs;
  PushRequest request;

  TestPush(uint64_t seed, BatchId id, size_t key_count, const Server& server) {
    Random random(seed);
    std::vector<std::vector<uint64_t>> by_shard(kShards);
    const uint64_t first = random.below(500);
    for (uint64_t key = first; key < first + key_count; ++key)
      by_shard[shard_of(key, kShards)].push_back(key);
    begin = {0};
    for (const auto& part : by_shard) {
      keys.insert(keys.end(), part.begin(), part.end());
      begin.push_back(static_cast<uint32_t>(keys.size()));
    }
    const auto gradient = [&](size_t n) {
      std::vector<float> out(n);
      for (float& g : out) g = static_cast<float>(random.uniform() - 0.5);
      return out;
    };
    for (size_t i = 0; i < keys.size(); ++i)
      counts.push_back(static_cast<uint32_t>(1 + random.below(9)));
    wide = gradient(keys.size() * kDim);
    narrow = gradient(keys.size());
    dense = gradient(server.options().parameters);
    tables = {wide.data(), narrow.data()};
    shards.resize(server.shard_count());
    std::iota(shards.begin(), shards.end(), 0U);
    epochs.assign(shards.size(), server.options().epoch);
    request.claim = {kLife, kGeometry, {id}, Verdict::kApplied};
    request.shards = shards;
    request.epochs = epochs;
    request.keys = {keys.data(), begin.data()};
    request.counts = counts.data();
    request.tables = tables;
    request.dense = dense.data();
    request.examples = 10;
  }
  TestPush(const TestPush&) = delete;
};

// For pushes that are answered at once.
inline std::vector<Answer> send_push(Server* server, const PushRequest& request) {
  std::vector<Answer> answers;
  server->push(request, [&](const PushReply& reply) {
    for (const ShardAnswer& a : reply.answers) answers.push_back(a.answer);
  });
  return answers;
}
inline bool all_are(const std::vector<Answer>& answers, size_t n, Answer answer) {
  return answers.size() == n &&
         std::all_of(answers.begin(), answers.end(), [&](Answer a) { return a == answer; });
}

// Batch i of blocks with four batches each.
inline BatchId test_batch(uint32_t i) {
  return {{0, 0, 0, i / 4}, static_cast<uint8_t>(i % 4), 4};
}

}  // namespace flux
