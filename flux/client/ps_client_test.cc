// PsClient over a port that answers when and what the test says, in time that the test moves.
#include "flux/client/ps_client_fixture.h"

namespace flux {
namespace {

using namespace test;  // NOLINT: the fixture

TEST_F(PsClientTest, ReleasesWhenEveryShardHasIt) {
  push(3);
  ASSERT_EQ(servers_[0].sent.size(), 1U);
  ASSERT_EQ(servers_[1].sent.size(), 1U);
  const auto& sent = servers_[0].sent[0];
  EXPECT_EQ(sent.claim.incarnation, 42U);
  EXPECT_EQ(sent.claim.geometry, 7U);
  EXPECT_EQ(sent.claim.ids, (std::vector<BatchId>{{{0, 0, 0, 0}, 3, 32}}));
  EXPECT_EQ(sent.shards, (std::vector<ShardId>{0, 1}));
  EXPECT_EQ(sent.dense, gradient_);
  sent.answer(Answer::kApplied);
  EXPECT_TRUE(released_.empty());
  EXPECT_EQ(client_->in_flight(), 1U);
  servers_[1].sent[0].answer(Answer::kApplied);
  EXPECT_EQ(released_, (std::vector<int>{3}));
  EXPECT_EQ(client_->in_flight(), 0U);
  servers_[1].sent[0].answer(Answer::kApplied);  // once more
  EXPECT_EQ(released_.size(), 1U);
}

TEST_F(PsClientTest, AnswersInsideTheCall) {
  servers_[0].at_once = servers_[1].at_once = Answer::kApplied;
  for (uint8_t b = 0; b < 20; ++b) push(b);
  EXPECT_EQ(released_.size(), 20U);
  EXPECT_EQ(client_->in_flight(), 0U);
  EXPECT_EQ(executor_.tasks(), 0U) << "nothing in flight needs no timer";
}

TEST_F(PsClientTest, SendsAgainWhatIsNotAnswered) {
  push(0);
  servers_[0].sent[0].answer(Answer::kApplied);
  executor_.advance_to(99);
  EXPECT_EQ(servers_[1].sent.size(), 1U);
  executor_.advance_to(100);
  EXPECT_EQ(servers_[0].sent.size(), 1U) << "answered";
  EXPECT_EQ(servers_[1].sent.size(), 2U);
  executor_.advance_to(299);
  EXPECT_EQ(servers_[1].sent.size(), 2U) << "the time-out has doubled";
  executor_.advance_to(300);
  EXPECT_EQ(servers_[1].sent.size(), 3U);
  EXPECT_EQ(client_->resends(), 2U);
  PushReply lost;
  lost.status = Status(Code::kUnavailable, "timed out");
  servers_[1].sent[0].done(lost);
  servers_[1].sent[1].done(lost);
  servers_[1].sent[2].answer(Answer::kDuplicate);
  EXPECT_EQ(released_.size(), 1U);
  EXPECT_EQ(client_->duplicates(), 1U);
  EXPECT_EQ(client_->push_times().count(), 2U) << "of lost ones none";
  executor_.advance_to(10000);
  EXPECT_EQ(servers_[1].sent.size(), 3U);
  EXPECT_EQ(executor_.tasks(), 0U);
}

TEST_F(PsClientTest, CountsTheAgesThatServersTell) {
  push(0);
  const auto answer = [](const FakeServer::Sent& sent, std::optional<uint64_t> age) {
    PushReply reply;
    for (const ShardId shard : sent.shards)
      reply.answers.push_back({shard, Answer::kApplied, 0, {}});
    reply.age = age;
    sent.done(reply);
  };
  answer(servers_[0].sent[0], 16'000);
  answer(servers_[1].sent[0], std::nullopt);
  EXPECT_EQ(client_->push_ages().count(), 1U);
  EXPECT_EQ(client_->push_ages().max(), 16'000U);
}

TEST(PullMarks, TheOldestOfOneCountAndNoneOfTwo) {
  PullMarks marks, other;
  EXPECT_EQ(marks.of(0), AgeMark{});
  marks.add(0, {7, 200});
  marks.add(0, {7, 100});
  marks.add(0, {7, 300});
  EXPECT_EQ(marks.of(0), (AgeMark{7, 100}));
  marks.add(1, {8, 5});
  marks.add(2, {9, 5});
  marks.add(2, {10, 6});
  EXPECT_EQ(marks.of(2), AgeMark{}) << "its count ended between the two";
  other.add(0, {7, 50});
  other.add(1, {8, 9});
  marks.merge(other);
  EXPECT_EQ(marks.of(0), (AgeMark{7, 50}));
  EXPECT_EQ(marks.of(1), (AgeMark{8, 5}));
  other.clear();
  marks.merge(other);
  EXPECT_EQ(marks.of(1), AgeMark{}) << "a batch of the sum does not know it";
}

TEST_F(PsClientTest, FollowsAShardThatMoved) {
  push(0);
  servers_[1].sent[0].answer(Answer::kApplied);
  coordinator_.now.server[1] = 1;
  coordinator_.now.epoch[1] = {1, 2};
  const int asked = coordinator_.asked;
  PushReply reply;
  reply.answers = {{0, Answer::kApplied, 0, {}}, {1, Answer::kStaleEpoch, 0, {}}};
  servers_[0].sent[0].done(reply);
  EXPECT_EQ(coordinator_.asked, asked + 1);
  ASSERT_EQ(servers_[1].sent.size(), 2U);
  EXPECT_EQ(servers_[1].sent[1].shards, (std::vector<ShardId>{1}));
  EXPECT_EQ(servers_[1].sent[1].epochs, (std::vector<ShardEpoch>{{1, 2}}));
  servers_[1].sent[1].answer(Answer::kApplied);
  EXPECT_EQ(released_.size(), 1U);
}

TEST_F(PsClientTest, StopsWhenFencedOff) {
  push(0);
  servers_[0].sent[0].answer(Answer::kStaleIncarnation);
  EXPECT_EQ(client_->status().code(), Code::kStale);
  EXPECT_NE(client_->status().message().find("stale incarnation"), std::string::npos);
  EXPECT_FALSE(client_->has_room());
  executor_.advance_to(100000);
  EXPECT_EQ(servers_[0].sent.size() + servers_[1].sent.size(), 2U) << "nothing more is sent";
  EXPECT_TRUE(released_.empty());
}

TEST_F(PsClientTest, AFailedCallIsSentAgainInItsTime) {
  push(0);
  PushReply lost;
  lost.status = Status(Code::kUnavailable, "connection reset");
  servers_[0].sent[0].done(lost);
  servers_[1].sent[0].answer(Answer::kApplied);
  EXPECT_TRUE(client_->status().is_ok());
  EXPECT_EQ(client_->in_flight(), 1U);
  executor_.advance_to(100);
  ASSERT_EQ(servers_[0].sent.size(), 2U);
  servers_[0].sent[1].answer(Answer::kApplied);
  EXPECT_EQ(released_.size(), 1U);
  push(1);
  PushReply refused;
  refused.status = Status(Code::kStale, "no such job");
  servers_[0].sent[2].done(refused);
  EXPECT_EQ(client_->status().code(), Code::kStale);
  EXPECT_NE(client_->status().message().find("server 0"), std::string::npos);
}

TEST_F(PsClientTest, ReleasesOnlyWhenNoCallCanReadTheBuffers) {
  push(0);
  servers_[1].sent[0].answer(Answer::kApplied);
  executor_.advance_to(100);
  ASSERT_EQ(servers_[0].sent.size(), 2U);
  servers_[0].sent[1].answer(Answer::kApplied);
  EXPECT_TRUE(released_.empty()) << "the first request may still be under way";
  EXPECT_EQ(client_->in_flight(), 1U);
  PushReply lost;
  lost.status = Status(Code::kUnavailable, "timed out");
  servers_[0].sent[0].done(lost);
  EXPECT_EQ(released_.size(), 1U);
  EXPECT_EQ(client_->in_flight(), 0U);
}

TEST_F(PsClientTest, BuffersHeldByCallsCountAsInFlight) {
  options_.session.pushes_max = 1;
  PsClient one(options_, coordinator_.map(), reach(), coordinator_.fetch(), &executor_);
  PushWork work;
  work.ids = {{{0, 0, 0, 0}, 0, 32}};
  one.push(work);
  executor_.advance_to(100);
  servers_[0].sent[1].answer(Answer::kApplied);
  servers_[1].sent[1].answer(Answer::kApplied);
  EXPECT_FALSE(one.has_room());
  servers_[0].sent[0].answer(Answer::kApplied);
  servers_[1].sent[0].answer(Answer::kApplied);
  EXPECT_TRUE(one.has_room());
}

TEST_F(PsClientTest, AnAnswerOfAnotherThreadIsCarriedOver) {
  push(0);
  std::thread([&] {
    servers_[0].sent[0].answer(Answer::kApplied);
    servers_[1].sent[0].answer(Answer::kApplied);
  }).join();
  EXPECT_TRUE(released_.empty());
  executor_.advance_to(0);
  EXPECT_EQ(released_.size(), 1U);
}

TEST_F(PsClientTest, MemoryLivesAsLongAsAPortMayUseIt) {
  auto memory = std::make_shared<int>(1);
  PushWork work;
  work.ids = {{{0, 0, 0, 0}, 0, 32}};
  work.memory = memory;
  client_->push(std::move(work));
  const uint32_t begin[] = {0, 0, 0};
  client_->pull({{nullptr, begin}, {}, gradient_, memory}, [](const Status&) { FAIL(); });
  client_.reset();
  EXPECT_GT(memory.use_count(), 1);
  servers_[0].sent[0].answer(Answer::kApplied);
  servers_[0].asked[0].done({});
  for (FakeServer& server : servers_) {
    server.sent.clear();
    server.asked.clear();
  }
  EXPECT_EQ(memory.use_count(), 1);
}

}  // namespace
}  // namespace flux
