// PsClient over a port that answers when and what the test says, in time that the test moves.
#include "flux/client/ps_client.h"

#include <deque>
#include <optional>

#include <gtest/gtest.h>

namespace flux {
namespace {

class ManualExecutor final : public Executor {
 public:
  TimeNs now_ns() const override { return now_; }
  void post(TimeNs delay_ns, std::function<void()> task) override {
    tasks_.emplace(now_ + delay_ns, std::move(task));
  }
  void advance_to(TimeNs time) {
    now_ = time;
    while (!tasks_.empty() && tasks_.begin()->first <= now_) {
      auto node = tasks_.extract(tasks_.begin());
      node.mapped()();
    }
  }
  size_t tasks() const { return tasks_.size(); }

 private:
  TimeNs now_ = 0;
  std::multimap<TimeNs, std::function<void()>> tasks_;
};

class FakeServer final : public ServerPort {
 public:
  struct Sent {
    PushClaim claim;
    std::vector<ShardId> shards;
    std::vector<ShardEpoch> epochs;
    const float* dense = nullptr;
    std::function<void(const PushReply&)> done;
    void answer(Answer answer) const {
      PushReply reply;
      for (const ShardId shard : shards) reply.answers.push_back({shard, answer, 0, {}});
      done(reply);
    }
  };
  void pull(const PullRequest& request, std::function<void(const PullReply&)> done) override {
    pulled_incarnation = request.incarnation;
    pulled_shards = request.shards.size();
    done({pull_status});
  }
  void push(const PushRequest& r, std::function<void(const PushReply&)> done) override {
    sent.push_back({r.claim,
                    {r.shards.begin(), r.shards.end()},
                    {r.epochs.begin(), r.epochs.end()},
                    r.dense,
                    std::move(done)});
    if (at_once) sent.back().answer(*at_once);
  }

  std::deque<Sent> sent;
  std::optional<Answer> at_once;
  Status pull_status;
  uint64_t pulled_incarnation = 0;
  size_t pulled_shards = 0;
};

class FakeCoordinator final : public CoordinatorPort {
 public:
  LeaseReply lease(WorkerId) override { return {}; }
  void batch_applied(const BatchId&) override {}
  ShardRoute route() override {
    ++asked;
    return now;
  }
  ShardRoute now{{0, 0, 1}, {{1, 1}, {1, 1}, {1, 1}}};
  int asked = 0;
};

class PsClientTest : public testing::Test {
 protected:
  PsClientTest() {
    options_.incarnation = 42;
    options_.session.answer_timeout_ns = 100;
    options_.session.timeout_max_ns = 400;
    client_.emplace(options_, std::vector<ServerPort*>{&servers_[0], &servers_[1]}, &coordinator_,
                    &executor_);
  }
  void push(uint8_t batch) {
    PushWork work;
    work.ids = {{{0, 0, 0, 0}, batch, 32}};
    work.geometry = 7;
    work.dense = gradient_;
    work.bytes = 4;
    work.released = [this, batch] { released_.push_back(batch); };
    client_->push(std::move(work));
  }

  PsClientOptions options_;
  FakeServer servers_[2];
  FakeCoordinator coordinator_;
  ManualExecutor executor_;
  std::optional<PsClient> client_;
  float gradient_[1] = {1};
  std::vector<int> released_;
};

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
  servers_[1].sent[2].answer(Answer::kDuplicate);
  EXPECT_EQ(released_.size(), 1U);
  EXPECT_EQ(client_->duplicates(), 1U);
  executor_.advance_to(10000);
  EXPECT_EQ(servers_[1].sent.size(), 3U);
  EXPECT_EQ(executor_.tasks(), 0U);
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

TEST_F(PsClientTest, PullsFromTheOneServer) {
  PsClient one(options_, {&servers_[0]}, &coordinator_, &executor_);
  Status status(Code::kIo, "not called");
  const uint32_t begin[] = {0, 0, 0, 0};
  one.pull({nullptr, begin}, {}, nullptr, [&](const Status& s) { status = s; });
  EXPECT_TRUE(status.is_ok());
  EXPECT_EQ(servers_[0].pulled_incarnation, 42U);
  EXPECT_EQ(servers_[0].pulled_shards, 3U);
  servers_[0].pull_status = Status(Code::kStale, "another life");
  one.pull({nullptr, begin}, {}, nullptr, [&](const Status& s) { status = s; });
  EXPECT_EQ(status.code(), Code::kStale);
}

}  // namespace
}  // namespace flux
