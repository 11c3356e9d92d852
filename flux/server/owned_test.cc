// Servers that have a part of the shards, requests from strangers, marks.
#include <algorithm>
#include <limits>

#include <gtest/gtest.h>

#include "flux/server/server.h"
#include "flux/server/test_push.h"

namespace flux {
namespace {

std::shared_ptr<Server> part_server(std::vector<ShardId> owned) {
  ServerOptions o = test_options();
  o.places = alone(owned);
  return make_test_server(o);
}

// Even and odd shards, sparse and dense.
struct Halves {
  std::shared_ptr<Server> whole = make_test_server();
  std::shared_ptr<Server> even = part_server({0, 2, 4, 6, 8, 10});
  std::shared_ptr<Server> odd = part_server({1, 3, 5, 7, 9});
};

// Sends each server its part of a push, dense ranges one by one.
void send_parts(const std::vector<Server*>& servers, const TestPush& push) {
  for (Server* server : servers) {
    PushRequest request = push.request;
    const std::vector<ShardId> owned = server->primaries().shards;
    request.shards = owned;
    request.epochs = std::span(push.epochs).first(owned.size());
    std::vector<const float*> parts;
    for (uint32_t d = 0; d < 3; ++d)
      parts.push_back(push.dense.data() + dense_shard_begin(kParameters, d));
    request.dense = nullptr;
    request.dense_parts = parts;
    request.keys.limit = static_cast<uint32_t>(push.keys.size());
    ASSERT_TRUE(all_are(send_push(server, request), owned.size(), Answer::kApplied));
  }
}

std::vector<float> pull_all(const std::vector<Server*>& servers, const TestPush& keys) {
  std::vector<float> wide(keys.wide.size()), narrow(keys.narrow.size()), dense(kParameters);
  std::vector<float*> tables = {wide.data(), narrow.data()};
  for (Server* server : servers) {
    const std::vector<ShardId> owned = server->primaries().shards;
    server->pull({kLife, owned, keys.request.keys, tables, dense.data()},
                 [](const PullReply& reply) { ASSERT_TRUE(reply.status.is_ok()); });
  }
  wide.insert(wide.end(), narrow.begin(), narrow.end());
  wide.insert(wide.end(), dense.begin(), dense.end());
  return wide;
}

TEST(OwnedShards, HalvesAreTheWhole) {
  Halves h;
  std::vector<float> initial(kParameters);
  for (size_t i = 0; i < kParameters; ++i) initial[i] = static_cast<float>(i) * 1e-5F;
  for (Server* server : {h.whole.get(), h.even.get(), h.odd.get()}) server->init_dense(initial);
  for (uint32_t i = 0; i < 6; ++i) {
    const TestPush push(i, test_batch(i), 300, *h.whole);
    ASSERT_TRUE(all_are(send_push(h.whole.get(), push.request), 11, Answer::kApplied));
    send_parts({h.even.get(), h.odd.get()}, push);
  }
  EXPECT_EQ(h.even->content_hash() + h.odd->content_hash(), h.whole->content_hash());
  const TestPush all(3, test_batch(0), 900, *h.whole);
  EXPECT_EQ(pull_all({h.even.get(), h.odd.get()}, all), pull_all({h.whole.get()}, all));
  const ServerTotals a = h.even->totals(), b = h.odd->totals(), sum = h.whole->totals();
  EXPECT_EQ(a.rows + b.rows, sum.rows);
  EXPECT_EQ(a.occurrences[0] + b.occurrences[0], sum.occurrences[0]);
  EXPECT_EQ(a.dense.at(0).min, 60U);
  EXPECT_EQ(b.dense.at(0).max, 60U);
  EXPECT_EQ(a.pushes, 6U);
  EXPECT_EQ(a.pulls, 1U);
  EXPECT_EQ(marked(*h.odd, {0, 0, 0, 0}, 2), (std::vector<uint32_t>{~0U, 0b11}));
}

TEST(OwnedShards, WhatIsElsewhereIsNamed) {
  auto server = part_server({0, 1, 8});
  const TestPush push(1, test_batch(0), 100, *server);
  std::vector<Answer> answers = send_push(server.get(), push.request);
  ASSERT_EQ(answers.size(), 11U);
  for (ShardId id = 0; id < 11; ++id)
    EXPECT_EQ(answers[id], server->serves(id) ? Answer::kApplied : Answer::kNotServing) << id;
  std::vector<float> rows(push.wide.size());
  std::vector<float*> tables = {rows.data(), rows.data()};
  const std::vector<ShardId> wanted = {0, 7};
  Status status;
  server->pull({kLife, wanted, push.request.keys, tables, nullptr},
               [&](const PullReply& reply) { status = reply.status; });
  EXPECT_EQ(status.code(), Code::kUnavailable);
  EXPECT_EQ(status.message(), "shard 7 is not served here");
}

TEST(OwnedShards, NoneAtAll) {
  auto server = part_server({});
  EXPECT_EQ(server->shard_count(), 11U);
  EXPECT_TRUE(server->primaries().shards.empty());
  EXPECT_EQ(server->totals().rows, 0U);
  EXPECT_FALSE(server->totals().dense.at(0).any());
  EXPECT_EQ(server->content_hash(), 0U);
}

TEST(OwnedShards, ImpossibleListsAreRefused) {
  for (const std::vector<ShardId>& owned : {std::vector<ShardId>{11}, {2, 2}, {3, 1}}) {
    ServerOptions o = test_options();
    o.places = alone(owned);
    EXPECT_EQ(Server::create(o).status().code(), Code::kInvalid);
  }
}

TEST(Requests, PushesThatNoHonestSenderMakes) {
  auto server = make_test_server();
  const uint64_t before = server->content_hash();
  TestPush push(1, test_batch(0), 200, *server);
  push.request.keys.limit = static_cast<uint32_t>(push.keys.size());
  const auto answer = [&](const PushRequest& request) {
    const auto answers = send_push(server.get(), request);
    EXPECT_EQ(answers.size(), request.shards.size());
    return answers.front();
  };
  const std::vector<ShardId> two = {2}, dense = {9}, far = {11};
  const std::vector<ShardEpoch> epoch = {{1, 1}};
  PushRequest good = push.request;
  good.shards = two;
  good.epochs = epoch;
  PushRequest bad = good;
  bad.shards = far;
  EXPECT_EQ(answer(bad), Answer::kMalformed);
  bad = good;
  bad.epochs = {};
  EXPECT_EQ(answer(bad), Answer::kMalformed);
  bad = good;
  bad.tables = bad.tables.first(1);
  EXPECT_EQ(answer(bad), Answer::kMalformed);
  bad = good;
  bad.counts = nullptr;
  EXPECT_EQ(answer(bad), Answer::kMalformed);
  bad = good;
  bad.keys.limit = push.begin[3] - 1;
  EXPECT_EQ(answer(bad), Answer::kMalformed) << "keys beyond the end";
  bad = good;
  std::vector<uint32_t> begin = push.begin;
  std::swap(begin[2], begin[3]);
  bad.keys.begin = begin.data();
  EXPECT_EQ(answer(bad), Answer::kMalformed) << "a range that ends before it begins";
  begin[3] = std::numeric_limits<uint32_t>::max();
  EXPECT_EQ(answer(bad), Answer::kMalformed);
  bad = good;
  std::vector<uint64_t> keys = push.keys;
  keys[push.begin[2]] = push.keys[push.begin[3]];
  bad.keys.keys = keys.data();
  EXPECT_EQ(answer(bad), Answer::kMalformed) << "a key of another shard";
  bad = good;
  bad.shards = dense;
  bad.dense = nullptr;
  EXPECT_EQ(answer(bad), Answer::kMalformed);
  EXPECT_EQ(server->content_hash(), before);
  EXPECT_EQ(answer(good), Answer::kApplied);
}

TEST(Requests, PullsThatNoHonestSenderMakes) {
  auto server = make_test_server();
  TestPush push(1, test_batch(0), 200, *server);
  std::vector<float> rows(push.wide.size());
  std::vector<float*> tables = {rows.data(), rows.data()};
  const auto code = [&](std::vector<ShardId> shards, ShardedKeys keys, std::span<float*> out) {
    Status status;
    server->pull({kLife, shards, keys, out, nullptr},
                 [&](const PullReply& reply) { status = reply.status; });
    return status.code();
  };
  const ShardedKeys keys = push.request.keys;
  EXPECT_EQ(code({0, 11}, keys, tables), Code::kInvalid);
  EXPECT_EQ(code({0}, {keys.keys, nullptr}, tables), Code::kInvalid);
  EXPECT_EQ(code({7}, {keys.keys, keys.begin, 10}, tables), Code::kInvalid);
  EXPECT_EQ(code({0}, keys, std::span(tables).first(1)), Code::kInvalid);
  EXPECT_EQ(code({0, 8}, keys, tables), Code::kOk);
}

TEST(Marks, EveryShardGetsTheVerdictOnce) {
  auto server = part_server({1, 4, 9});
  const std::vector<BatchId> ids = {test_batch(0), test_batch(5)};
  const uint64_t before = server->content_hash();
  for (int i = 0; i < 2; ++i)
    ASSERT_TRUE(mark(server.get(), kGeometry, ids, Verdict::kSkipped).is_ok())
        << "repeats are fine";
  EXPECT_EQ(marked(*server, {0, 0, 0, 0}, 2), (std::vector<uint32_t>{0b1, 0b10}));
  EXPECT_EQ(server->content_hash(), before);
  const Status other = mark(server.get(), kGeometry, ids, Verdict::kLost);
  EXPECT_EQ(other.code(), Code::kStale);
  EXPECT_NE(other.message().find(to_string(ids[0])), std::string::npos) << other.message();
  EXPECT_EQ(mark(server.get(), kGeometry, ids, Verdict::kApplied).code(), Code::kInvalid);
  EXPECT_EQ(mark(server.get(), kGeometry + 1, ids, Verdict::kSkipped).code(), Code::kStale);
  EXPECT_EQ(mark(server.get(), kGeometry, {BatchId{{0, 0, 0, 0}, 9, 4}}, Verdict::kLost).code(),
            Code::kStale);
  EXPECT_TRUE(
      close_below(server.get(), 1).is_ok());  // every batch of a closed pass counts as applied
  EXPECT_TRUE(mark(server.get(), kGeometry, ids, Verdict::kSkipped).is_ok());
}

TEST(Marks, AppliedOnSomeShardsStands) {
  auto server = make_test_server();
  TestPush push(1, test_batch(3), 100, *server);
  const std::vector<ShardId> last = {10};
  push.request.shards = last;
  push.request.epochs = std::span(push.epochs).first(1);
  ASSERT_EQ(send_push(server.get(), push.request), std::vector<Answer>{Answer::kApplied});
  const std::vector<BatchId> ids = {test_batch(2), test_batch(3)};
  EXPECT_TRUE(mark(server.get(), kGeometry, ids, Verdict::kSkipped).is_ok());
  EXPECT_EQ(marked(*server, {0, 0, 0, 0}, 1), std::vector<uint32_t>{0b1100});
}

TEST(Marks, AConflictLeavesNothingHalfMarked) {
  auto server = make_test_server();
  const std::vector<BatchId> lost = {test_batch(3)}, ids = {test_batch(2), test_batch(3)};
  ASSERT_TRUE(mark(server.get(), kGeometry, lost, Verdict::kLost).is_ok());
  EXPECT_EQ(mark(server.get(), kGeometry, ids, Verdict::kSkipped).code(), Code::kStale);
  EXPECT_EQ(marked(*server, {0, 0, 0, 0}, 1, true), std::vector<uint32_t>{0b1000});
}

}  // namespace
}  // namespace flux
