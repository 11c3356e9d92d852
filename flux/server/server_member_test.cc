// Joining, reporting, and every way in which a coordinator can be lost and found.
#include "flux/server/server_member.h"

#include <optional>

#include <gtest/gtest.h>

#include "flux/client/test_executor.h"

namespace flux {
namespace {

// A coordinator that the test plays; answers come a millisecond later, or never.
class FakeRegistry final : public ServerRegistry {
 public:
  explicit FakeRegistry(TestExecutor* executor) : executor_(executor) {}
  void join(ServerJoin request, std::function<void(Result<ServerJoinReply>)> done) override {
    joins.push_back(request);
    if (!join_answer.is_ok()) return answer(done, Result<ServerJoinReply>(join_answer));
    answer(done, Result<ServerJoinReply>(ServerJoinReply{next_id, 200}));
  }
  void report(ServerReport request, std::function<void(Result<bool>)> done) override {
    reports.push_back(request);
    times.push_back(executor_->now_ns());
    if (!report_answer.is_ok()) return answer(done, Result<bool>(report_answer));
    answer(done, Result<bool>(over));
  }

  std::vector<ServerJoin> joins;
  std::vector<ServerReport> reports;
  std::vector<TimeNs> times;
  Status join_answer, report_answer;
  ServerId next_id = 3;
  bool over = false;

 private:
  template <typename Done, typename Value>
  void answer(Done done, Value value) {
    executor_->post(kMillisecond, [done = std::move(done), value] { done(value); });
  }
  TestExecutor* executor_;
};

class ServerMemberTest : public testing::Test {
 protected:
  ServerMemberTest() {
    ServerMemberOptions options;
    options.join = {"server-0", 100, "tcp:a:1", "host", 9};
    options.coordinator = "tcp:c:1";
    ServerMemberHooks hooks;
    hooks.new_boot = [this] { return ++boot_; };
    hooks.suspects = [this] { return suspects_; };
    hooks.silent = [] { return std::vector<ServerId>{3}; };
    hooks.differed = [] { return uint64_t{2}; };
    hooks.rss_bytes = [] { return uint64_t{77}; };
    hooks.work = [this] { return std::vector<ShardWork>{{2, ++asked_}}; };
    hooks.heard = [this] { ++heard_; };
    hooks.joined = [this](ServerId id) { joined_.push_back(id); };
    hooks.forget = [this] { ++forgotten_; };
    hooks.end = [this](Status status) {
      EXPECT_FALSE(end_.has_value()) << "once";
      end_ = std::move(status);
    };
    member_ = std::make_unique<ServerMember>(&registry_, &executor_, options, hooks);
    member_->start();
  }

  const Status lost_{Code::kUnavailable, "nobody"};
  TestExecutor executor_;
  FakeRegistry registry_{&executor_};
  uint64_t boot_ = 200;
  std::vector<ServerId> suspects_ = {5};
  int heard_ = 0, forgotten_ = 0;
  uint64_t asked_ = 0;
  std::vector<ServerId> joined_;
  std::optional<Status> end_;
  std::unique_ptr<ServerMember> member_;
};

TEST_F(ServerMemberTest, ReportsAtThePaceThatItIsAskedFor) {
  executor_.run_for(2 * kSecond);
  ASSERT_EQ(registry_.joins.size(), 1U);
  EXPECT_EQ(registry_.joins[0].boot, 100U);
  EXPECT_EQ(joined_, std::vector<ServerId>{3});
  ASSERT_GE(registry_.reports.size(), 9U);
  EXPECT_LE(registry_.reports.size(), 11U);
  EXPECT_EQ(registry_.reports[0].server, 3U);
  EXPECT_EQ(registry_.reports[0].boot, 100U);
  EXPECT_EQ(registry_.reports[0].suspects, std::vector<ServerId>{5});
  EXPECT_EQ(registry_.reports[0].silent, std::vector<ServerId>{3});
  EXPECT_EQ(registry_.reports[0].differed, 2U);
  EXPECT_EQ(registry_.reports[0].rss_bytes, 77U);
  EXPECT_EQ(registry_.times[2] - registry_.times[1], 200 * kMillisecond);
  EXPECT_EQ(heard_, static_cast<int>(1 + registry_.reports.size()));
  registry_.over = true;
  executor_.run_for(kSecond);
  ASSERT_TRUE(end_.has_value());
  EXPECT_TRUE(end_->is_ok());
  const size_t last = registry_.reports.size();
  executor_.run_for(10 * kSecond);
  EXPECT_EQ(registry_.reports.size(), last);
}

TEST_F(ServerMemberTest, TellsWhatShardsDidOnceASecond) {
  executor_.run_for(5 * kSecond);
  std::vector<TimeNs> told;
  for (size_t i = 0; i < registry_.reports.size(); ++i) {
    const ServerReport& report = registry_.reports[i];
    EXPECT_EQ(report.tells_work, !report.work.empty());
    if (!report.tells_work) continue;
    told.push_back(registry_.times[i]);
    EXPECT_EQ(report.work, (std::vector<ShardWork>{{2, told.size()}}));
  }
  ASSERT_GE(told.size(), 4U);
  for (size_t i = 1; i < told.size(); ++i) EXPECT_GE(told[i] - told[i - 1], kSecond);
}

// The coordinator was started anew, or another one took over: the same member joins again, as it
// is.
TEST_F(ServerMemberTest, JoinsAgainAsItIsAfterABreak) {
  executor_.run_for(kSecond);
  registry_.report_answer = registry_.join_answer = lost_;
  executor_.run_for(30 * kSecond);
  EXPECT_FALSE(end_.has_value());
  registry_.report_answer = registry_.join_answer = Status::ok();
  registry_.next_id = 8;
  const size_t asked = registry_.joins.size();
  EXPECT_GT(asked, 100U) << "every 50 ms";
  executor_.run_for(kSecond);
  EXPECT_EQ(registry_.joins.size(), asked + 1);
  EXPECT_EQ(registry_.joins.back().boot, 100U);
  EXPECT_EQ(registry_.reports.back().server, 8U);
  EXPECT_EQ(forgotten_, 0);
  // A break is heard before any report fails: it joins at once, and the pace stays what it was.
  executor_.run_for(10 * kMillisecond);
  member_->broken();
  EXPECT_EQ(registry_.joins.size(), asked + 2);
  const size_t before = registry_.reports.size();
  executor_.run_for(2 * kSecond);
  EXPECT_NEAR(static_cast<double>(registry_.reports.size() - before), 10, 1);
  EXPECT_EQ(registry_.joins.size(), asked + 2);
  registry_.report_answer = Status(Code::kNotFound, "who are you?");
  executor_.run_for(kSecond);
  EXPECT_GT(registry_.joins.size(), asked + 2);
  EXPECT_EQ(registry_.joins.back().boot, 100U);
  EXPECT_EQ(forgotten_, 0);
}

TEST_F(ServerMemberTest, TakenForDeadItBeginsAnew) {
  executor_.run_for(kSecond);
  registry_.report_answer = Status(Code::kStale, "taken for dead");
  ASSERT_TRUE(executor_.run_until([&] { return forgotten_ == 1; }));
  registry_.report_answer = Status::ok();
  registry_.next_id = 4;
  executor_.run_for(kSecond);
  EXPECT_EQ(forgotten_, 1);
  EXPECT_EQ(registry_.joins.back().boot, 201U);
  EXPECT_EQ(registry_.reports.back().boot, 201U);
  EXPECT_EQ(registry_.reports.back().server, 4U);
  EXPECT_EQ(joined_, (std::vector<ServerId>{3, 4}));
  EXPECT_FALSE(end_.has_value());
}

TEST_F(ServerMemberTest, EndsWhenTheCoordinatorIsSilentForTooLong) {
  executor_.run_for(kSecond);
  registry_.report_answer = registry_.join_answer = lost_;
  executor_.run_for(59 * kSecond);
  EXPECT_FALSE(end_.has_value());
  executor_.run_for(2 * kSecond);
  ASSERT_TRUE(end_.has_value());
  EXPECT_EQ(end_->code(), Code::kUnavailable);
  EXPECT_NE(end_->message().find("tcp:c:1 is lost: silent for 60"), std::string::npos)
      << end_->message();
}

// The answer to a report, "you may go", was lost; the coordinator has ended its job since.
TEST_F(ServerMemberTest, LeavesInPeaceWhenTheJobIsOverAlready) {
  executor_.run_for(kSecond);
  registry_.report_answer = lost_;
  registry_.join_answer = Status(Code::kCancelled, "job j is over");
  executor_.run_for(kSecond);
  ASSERT_TRUE(end_.has_value());
  EXPECT_TRUE(end_->is_ok()) << end_->message();
}

TEST_F(ServerMemberTest, RefusedOrGone) {
  registry_.join_answer = Status(Code::kInvalid, "another job");
  member_ = nullptr;  // and who is gone is told nothing
  executor_.run_for(kSecond);
  EXPECT_FALSE(end_.has_value());
  EXPECT_TRUE(joined_.empty());
  ServerMemberHooks hooks;
  hooks.end = [this](Status status) { end_ = std::move(status); };
  ServerMember refused(&registry_, &executor_, {}, hooks);
  refused.start();
  executor_.run_for(kSecond);
  ASSERT_TRUE(end_.has_value());
  EXPECT_EQ(end_->message(), "cannot join the job: another job");
}

}  // namespace
}  // namespace flux
