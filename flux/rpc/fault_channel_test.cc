// A cut network as a caller sees it, and the file that cuts it.
#include "flux/rpc/fault_channel.h"

#include <filesystem>
#include <fstream>
#include <memory>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "flux/rpc/fault_file.h"
#include "flux/rpc/test_executor.h"

namespace flux {
namespace {

constexpr TimeNs kAnswer = 10 * kMillisecond;

class Answering final : public Channel {
 public:
  explicit Answering(ManualExecutor& executor) : executor_(executor) {}
  uint64_t call(RpcCall call) override {
    ++sent;
    executor_.post(kAnswer, [this, call = std::move(call)] {
      if (call.done) call.done(answer, {call.control, {}, nullptr});
    });
    return sent;
  }
  void cancel(uint64_t id) override { cancels.push_back(id); }
  std::string peer() const override { return "inner"; }
  uint64_t sent = 0;
  Status answer;
  std::vector<uint64_t> cancels;

 private:
  ManualExecutor& executor_;
};

struct Seen {
  int count = 0;
  Status status;
  std::string control;
  TimeNs at = 0;
};

struct FaultChannelTest : ::testing::Test {
  void SetUp() override {
    auto made = std::make_unique<Answering>(executor);
    inner = made.get();
    channel = std::make_unique<FaultChannel>(executor, std::move(made), path, "worker-0",
                                             "unix:/tmp/sockets/server-1");
  }
  void TearDown() override { std::filesystem::remove(path); }
  // Other bytes in another file, as the drill's rename makes it; then time for a look.
  void faults(const std::string& text) {
    std::ofstream(path + ".new") << text;
    std::filesystem::rename(path + ".new", path);
    executor.run_until(executor.now_ns() + kSecond);
  }
  std::shared_ptr<Seen> call() {
    auto seen = std::make_shared<Seen>();
    RpcCall call;
    call.verb = 9;
    call.control = "a";
    call.timeout_ns = 5 * kSecond;
    call.done = [seen, this](Status status, const RpcReply& reply) {
      ++seen->count;
      seen->status = std::move(status);
      seen->control = reply.control;
      seen->at = executor.now_ns();
    };
    last_id = channel->call(std::move(call));
    return seen;
  }
  ManualExecutor executor{kSecond};
  const std::string path = fmt::format("{}/flux_faults.{}.{}", ::testing::TempDir(), ::getpid(),
                                       static_cast<const void*>(this));
  Answering* inner = nullptr;
  std::unique_ptr<FaultChannel> channel;
  uint64_t last_id = 0;
};

TEST_F(FaultChannelTest, WithoutAFileNothingChanges) {
  const auto seen = call();
  executor.run_until(executor.now_ns() + kAnswer);
  EXPECT_EQ(seen->count, 1);
  EXPECT_TRUE(seen->status.is_ok());
  EXPECT_EQ(seen->control, "a");
}

TEST_F(FaultChannelTest, ACutWayThereSendsNothing) {
  faults("# only one way\ndrop worker-0 server-1\n");
  const TimeNs begin = executor.now_ns();
  const auto seen = call();
  executor.run_until(begin + 5 * kSecond - 1);
  EXPECT_EQ(seen->count, 0);
  executor.run_until(begin + 5 * kSecond);
  EXPECT_EQ(seen->count, 1);
  EXPECT_EQ(seen->status.code(), Code::kUnavailable);
  EXPECT_EQ(inner->sent, 0U);
  faults("");
  const auto healed = call();
  executor.run_until(executor.now_ns() + kAnswer);
  EXPECT_TRUE(healed->status.is_ok());
  EXPECT_EQ(healed->count, 1);
}

TEST_F(FaultChannelTest, ACutWayBackIsSentButNotHeard) {
  faults("drop server worker\n");
  const TimeNs begin = executor.now_ns();
  const auto seen = call();
  executor.run_until(begin + 4 * kSecond);
  EXPECT_EQ(inner->sent, 1U);
  EXPECT_EQ(seen->count, 0);
  executor.run_until(begin + 5 * kSecond);
  EXPECT_EQ(seen->count, 1);
  EXPECT_EQ(seen->status.code(), Code::kUnavailable);
  EXPECT_EQ(seen->at, begin + 5 * kSecond);
}

TEST_F(FaultChannelTest, ABrokenConnectionIsNotHeardEither) {
  inner->answer = error(Code::kUnavailable, "broken");
  faults("drop unix:/tmp/sockets/server-1 *\n");
  const TimeNs begin = executor.now_ns();
  const auto seen = call();
  executor.run_until(begin + 4 * kSecond);
  EXPECT_EQ(seen->count, 0);
  executor.run_until(begin + 5 * kSecond);
  EXPECT_EQ(seen->count, 1);
}

TEST_F(FaultChannelTest, WhatIsHeldGoesOnWhenTheCutIsHealed) {
  for (const char* cut : {"hold worker-0 server-1\n", "hold server-1 worker-0\n"}) {
    faults(cut);
    const auto seen = call();
    executor.run_until(executor.now_ns() + kSecond);
    EXPECT_EQ(seen->count, 0) << cut;
    faults("");
    executor.run_until(executor.now_ns() + kSecond);
    EXPECT_EQ(seen->count, 1) << cut;
    EXPECT_TRUE(seen->status.is_ok()) << cut;
    EXPECT_EQ(seen->control, "a") << cut;
  }
  EXPECT_EQ(inner->sent, 2U);
}

TEST_F(FaultChannelTest, WhatIsHeldTooLongFailsInTime) {
  for (const char* cut : {"hold worker-0 server-1\n", "hold server-1 worker-0\n"}) {
    faults(cut);
    const TimeNs begin = executor.now_ns();
    const auto seen = call();
    executor.run_until(begin + 5 * kSecond - 1);
    EXPECT_EQ(seen->count, 0) << cut;
    executor.run_until(begin + 5 * kSecond);
    EXPECT_EQ(seen->status.code(), Code::kUnavailable) << cut;
    faults("");
    executor.run_until(executor.now_ns() + 10 * kSecond);
    EXPECT_EQ(seen->count, 1) << cut;
  }
  EXPECT_EQ(inner->sent, 1U);
}

TEST_F(FaultChannelTest, OthersAreUntouched) {
  faults("drop worker-1 server-1\ndrop worker-0 server-0\ndrop server-1 coordinator\n");
  const auto seen = call();
  executor.run_until(executor.now_ns() + kAnswer);
  EXPECT_TRUE(seen->status.is_ok());
  EXPECT_EQ(seen->count, 1);
}

TEST_F(FaultChannelTest, CancelEndsWhatWasSwallowedAndReachesWhatWasNot) {
  faults("drop worker-0 server-1\n");
  const auto swallowed = call();
  channel->cancel(last_id);
  EXPECT_EQ(swallowed->count, 0);  // never inside the call
  executor.run_until(executor.now_ns() + kMillisecond);
  EXPECT_EQ(swallowed->status.code(), Code::kCancelled);
  executor.run_until(executor.now_ns() + 10 * kSecond);
  EXPECT_EQ(swallowed->count, 1);
  faults("");
  call();
  channel->cancel(last_id);
  EXPECT_EQ(inner->cancels.size(), 1U);
}

TEST_F(FaultChannelTest, ADestroyedChannelCallsNobody) {
  faults("drop worker-0 server-1\n");
  const auto seen = call();
  channel.reset();
  executor.run_until(executor.now_ns() + 10 * kSecond);
  EXPECT_EQ(seen->count, 0);
}

TEST_F(FaultChannelTest, AFileThatMakesNoSenseChangesNothing) {
  faults("drop worker-0 server-1\n");
  call();
  faults("drop worker-0\n");
  call();
  EXPECT_EQ(inner->sent, 0U);
}

TEST(Faults, TextAndBack) {
  const std::string text =
      "drop worker-0 server-1\nhold * tcp:127.0.0.1:4711\ndie 4711 seal:3\noom 4712\nstart "
      "server-0 "
      "install_mid:1\n";
  const auto faults = parse_faults(text);
  ASSERT_TRUE(faults.is_ok()) << faults.status().message();
  EXPECT_EQ(faults_text(faults.value()), text);
}

TEST(Faults, SaysWhichLineIsWrong) {
  for (const char* line : {"drop a", "drop a b c", "cut a b", "die x seal:1", "die -4 seal:1",
                           "die 4 sael:1", "start a seal:0", "oom", "oom 0", "oom 1 2"}) {
    const auto faults = parse_faults(std::string("drop a b\n\n") + line + "\n");
    ASSERT_FALSE(faults.is_ok()) << line;
    EXPECT_TRUE(faults.status().message().starts_with("line 3: ")) << faults.status().message();
  }
}

}  // namespace
}  // namespace flux
