// A worker that nobody answers ends when its patience does, whatever a call takes.
#include <optional>

#include <gtest/gtest.h>

#include "flux/client/test_executor.h"
#include "flux/worker/agent.h"

namespace flux {
namespace {

// A coordinator that asks the worker to wait, the first `waits` times, and then is gone. Every call
// takes `call_ns`.
class NobodysJob final : public JobPort {
 public:
  explicit NobodysJob(TestExecutor* executor) : executor_(executor) {}
  void join(JoinRequest, std::function<void(Result<JoinReply>)> done) override {
    ++joins;
    JoinReply wait;
    wait.waits = "for servers";
    Result<JoinReply> answer = wait;
    if (joins > waits) answer = error(Code::kUnavailable, "try {}", joins);
    executor_->post(call_ns, [done = std::move(done), answer] { done(answer); });
  }
  void lease(LeaseRequest, std::function<void(Result<LeaseAnswer>)>) override {}
  void report(WorkerId, WorkerReport, std::function<void(Result<ReportAnswer>)>) override {}
  void map(std::function<void(Result<ClusterMap>)>) override {}
  void geometry(uint64_t, std::function<void(Result<std::string>)>) override {}
  void leave(LeaseRequest, WorkerReport, Status, std::function<void(Status)>) override {}

  TimeNs call_ns = 2 * kSecond;
  int joins = 0, waits = 0;

 private:
  TestExecutor* executor_;
};

class AgentJoin : public testing::Test {
 protected:
  // How long it takes the worker to give up.
  TimeNs gives_up_after() {
    AgentOptions options;
    options.coordinator = "the coordinator at x:1";
    options.first_answer_ns = 7 * kSecond;
    WorkerAgent agent(options, &executor_, &job_, nullptr, nullptr, nullptr);
    agent.start([this](const WorkerOutcome& outcome) { status_ = outcome.status; });
    EXPECT_TRUE(executor_.run_until([this] { return status_.has_value(); }));
    return executor_.now_ns();
  }
  TestExecutor executor_;
  NobodysJob job_{&executor_};
  std::optional<Status> status_;
};

TEST_F(AgentJoin, EndsInTime) {
  EXPECT_EQ(gives_up_after(), 7 * kSecond);
  ASSERT_TRUE(status_.has_value());
  EXPECT_EQ(status_->code(), Code::kUnavailable);
  EXPECT_EQ(status_->message(), "the coordinator at x:1 did not answer for 7 s: try 3");
  executor_.run_for(60 * kSecond);
  EXPECT_EQ(job_.joins, 4) << "over";
}

TEST_F(AgentJoin, EndsInTimeWithoutAnyAnswer) {
  job_.call_ns = 3600 * kSecond;
  EXPECT_EQ(gives_up_after(), 7 * kSecond);
  EXPECT_EQ(job_.joins, 1);
}

TEST_F(AgentJoin, TimeBeginsAnewWithEachAnswer) {
  job_.waits = 3;
  // Three answers, each after 2 s and 0.1 s after the one before, then seven seconds of nothing.
  EXPECT_EQ(gives_up_after(), 3 * 2 * kSecond + 2 * 100 * kMillisecond + 7 * kSecond);
}

}  // namespace
}  // namespace flux
