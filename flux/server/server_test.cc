// The server through its ports against plain references: the reference table, the scalar optimizer.
#include "flux/server/server.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <numeric>
#include <thread>

#include <gtest/gtest.h>

#include "flux/checkpoint/store.h"
#include "flux/optimizer/reference.h"
#include "flux/server/test_push.h"
#include "flux/table/reference_table.h"

namespace flux {
namespace {

TEST(Server, EqualsTheReferenceBitForBit) {
  auto server = make_test_server();
  ReferenceTable wide(test_options().tables[0]), narrow(test_options().tables[1]);
  const auto rule = make_reference_optimizer(test_options().dense_optimizer);
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
    TestPush push(i, test_batch(i), 200, *server);
    const float scale = i % 3 == 1 ? 1.5F : 1.0F;
    push.request.lr_scale = scale;
    ASSERT_TRUE(
        all_are(send_push(server.get(), push.request), server->shard_count(), Answer::kApplied));
    wide.push(push.keys, push.wide.data(), push.counts.data(), scale);
    narrow.push(push.keys, push.narrow.data(), push.counts.data(), scale);
    occurrences += std::accumulate(push.counts.begin(), push.counts.end(), 0ULL);
    for (uint32_t d = 0; d < parts; ++d)
      rule->update(weights[d].data(), states[d].data(), push.dense.data() + at[d],
                   weights[d].size(), scale);
  }
  const TestPush all(3, test_batch(0), 900, *server);  // only for its keys
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
  EXPECT_EQ(totals.dense.at(0).min, 120U);
  EXPECT_EQ(totals.dense.at(0).max, 120U);
  uint64_t counted = 0;
  server->for_each_row(server->primaries().shards, [&](Key key, uint32_t count) {
    counted += count;
    EXPECT_EQ(count, wide.rows().at(key).count);
  });
  EXPECT_EQ(counted, occurrences);
}

TEST(Server, AScaleThatIsNoneIsRefused) {
  auto server = make_test_server();
  const uint64_t before = server->content_hash();
  TestPush push(1, test_batch(0), 100, *server);
  for (const float bad : {0.0F, -1.0F, NAN, INFINITY, 2 * kLrScaleMax}) {
    push.request.lr_scale = bad;
    EXPECT_TRUE(
        all_are(send_push(server.get(), push.request), server->shard_count(), Answer::kMalformed));
  }
  EXPECT_EQ(server->content_hash(), before);
}

TEST(Server, DuplicatesAndStalePushesChangeNothing) {
  auto server = make_test_server();
  const TestPush first(1, test_batch(0), 100, *server);
  send_push(server.get(), first.request);
  const uint64_t before = server->content_hash();
  EXPECT_NE(before, make_test_server()->content_hash());
  const size_t n = server->shard_count();
  EXPECT_TRUE(all_are(send_push(server.get(), first.request), n, Answer::kDuplicate));
  const TestPush other(2, test_batch(0), 50, *server);  // other rows under the same name
  EXPECT_TRUE(all_are(send_push(server.get(), other.request), n, Answer::kDuplicate));
  TestPush stale(3, test_batch(1), 50, *server);
  stale.request.claim.incarnation = kLife + 1;
  EXPECT_TRUE(all_are(send_push(server.get(), stale.request), n, Answer::kStaleIncarnation));
  stale.request.claim.incarnation = kLife;
  stale.request.claim.geometry = 1;
  EXPECT_TRUE(all_are(send_push(server.get(), stale.request), n, Answer::kStaleGeometry));
  stale.request.claim.geometry = kGeometry;
  stale.epochs[2] = {9, 9};
  const auto mixed = send_push(server.get(), stale.request);
  EXPECT_EQ(mixed[2], Answer::kStaleEpoch);
  EXPECT_EQ(mixed[3], Answer::kApplied);
  EXPECT_EQ(server->totals().duplicates, 2 * n);
  EXPECT_EQ(server->totals().refused, 2 * n + 1);
  EXPECT_EQ(marked(*server, {0, 0, 0, 0}, 2), (std::vector<uint32_t>{0b01, 0}));
  EXPECT_EQ(marked(*server, {0, 0, 0, 0}, 2, true), (std::vector<uint32_t>{0b11, 0}));
  float row[kDim];
  std::vector<float*> out = {row, row};
  Status status;
  server->pull({kLife + 1, stale.shards, stale.request.keys, out, nullptr},
               [&](const PullReply& reply) { status = reply.status; });
  EXPECT_EQ(status.code(), Code::kStale);
}

TEST(Server, AVerdictOtherThanAppliedMarksWithoutRows) {
  auto server = make_test_server();
  const uint64_t before = server->content_hash();
  TestPush push(1, test_batch(0), 100, *server);
  push.request.claim.verdict = Verdict::kSkipped;
  EXPECT_TRUE(
      all_are(send_push(server.get(), push.request), server->shard_count(), Answer::kApplied));
  EXPECT_EQ(server->content_hash(), before);
  EXPECT_EQ(marked(*server, {0, 0, 0, 0}, 1), std::vector<uint32_t>{1});
}

TEST(Server, CountsWhatWorkersAskOfEachShard) {
  auto server = make_test_server();
  EXPECT_TRUE(server->work().empty());
  const TestPush push(1, test_batch(0), 100, *server);
  std::vector<float> wide(push.keys.size() * kDim), narrow(push.keys.size()), dense(kParameters);
  std::vector<float*> out = {wide.data(), narrow.data()};
  server->pull({kLife, push.shards, push.request.keys, out, dense.data()},
               [&](const PullReply& reply) { EXPECT_TRUE(reply.status.is_ok()); });
  const auto expect_times = [&](uint64_t times) {
    std::vector<ShardWork> expected;
    for (ShardId s = 0; s < kShards; ++s)
      expected.push_back({s, times * (push.begin[s + 1] - push.begin[s])});
    for (uint32_t d = 0; d < 3; ++d) {  // sixteen dense values count as a key
      const uint64_t values = kParameters * (d + 1) / 3 - kParameters * d / 3;
      expected.push_back({kShards + d, times * ((values + 15) / 16)});
    }
    EXPECT_EQ(server->work(), expected);
  };
  expect_times(1);
  send_push(server.get(), push.request);
  expect_times(2);
  send_push(server.get(), push.request);  // a duplicate
  expect_times(2);
  TestPush skipped(2, test_batch(1), 100, *server);
  skipped.request.claim.verdict = Verdict::kSkipped;
  send_push(server.get(), skipped.request);
  expect_times(2);
}

class SavedServer : public testing::Test {
 protected:
  SavedServer() {
    std::string name = testing::TempDir() + "flux_server_XXXXXX";
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
    for (uint32_t i = 0; i < 6; ++i) {
      const TestPush push(i, test_batch(i), 300, *server_);
      send_push(server_.get(), push.request);
    }
    const CheckpointStore store(folder_);
    manifest_.number = store.begin().value();
    const auto saved = server_->save(server_->primaries(), folder_, manifest_.number, 0);
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

  std::shared_ptr<Server> server_ = make_test_server();
  std::string folder_;
  Manifest manifest_;
};

TEST_F(SavedServer, LoadsIntoASecondLife) {
  ServerOptions o = test_options();
  o.incarnation = kLife + 1;
  o.epoch = {2, 0};
  auto second = std::move(Server::create(o)).value();
  ASSERT_TRUE(load_all(second.get()).is_ok());
  EXPECT_EQ(second->content_hash(), server_->content_hash());
  EXPECT_EQ(marked(*second, {0, 0, 0, 0}, 2), (std::vector<uint32_t>{~0U, 0b11}));
  EXPECT_EQ(second->totals().occurrences, server_->totals().occurrences);
  EXPECT_EQ(second->totals().dense.at(0).min, 60U);
  // What the first life still sends is refused; what it had is known.
  TestPush late(9, test_batch(7), 50, *second);
  const size_t n = second->shard_count();
  EXPECT_TRUE(all_are(send_push(second.get(), late.request), n, Answer::kStaleIncarnation));
  TestPush again(5, test_batch(5), 300, *second);
  again.request.claim.incarnation = kLife + 1;
  EXPECT_TRUE(all_are(send_push(second.get(), again.request), n, Answer::kDuplicate));
  EXPECT_EQ(second->content_hash(), server_->content_hash());
  // And both lives go on alike.
  TestPush here(8, test_batch(6), 70, *server_), there(8, test_batch(6), 70, *second);
  there.request.claim.incarnation = kLife + 1;
  EXPECT_TRUE(all_are(send_push(server_.get(), here.request), n, Answer::kApplied));
  EXPECT_TRUE(all_are(send_push(second.get(), there.request), n, Answer::kApplied));
  EXPECT_EQ(second->content_hash(), server_->content_hash());
}

TEST_F(SavedServer, RefusesAnotherModel) {
  const auto refused = [&](const std::function<void(ServerOptions*)>& change) {
    ServerOptions o = test_options();
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
  ServerOptions o = test_options();
  o.parameters = 100;
  auto server = make_test_server(o);
  constexpr uint32_t kBatches = 120;
  std::vector<std::unique_ptr<TestPush>> pushes;
  uint64_t occurrences = 0;
  for (uint32_t i = 0; i < kBatches; ++i) {
    pushes.push_back(std::make_unique<TestPush>(i, test_batch(i), 60, *server));
    const auto& counts = pushes.back()->counts;
    occurrences += std::accumulate(counts.begin(), counts.end(), 0ULL);
  }
  std::vector<std::vector<Answer>> answers(4);
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (uint32_t i = 0; i < kBatches; ++i) {
        if (i % 4 != t && (i + 1) % 4 != t) continue;
        const auto some = send_push(server.get(), pushes[i]->request);
        answers[t].insert(answers[t].end(), some.begin(), some.end());
        (void)marked(*server, {0, 0, 0, 0}, 30);
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
  EXPECT_EQ(server->totals().dense.at(0).min, kBatches * 10U);
  EXPECT_EQ(server->totals().dense.at(0).max, kBatches * 10U);
  EXPECT_EQ(marked(*server, {0, 0, 0, 0}, 30), std::vector<uint32_t>(30, ~0U));
}

TEST(Server, OptionsOutOfRangeAreRefused) {
  ServerOptions o = test_options();
  o.shards = 0;
  EXPECT_EQ(Server::create(o).status().code(), Code::kInvalid);
  o = test_options();
  o.tables[0].optimizer.rule = "newton";
  EXPECT_EQ(Server::create(o).status().code(), Code::kInvalid);
  EXPECT_EQ(dense_shard_count(0), 0U);
  EXPECT_EQ(dense_shard_count(1), 1U);
  EXPECT_EQ(dense_shard_count(16384), 1U);
  EXPECT_EQ(dense_shard_count(16385), 2U);
  EXPECT_EQ(dense_shard_count(1ULL << 40), 64U);
}

}  // namespace
}  // namespace flux
