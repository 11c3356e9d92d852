// Ages of pushes: two clients whose pulls and pushes interleave in a known way, shards that move.
#include "flux/server/age_clock.h"

#include <gtest/gtest.h>

#include "flux/server/test_push.h"

namespace flux {
namespace {

constexpr uint64_t kExamples = 10;  // of a TestPush

struct Client {
  Server* server;
  AgeMark mark;

  void pull() {
    PullRequest request;
    const std::vector<uint32_t> none(kShards + 1, 0);
    const std::vector<ShardId> shards = {0, 1, 2};
    request.incarnation = kLife;
    request.shards = shards;
    request.keys = {nullptr, none.data()};
    server->pull(request, [this](const PullReply& reply) {
      EXPECT_TRUE(reply.status.is_ok()) << reply.status.message();
      mark = reply.mark;
    });
  }
  std::optional<uint64_t> push(uint32_t batch) const {
    TestPush work(batch, test_batch(batch), 20, *server);
    work.request.pulled = mark;
    return send(work.request);
  }
  std::optional<uint64_t> send(const PushRequest& request) const {
    std::optional<uint64_t> age;
    server->push(request, [&](const PushReply& reply) { age = reply.age; });
    return age;
  }
};

TEST(AgeClock, TwoClientsThatInterleave) {
  const auto server = make_test_server();
  Client a{server.get(), {}}, b{server.get(), {}};
  EXPECT_EQ(a.push(0), std::nullopt) << "it has pulled nothing";
  a.pull();
  EXPECT_EQ(a.push(1), 0U);
  a.pull();
  b.pull();
  EXPECT_EQ(b.push(2), 0U);
  EXPECT_EQ(a.push(3), kExamples) << "b's batch came between";
  b.pull();
  for (uint32_t i = 4; i < 20; ++i) {
    a.pull();
    EXPECT_EQ(a.push(i), 0U);
  }
  EXPECT_EQ(b.push(20), 16 * kExamples);
  EXPECT_EQ(b.push(21), 17 * kExamples) << "another batch of the same pull, its own one is applied";
}

TEST(AgeClock, WhatComesTwiceIsCountedOnce) {
  const auto server = make_test_server();
  Client a{server.get(), {}}, b{server.get(), {}};
  a.pull();
  b.pull();
  EXPECT_EQ(b.push(1), 0U);
  EXPECT_EQ(b.push(1), std::nullopt) << "a duplicate";
  EXPECT_EQ(a.push(2), kExamples);
}

TEST(AgeClock, MarksOfOthersSayNothing) {
  const auto server = make_test_server(), other = make_test_server();
  Client a{server.get(), {}}, b{other.get(), {}};
  a.pull();
  b.pull();
  EXPECT_NE(a.mark.clock, b.mark.clock);
  a.mark = b.mark;
  EXPECT_EQ(a.push(1), std::nullopt);
  a.pull();
  a.mark.examples += 1;
  EXPECT_EQ(a.push(2), std::nullopt) << "no honest request: from the future";
}

TEST(AgeClock, IsNoPartOfTheModel) {
  const auto one = make_test_server(), two = make_test_server();
  Client a{one.get(), {}}, b{two.get(), {}};
  a.pull();
  a.push(1);
  b.push(1);
  EXPECT_EQ(one->content_hash(), two->content_hash());
  EXPECT_EQ(one->replica(0).stream_hash(), two->replica(0).stream_hash());
}

PushRequest push_to(const std::vector<ShardId>& shards, const std::vector<ShardEpoch>& epochs,
                    AgeMark pulled) {
  PushRequest request;
  request.shards = shards;
  request.epochs = epochs;
  request.examples = kExamples;
  request.pulled = pulled;
  return request;
}

TEST(AgeClock, ANewOwnerBeginsAnew) {
  const std::vector<ShardEpoch> epochs = {{1, 1}, {1, 1}}, later = {{1, 2}, {1, 1}};
  const std::vector<ShardId> both = {3, 4}, second = {4};
  const std::vector<ShardAnswer> all = {{3, Answer::kApplied, 0, {}}, {4, Answer::kApplied, 0, {}}};
  const std::vector<ShardAnswer> one = {{4, Answer::kApplied, 0, {}}};
  AgeClock clock(1);
  EXPECT_EQ(clock.now(), AgeMark{});
  clock.begin(3, {1, 1});
  const AgeMark first = clock.now();
  clock.begin(4, {1, 1});
  EXPECT_EQ(clock.now(), first) << "one shard stands for all";
  EXPECT_EQ(clock.pushed(push_to(both, epochs, first), all), 0U);
  EXPECT_EQ(clock.pushed(push_to(both, epochs, first), all), kExamples);
  // It was away and is back: what others applied meanwhile is not known.
  EXPECT_EQ(clock.pushed(push_to(both, later, first), all), std::nullopt);
  const AgeMark back = clock.now();
  EXPECT_NE(back.clock, first.clock);
  EXPECT_EQ(clock.pushed(push_to(both, later, back), all), 0U) << "its own examples are counted";
  EXPECT_EQ(clock.pushed(push_to(both, later, first), all), std::nullopt);
  // It is gone: others of this server apply without it, and the next pull begins a count.
  EXPECT_EQ(clock.pushed(push_to(second, {{1, 1}}, back), one), std::nullopt);
  EXPECT_EQ(clock.now(), AgeMark{});
  clock.begin(4, {1, 1});
  const AgeMark third = clock.now();
  EXPECT_NE(third.clock, back.clock);
  EXPECT_EQ(clock.pushed(push_to(second, {{1, 1}}, third), one), 0U);
}

}  // namespace
}  // namespace flux
