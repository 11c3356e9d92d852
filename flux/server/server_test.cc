// The server through its ports against plain references: the reference table, the scalar optimizer.
#include "flux/server/server.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <numeric>
#include <thread>

#include <gtest/gtest.h>

#include "flux/base/key.h"
#include "flux/base/random.h"
#include "flux/checkpoint/store.h"
#include "flux/optimizer/reference.h"
#include "flux/table/reference_table.h"

namespace flux {
namespace {

constexpr uint64_t kLife = 11, kGeometry = 22;
constexpr uint32_t kShards = 8, kDim = 4;
constexpr uint64_t kParameters = 40000;  // three dense shards

ServerOptions options() {
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

std::unique_ptr<Server> make_server(const ServerOptions& o = options()) {
  auto server = Server::create(o);
  EXPECT_TRUE(server.is_ok()) << server.status().message();
  EXPECT_TRUE(server.value()->open_pass(0, kGeometry).is_ok());
  return std::move(server).value();
}

// A batch of distinct keys grouped by shard, with gradients; made from a seed.
struct Push {
  std::vector<uint64_t> keys;
  std::vector<uint32_t> begin, counts;
  std::vector<float> wide, narrow, dense;
  std::vector<const float*> tables;
  std::vector<ShardId> shards;
  std::vector<ShardEpoch> epochs;
  PushRequest request;

  Push(uint64_t seed, BatchId id, size_t key_count, const Server& server) {
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
    dense = gradient(kParameters);
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
  Push(const Push&) = delete;
};

std::vector<Answer> send(Server* server, const PushRequest& request) {
  std::vector<Answer> answers;
  server->push(request, [&](const PushReply& reply) {
    for (const ShardAnswer& a : reply.answers) answers.push_back(a.answer);
  });
  return answers;
}
bool all_are(const std::vector<Answer>& answers, size_t n, Answer answer) {
  return answers.size() == n &&
         std::all_of(answers.begin(), answers.end(), [&](Answer a) { return a == answer; });
}

BatchId batch(uint32_t i) {
  return {{0, 0, 0, i / 4}, static_cast<uint8_t>(i % 4), 4};
}

TEST(Server, EqualsTheReferenceBitForBit) {
  auto server = make_server();
  ReferenceTable wide(options().tables[0]), narrow(options().tables[1]);
  const auto rule = make_reference_optimizer(options().dense_optimizer);
  std::vector<float> initial(kParameters);
  for (size_t i = 0; i < kParameters; ++i) initial[i] = hash_uniform(i, 1, 2);
  server->init_dense(initial);
  // The reference keeps one vector per range, as the rule's state has one step count per vector.
  const uint32_t parts = dense_shard_count(kParameters);
  ASSERT_EQ(parts, 3U);
  std::vector<std::vector<float>> weights(parts), states(parts);
  std::vector<size_t> at;
  for (uint32_t d = 0; d <= parts; ++d) at.push_back(kParameters * d / parts);
  for (uint32_t d = 0; d < parts; ++d) {
    weights[d].assign(initial.begin() + long(at[d]), initial.begin() + long(at[d + 1]));
    states[d].resize(rule->state_size(weights[d].size()));
    rule->init_state(states[d].data(), weights[d].size());
  }
  uint64_t occurrences = 0;
  for (uint32_t i = 0; i < 12; ++i) {
    const Push push(i, batch(i), 200, *server);
    ASSERT_TRUE(all_are(send(server.get(), push.request), server->shard_count(), Answer::kApplied));
    wide.push(push.keys, push.wide.data(), push.counts.data());
    narrow.push(push.keys, push.narrow.data(), push.counts.data());
    occurrences += std::accumulate(push.counts.begin(), push.counts.end(), 0ULL);
    for (uint32_t d = 0; d < parts; ++d)
      rule->update(weights[d].data(), states[d].data(), push.dense.data() + at[d],
                   weights[d].size());
  }
  const Push all(3, batch(0), 900, *server);  // only for its keys
  std::vector<float> got_wide(all.wide.size()), got_narrow(all.narrow.size()),
      want(all.wide.size());
  std::vector<float> dense(kParameters);
  std::vector<float*> out = {got_wide.data(), got_narrow.data()};
  PullRequest pull{kLife, all.shards, all.request.keys, out, dense.data()};
  Status status(Code::kIo, "not called");
  server->pull(pull, [&](const PullReply& reply) { status = reply.status; });
  ASSERT_TRUE(status.is_ok());
  wide.pull(all.keys, want.data());
  EXPECT_EQ(got_wide, want);
  want.resize(got_narrow.size());
  narrow.pull(all.keys, want.data());
  EXPECT_EQ(got_narrow, want);
  for (uint32_t d = 0; d < parts; ++d)
    EXPECT_TRUE(std::equal(weights[d].begin(), weights[d].end(), dense.begin() + long(at[d])));
  const ServerTotals totals = server->totals();
  EXPECT_EQ(totals.occurrences[0], occurrences);
  EXPECT_EQ(totals.rows, wide.rows().size() + narrow.rows().size());
  EXPECT_EQ(totals.dense_examples_min, 120U);
  EXPECT_EQ(totals.dense_examples_max, 120U);
  uint64_t counted = 0;
  server->for_each_row([&](Key key, uint32_t count) {
    counted += count;
    EXPECT_EQ(count, wide.rows().at(key).count);
  });
  EXPECT_EQ(counted, occurrences);
}

TEST(Server, DuplicatesAndStalePushesChangeNothing) {
  auto server = make_server();
  const Push first(1, batch(0), 100, *server);
  send(server.get(), first.request);
  const uint64_t before = server->content_hash();
  EXPECT_NE(before, make_server()->content_hash());
  const size_t n = server->shard_count();
  EXPECT_TRUE(all_are(send(server.get(), first.request), n, Answer::kDuplicate));
  const Push other(2, batch(0), 50, *server);  // other rows under the same name
  EXPECT_TRUE(all_are(send(server.get(), other.request), n, Answer::kDuplicate));
  Push stale(3, batch(1), 50, *server);
  stale.request.claim.incarnation = kLife + 1;
  EXPECT_TRUE(all_are(send(server.get(), stale.request), n, Answer::kStaleIncarnation));
  stale.request.claim.incarnation = kLife;
  stale.request.claim.geometry = 1;
  EXPECT_TRUE(all_are(send(server.get(), stale.request), n, Answer::kStaleGeometry));
  stale.request.claim.geometry = kGeometry;
  stale.epochs[2] = {9, 9};
  const auto mixed = send(server.get(), stale.request);
  EXPECT_EQ(mixed[2], Answer::kStaleEpoch);
  EXPECT_EQ(mixed[3], Answer::kApplied);
  EXPECT_EQ(server->marked_by_all({0, 0, 0, 0}, 2), (std::vector<uint32_t>{0b01, 0}));
  EXPECT_EQ(server->marked_by_any({0, 0, 0, 0}, 2), (std::vector<uint32_t>{0b11, 0}));
  float row[kDim];
  std::vector<float*> out = {row, row};
  Status status;
  server->pull({kLife + 1, stale.shards, stale.request.keys, out, nullptr},
               [&](const PullReply& reply) { status = reply.status; });
  EXPECT_EQ(status.code(), Code::kStale);
}

TEST(Server, AVerdictOtherThanAppliedMarksWithoutRows) {
  auto server = make_server();
  const uint64_t before = server->content_hash();
  Push push(1, batch(0), 100, *server);
  push.request.claim.verdict = Verdict::kSkipped;
  EXPECT_TRUE(all_are(send(server.get(), push.request), server->shard_count(), Answer::kApplied));
  EXPECT_EQ(server->content_hash(), before);
  EXPECT_EQ(server->marked_by_all({0, 0, 0, 0}, 1), std::vector<uint32_t>{1});
}

class SavedServer : public testing::Test {
 protected:
  SavedServer() {
    std::string name = testing::TempDir() + "flux_server_XXXXXX";
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
    for (uint32_t i = 0; i < 6; ++i) {
      const Push push(i, batch(i), 300, *server_);
      send(server_.get(), push.request);
    }
    const CheckpointStore store(folder_);
    manifest_.number = store.begin().value();
    const auto saved = server_->save(folder_, manifest_.number);
    EXPECT_TRUE(saved.is_ok());
    for (const SavedShard& s : saved.value())
      manifest_.shards.push_back({{s.name, s.bytes, s.hash}, s.op, s.stream_hash, s.rows});
  }
  ~SavedServer() override { std::filesystem::remove_all(folder_); }
  Status load_all(Server* server) const {
    for (size_t s = 0; s < manifest_.shards.size(); ++s) {
      auto image = CheckpointStore(folder_).read_shard(manifest_, s);
      EXPECT_TRUE(image.is_ok()) << image.status().message();
      FLUX_RETURN_IF_ERROR(server->load(image.value()));
    }
    return Status::ok();
  }

  std::unique_ptr<Server> server_ = make_server();
  std::string folder_;
  Manifest manifest_;
};

TEST_F(SavedServer, LoadsIntoASecondLife) {
  ServerOptions o = options();
  o.incarnation = kLife + 1;
  o.epoch = {2, 0};
  auto second = std::move(Server::create(o)).value();
  ASSERT_TRUE(load_all(second.get()).is_ok());
  EXPECT_EQ(second->content_hash(), server_->content_hash());
  EXPECT_EQ(second->marked_by_all({0, 0, 0, 0}, 2), (std::vector<uint32_t>{~0U, 0b11}));
  EXPECT_EQ(second->totals().occurrences, server_->totals().occurrences);
  EXPECT_EQ(second->totals().dense_examples_min, 60U);
  // What the first life still sends is refused; what it had is known.
  Push late(9, batch(7), 50, *second);
  const size_t n = second->shard_count();
  EXPECT_TRUE(all_are(send(second.get(), late.request), n, Answer::kStaleIncarnation));
  Push again(5, batch(5), 300, *second);
  again.request.claim.incarnation = kLife + 1;
  EXPECT_TRUE(all_are(send(second.get(), again.request), n, Answer::kDuplicate));
  EXPECT_EQ(second->content_hash(), server_->content_hash());
  // And both lives go on alike.
  Push here(8, batch(6), 70, *server_), there(8, batch(6), 70, *second);
  there.request.claim.incarnation = kLife + 1;
  EXPECT_TRUE(all_are(send(server_.get(), here.request), n, Answer::kApplied));
  EXPECT_TRUE(all_are(send(second.get(), there.request), n, Answer::kApplied));
  EXPECT_EQ(second->content_hash(), server_->content_hash());
}

TEST_F(SavedServer, RefusesAnotherModel) {
  const auto refused = [&](const std::function<void(ServerOptions*)>& change) {
    ServerOptions o = options();
    change(&o);
    auto server = std::move(Server::create(o)).value();
    return load_all(server.get()).code();
  };
  EXPECT_EQ(refused([](ServerOptions*) {}), Code::kOk);
  EXPECT_EQ(refused([](ServerOptions* o) { o->shards = 9; }), Code::kCorrupt);
  EXPECT_EQ(refused([](ServerOptions* o) { o->tables[0].dim = 5; }), Code::kCorrupt);
  EXPECT_EQ(refused([](ServerOptions* o) { o->tables[1].name = "other"; }), Code::kCorrupt);
  EXPECT_EQ(refused([](ServerOptions* o) { o->tables.pop_back(); }), Code::kCorrupt);
  EXPECT_EQ(refused([](ServerOptions* o) { o->tables[0].optimizer.rule = "adam"; }),
            Code::kCorrupt);
  EXPECT_EQ(refused([](ServerOptions* o) { o->dense_optimizer.rule = "sgd"; }), Code::kCorrupt);
  EXPECT_EQ(refused([](ServerOptions* o) { o->parameters += 1; }), Code::kCorrupt);
  EXPECT_EQ(refused([](ServerOptions* o) { o->parameters = 1; }), Code::kCorrupt);
}

// Every batch is pushed by two of four threads; each row must count it once.
TEST(Server, ConcurrentPushesCountExactly) {
  ServerOptions o = options();
  o.parameters = 100;
  auto server = make_server(o);
  constexpr uint32_t kBatches = 120;
  std::vector<std::unique_ptr<Push>> pushes;
  uint64_t occurrences = 0;
  for (uint32_t i = 0; i < kBatches; ++i) {
    pushes.push_back(std::make_unique<Push>(i, batch(i), 60, *server));
    const auto& counts = pushes.back()->counts;
    occurrences += std::accumulate(counts.begin(), counts.end(), 0ULL);
  }
  std::vector<std::vector<Answer>> answers(4);
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (uint32_t i = 0; i < kBatches; ++i) {
        if (i % 4 != t && (i + 1) % 4 != t) continue;
        const auto some = send(server.get(), pushes[i]->request);
        answers[t].insert(answers[t].end(), some.begin(), some.end());
        (void)server->marked_by_all({0, 0, 0, 0}, 30);
        (void)server->totals();
      }
    });
  for (std::thread& thread : threads) thread.join();
  size_t applied = 0, duplicate = 0;
  for (const auto& some : answers)
    for (const Answer a : some) {
      applied += a == Answer::kApplied ? 1 : 0;
      duplicate += a == Answer::kDuplicate ? 1 : 0;
    }
  EXPECT_EQ(applied, kBatches * size_t{server->shard_count()});
  EXPECT_EQ(duplicate, applied);
  EXPECT_EQ(server->totals().occurrences[0], occurrences);
  EXPECT_EQ(server->totals().dense_examples_min, kBatches * 10U);
  EXPECT_EQ(server->totals().dense_examples_max, kBatches * 10U);
  EXPECT_EQ(server->marked_by_all({0, 0, 0, 0}, 30), std::vector<uint32_t>(30, ~0U));
}

TEST(Server, OptionsOutOfRangeAreRefused) {
  ServerOptions o = options();
  o.shards = 0;
  EXPECT_EQ(Server::create(o).status().code(), Code::kInvalid);
  o = options();
  o.tables[0].optimizer.rule = "newton";
  EXPECT_EQ(Server::create(o).status().code(), Code::kInvalid);
  EXPECT_EQ(dense_shard_count(0), 0U);
  EXPECT_EQ(dense_shard_count(1), 1U);
  EXPECT_EQ(dense_shard_count(16384), 1U);
  EXPECT_EQ(dense_shard_count(16385), 2U);
  EXPECT_EQ(dense_shard_count(1ULL << 40), 8U);
}

}  // namespace
}  // namespace flux
