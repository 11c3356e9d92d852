// Pulls, receipts, and servers that come and go.
#include "flux/client/ps_client_fixture.h"

namespace flux {
namespace {

using namespace test;  // NOLINT: the fixture

class PullTest : public PsClientTest {
 protected:
  PullTest() {
    options_.shape.sparse_shards = 2;
    options_.pull_retry_ns = 10;
    options_.pull_retry_max_ns = 40;
    options_.pull_deadline_ns = 1000;
    client_.emplace(options_, coordinator_.map(), reach(), coordinator_.fetch(), &executor_);
  }
  void pull(bool rows, bool dense) {
    client_->pull({keys_, rows ? begin_ : none_}, {}, dense ? gradient_ : nullptr,
                  [this](const Status& status) { done_.push_back(status); });
  }
  const Status unavailable_{Code::kUnavailable, "connection refused"};
  uint64_t keys_[2] = {5, 7};
  uint32_t begin_[3] = {0, 1, 2};
  uint32_t none_[3] = {0, 0, 0};
  std::vector<Status> done_;
};

TEST_F(PullTest, AsksEachServerOnceForWhatItHas) {
  coordinator_.now.server = {0, 1, 1};
  PsClient client(options_, coordinator_.map(), reach(), coordinator_.fetch(), &executor_);
  const auto ask = [&](bool rows, float* dense) {
    client.pull({keys_, rows ? begin_ : none_}, {}, dense,
                [this](const Status& status) { done_.push_back(status); });
  };
  ask(true, gradient_);
  ASSERT_EQ(servers_[0].asked.size(), 1U);
  ASSERT_EQ(servers_[1].asked.size(), 1U);
  EXPECT_EQ(servers_[0].asked[0].incarnation, 42U);
  EXPECT_EQ(servers_[0].asked[0].shards, (std::vector<ShardId>{0}));
  EXPECT_EQ(servers_[1].asked[0].shards, (std::vector<ShardId>{1, 2}));
  servers_[1].asked[0].done({});
  EXPECT_TRUE(done_.empty());
  EXPECT_EQ(client.waits_for_pull(), "server 0");
  servers_[0].asked[0].done({});
  ASSERT_EQ(done_.size(), 1U);
  EXPECT_TRUE(done_[0].is_ok());
  servers_[0].asked[0].done({unavailable_});  // once more
  EXPECT_EQ(done_.size(), 1U);
  EXPECT_EQ(client.waits_for_pull(), "");
  ask(true, nullptr);
  EXPECT_EQ(servers_[1].asked[1].shards, (std::vector<ShardId>{1}));
  ask(false, gradient_);
  EXPECT_EQ(servers_[0].asked.size(), 2U) << "it has no dense shard";
  EXPECT_EQ(servers_[1].asked[2].shards, (std::vector<ShardId>{2}));
}

TEST_F(PullTest, AsksAgainWhereTheShardsAreThen) {
  pull(true, true);
  servers_[1].asked[0].done({});
  coordinator_.now.server = {1, 0, 1};
  servers_[0].asked[0].done({unavailable_});
  ASSERT_EQ(servers_[0].asked.size(), 2U) << "the map has changed: at once";
  ASSERT_EQ(servers_[1].asked.size(), 2U);
  EXPECT_EQ(servers_[0].asked[1].shards, (std::vector<ShardId>{1}));
  EXPECT_EQ(servers_[1].asked[1].shards, (std::vector<ShardId>{0}));
  servers_[0].asked[1].done({});
  EXPECT_TRUE(done_.empty());
  servers_[1].asked[1].done({});
  ASSERT_EQ(done_.size(), 1U);
  EXPECT_TRUE(done_[0].is_ok());
}

TEST_F(PullTest, GivesUpWithServerShardAndTime) {
  servers_[0].pull_at_once = unavailable_;
  servers_[1].pull_at_once = Status::ok();
  pull(true, true);
  for (TimeNs t = 0; t < 2000; t += 5) executor_.advance_to(t);
  ASSERT_EQ(done_.size(), 1U);
  EXPECT_EQ(done_[0].code(), Code::kUnavailable);
  for (const char* part : {"shard 0 and 1 more", "server 0", "no answer for", "connection refused"})
    EXPECT_NE(done_[0].message().find(part), std::string::npos) << done_[0].message();
  EXPECT_GT(servers_[0].asked.size(), 20U);
  EXPECT_LT(servers_[0].asked.size(), 40U) << "with growing pauses";
  EXPECT_EQ(servers_[1].asked.size(), 1U) << "it has answered";
}

TEST_F(PullTest, IsNotDoneWhileAPortMayStillWrite) {
  pull(true, true);
  servers_[0].asked[0].done({Status(Code::kStale, "another life")});
  EXPECT_TRUE(done_.empty());
  servers_[1].asked[0].done({unavailable_});
  ASSERT_EQ(done_.size(), 1U);
  EXPECT_EQ(done_[0].code(), Code::kStale);
  EXPECT_NE(done_[0].message().find("server 0: another life"), std::string::npos);
  executor_.advance_to(100000);
  EXPECT_EQ(servers_[1].asked.size(), 1U) << "nothing is asked for a pull that failed";
}

TEST_F(PullTest, AMapThatNamesAStrangerIsAskedForAgainAndThenAClearFailure) {
  coordinator_.addresses = {"here"};
  PsClient one(options_, coordinator_.map(), reach(), coordinator_.fetch(), &executor_);
  servers_[0].pull_at_once = Status::ok();
  one.pull({keys_, begin_}, {}, gradient_, [this](const Status& s) { done_.push_back(s); });
  EXPECT_TRUE(done_.empty());
  EXPECT_EQ(one.waits_for_pull(), "server 1");
  for (TimeNs t = 0; t < 2000; t += 5) executor_.advance_to(t);
  ASSERT_EQ(done_.size(), 1U);
  EXPECT_NE(done_[0].message().find("server 1"), std::string::npos) << done_[0].message();
  EXPECT_GT(coordinator_.asked, 20);
}

TEST_F(PullTest, PatienceWithAServerThatDoesNotKnowTheIncarnation) {
  options_.session.stale_patience_ns = 100;
  PsClient patient(options_, coordinator_.map(), reach(), coordinator_.fetch(), &executor_);
  const auto ask = [&] {
    patient.pull({keys_, begin_}, {}, gradient_, [this](const Status& s) { done_.push_back(s); });
  };
  servers_[1].pull_at_once = Status::ok();
  servers_[0].pull_at_once = Status(Code::kStale, "no such job");
  ask();
  EXPECT_TRUE(done_.empty());
  servers_[0].pull_at_once = Status::ok();
  executor_.advance_to(50);
  ASSERT_EQ(done_.size(), 1U);
  EXPECT_TRUE(done_[0].is_ok());
  servers_[0].pull_at_once = Status(Code::kStale, "no such job");
  ask();
  for (TimeNs t = 50; t < 300; t += 5) executor_.advance_to(t);
  ASSERT_EQ(done_.size(), 2U);
  EXPECT_EQ(done_[1].code(), Code::kStale);
}

TEST_F(PsClientTest, AppliedComesFirstAndReleasedWhenConfirmed) {
  options_.session.pushes_max = 1;
  PsClient one(options_, coordinator_.map(), reach(), coordinator_.fetch(), &executor_);
  std::vector<std::string> told;
  PushWork work;
  work.ids = {{{0, 0, 0, 0}, 0, 32}};
  work.applied = [&] { told.emplace_back("applied"); };
  work.released = [&] { told.emplace_back("released"); };
  one.push(work);
  servers_[0].sent[0].answer(Answer::kApplied, 7);
  EXPECT_FALSE(one.has_room());
  servers_[1].sent[0].answer(Answer::kApplied, 7);
  EXPECT_EQ(told, (std::vector<std::string>{"applied"}));
  EXPECT_TRUE(one.has_room()) << "the bound of pushes counts what is not applied";
  EXPECT_EQ(one.in_flight(), 1U);
  EXPECT_EQ(one.unapplied(), 0U);
  ASSERT_EQ(servers_[0].confirms.size(), 1U);
  ASSERT_EQ(servers_[1].confirms.size(), 1U);
  EXPECT_EQ(servers_[0].confirms[0].incarnation, 42U);
  EXPECT_EQ(servers_[0].confirms[0].receipt, 7U);
  EXPECT_EQ(one.waits_for_push(), "server 0");
  servers_[0].confirms[0].done(Status::ok());
  EXPECT_EQ(told.size(), 1U);
  std::thread([&] { servers_[1].confirms[0].done(Status::ok()); }).join();
  EXPECT_EQ(told.size(), 1U) << "carried over";
  executor_.advance_to(0);
  EXPECT_EQ(told, (std::vector<std::string>{"applied", "released"}));
  EXPECT_EQ(one.in_flight(), 0U);
}

TEST_F(PsClientTest, AVoidReceiptIsPushedAgain) {
  push(0);
  servers_[1].sent[0].answer(Answer::kApplied);
  servers_[0].sent[0].answer(Answer::kApplied, 7);
  servers_[0].confirms[0].done(Status(Code::kUnavailable, "timed out"));
  EXPECT_EQ(coordinator_.asked, 1) << "something is wrong there: the map is asked for at once";
  executor_.advance_to(5);
  ASSERT_EQ(servers_[0].confirms.size(), 2U) << "asked again";
  servers_[0].confirms[1].done(Status(Code::kStale, "an epoch changed"));
  EXPECT_EQ(servers_[0].sent.size(), 1U);
  executor_.advance_to(50);
  ASSERT_EQ(servers_[0].sent.size(), 2U);
  servers_[0].sent[1].answer(Answer::kDuplicate, 8);
  EXPECT_TRUE(released_.empty());
  ASSERT_EQ(servers_[0].confirms.size(), 3U);
  servers_[0].confirms[2].done(Status::ok());
  EXPECT_EQ(released_.size(), 1U);
}

// Who is named to the coordinator: servers that owe a prompt answer, or could not be reached.
TEST_F(PullTest, ServersThatDoNotAnswerAreSuspects) {
  using List = std::vector<ServerId>;
  options_.suspect_ns = 500;
  options_.pull_deadline_ns = 100 * kSecond;
  PsClient client(options_, coordinator_.map(), reach(), coordinator_.fetch(), &executor_);
  const auto ask = [&] { client.pull({keys_, begin_}, {}, gradient_, [](const Status&) {}); };
  ask();
  servers_[1].asked[0].done({});
  executor_.advance_to(499);
  EXPECT_EQ(client.suspects(0), List{});
  executor_.advance_to(500);
  EXPECT_EQ(client.suspects(0), List{0});
  EXPECT_EQ(client.suspects(100), List{}) << "the answer may lie unread";
  executor_.advance_to(600);
  EXPECT_EQ(client.suspects(100), List{0});
  servers_[0].asked[0].done({Status(Code::kUnavailable, "not served here"), false});
  EXPECT_EQ(client.suspects(0), List{}) << "it has answered";
  executor_.advance_to(610);
  ASSERT_EQ(servers_[0].asked.size(), 2U) << "asked again";
  servers_[0].asked[1].done({unavailable_, true});
  EXPECT_EQ(client.suspects(610), List{0}) << "at once: there is no connection";
  // The client has nothing to ask it for any more: nothing is known then.
  coordinator_.now.server = {1, 1, 1};
  coordinator_.version = 2;
  client.set_map(coordinator_.map());
  EXPECT_EQ(client.suspects(0), List{0});
  executor_.advance_to(610 + kSecond);
  EXPECT_EQ(client.suspects(610), List{1}) << "which owes an answer by now";
}

// What a server may hold back for others says nothing about it.
TEST_F(PsClientTest, WaitsForOthersAreNoSuspicion) {
  options_.suspect_ns = 50;
  options_.session.answer_timeout_ns = options_.session.timeout_max_ns = kSecond;
  PsClient client(options_, coordinator_.map(), reach(), coordinator_.fetch(), &executor_);
  PushWork work;
  work.ids = {{{0, 0, 0, 0}, 0, 32}};
  work.dense = gradient_;
  work.bytes = 4;
  client.push(work);
  executor_.advance_to(60);
  EXPECT_EQ(client.suspects(0), (std::vector<ServerId>{0, 1}));
  servers_[0].sent[0].answer(Answer::kApplied, 7);
  servers_[1].sent[0].answer(Answer::kApplied, 8);
  executor_.advance_to(900);
  EXPECT_EQ(client.suspects(0), std::vector<ServerId>{}) << "a confirm waits for backups";
  work.ids = {{{0, 0, 0, 0}, 1, 32}};
  work.step = std::make_shared<SyncStep>();
  client.push(work);
  executor_.advance_to(990);
  EXPECT_EQ(client.suspects(0), std::vector<ServerId>{}) << "a step waits for its members";
}

// A port that forwards, so that the test sees when the client lets go of it.
class HeldPort final : public ServerPort {
 public:
  HeldPort(FakeServer* server, int* open) : server_(server), open_(open) { ++*open_; }
  ~HeldPort() override {
    // What ReachServer promises: calls end, their `done` is not called.
    server_->sent.clear();
    server_->asked.clear();
    server_->confirms.clear();
    --*open_;
  }
  void pull(const PullRequest& r, std::function<void(const PullReply&)> done) override {
    server_->pull(r, std::move(done));
  }
  void push(const PushRequest& r, std::function<void(const PushReply&)> done) override {
    server_->push(r, std::move(done));
  }
  void confirm(uint64_t incarnation, uint64_t receipt, std::function<void(Status)> done) override {
    server_->confirm(incarnation, receipt, std::move(done));
  }

 private:
  FakeServer* server_;
  int* open_;
};

class FailoverTest : public PsClientTest {
 protected:
  FailoverTest() {
    options_.pull_retry_ns = 10;
    options_.pull_retry_max_ns = 40;
    options_.session.answer_timeout_ns = 5000;
    options_.session.timeout_max_ns = 5000;
    options_.session.retry_ns = 10;
    options_.session.retry_max_ns = 40;
    options_.push_deadline_ns = 10000;
    client_.emplace(
        options_, coordinator_.map(),
        [this](ServerId server, const std::string& address) -> std::shared_ptr<ServerPort> {
          reached_.push_back(fmt::format("{} {}", server, address));
          return std::make_shared<HeldPort>(&servers_[server], &open_);
        },
        coordinator_.fetch(), &executor_);
  }
  // Server 0 is lost; server 1 has everything.
  void lose_server_0() {
    coordinator_.now = {{1, 1, 1}, {{1, 2}, {1, 2}, {1, 1}}};
    coordinator_.addresses[0] = "";
    coordinator_.version = 2;
  }
  std::vector<std::string> reached_;
  int open_ = 0;
  std::vector<Status> done_;
};

TEST_F(FailoverTest, PortsAreMadeOnDemandAndDroppedWithTheirServer) {
  EXPECT_TRUE(reached_.empty());
  push(0);
  EXPECT_EQ(reached_, (std::vector<std::string>{"0 here", "1 there"}));
  servers_[0].sent[0].answer(Answer::kApplied);
  servers_[1].sent[0].answer(Answer::kApplied);
  push(1);
  EXPECT_EQ(reached_.size(), 2U);
  EXPECT_EQ(open_, 2);
  lose_server_0();
  client_->set_map(coordinator_.map());
  executor_.advance_to(1);
  EXPECT_EQ(open_, 1);
  // An older map, from whoever still believes it, changes nothing.
  coordinator_.now = {{0, 0, 1}, {{1, 1}, {1, 1}, {1, 1}}};
  coordinator_.addresses[0] = "here";
  coordinator_.version = 1;
  client_->set_map(coordinator_.map());
  executor_.advance_to(2);
  EXPECT_EQ(open_, 1);
  EXPECT_EQ(servers_[0].sent.size(), 0U);
}

// It hangs: no answer, no closed connection. The map says that it is gone.
TEST_F(FailoverTest, CallsToAServerThatHangsAreAskedOfOthersAtOnce) {
  push(0);
  servers_[1].sent[0].answer(Answer::kApplied);
  const uint32_t begin[] = {0, 0, 0};
  client_->pull({nullptr, begin}, {}, gradient_,
                [this](const Status& status) { done_.push_back(status); });
  servers_[1].asked[0].done({});
  servers_[1].asked.clear();
  EXPECT_EQ(servers_[0].asked.size(), 1U);
  lose_server_0();
  client_->set_map(coordinator_.map());
  ASSERT_EQ(servers_[1].sent.size(), 2U) << "the push follows its shards at once";
  EXPECT_EQ(servers_[1].sent[1].shards, (std::vector<ShardId>{0, 1}));
  EXPECT_EQ(servers_[1].sent[1].epochs, (std::vector<ShardEpoch>{{1, 2}, {1, 2}}));
  servers_[1].sent[1].answer(Answer::kApplied);
  EXPECT_TRUE(released_.empty()) << "the port of server 0 may still read";
  executor_.advance_to(0);
  EXPECT_EQ(released_.size(), 1U);
  executor_.advance_to(10);
  ASSERT_EQ(servers_[1].asked.size(), 1U) << "so does the pull";
  servers_[1].asked[0].done({});
  ASSERT_EQ(done_.size(), 1U);
  EXPECT_TRUE(done_[0].is_ok());
}

TEST_F(FailoverTest, AClosedConnectionAsksForTheMapUntilItChanges) {
  push(0);
  servers_[1].sent[0].answer(Answer::kApplied);
  PushReply lost;
  lost.status = Status(Code::kUnavailable, "connection reset");
  servers_[0].sent[0].done(lost);
  EXPECT_EQ(coordinator_.asked, 1) << "at once";
  executor_.advance_to(10);
  EXPECT_EQ(coordinator_.asked, 2);
  ASSERT_EQ(servers_[0].sent.size(), 2U);
  servers_[0].sent[1].done(lost);
  lose_server_0();
  executor_.advance_to(30);
  ASSERT_EQ(servers_[1].sent.size(), 2U);
  servers_[1].sent[1].answer(Answer::kDuplicate);
  executor_.advance_to(31);
  EXPECT_EQ(released_.size(), 1U);
}

TEST_F(FailoverTest, APushThatNobodyTakesEndsWithServerAndReason) {
  push(0);
  servers_[1].sent[0].answer(Answer::kApplied);
  for (TimeNs t = 0; t < 12000 && client_->status().is_ok(); t += 10) {
    executor_.advance_to(t);
    while (!servers_[0].sent.empty()) {
      const auto sent = servers_[0].sent.front();
      servers_[0].sent.pop_front();
      PushReply lost;
      lost.status = Status(Code::kUnavailable, "connection refused");
      sent.done(lost);
    }
  }
  EXPECT_EQ(client_->status().code(), Code::kUnavailable);
  for (const char* part : {"batch", "server 0", "not applied for", "connection refused"})
    EXPECT_NE(client_->status().message().find(part), std::string::npos)
        << client_->status().message();
  EXPECT_LT(coordinator_.asked, 600) << "with pauses";
}

}  // namespace
}  // namespace flux
