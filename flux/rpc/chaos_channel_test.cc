// Faults in front of a channel: what callers see, and that nothing is touched afterwards.
#include "flux/rpc/chaos_channel.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "flux/base/random.h"
#include "flux/rpc/test_executor.h"

namespace flux {
namespace {

// Answers each call one millisecond later with its control part, into placed memory if asked.
class Answering final : public Channel {
 public:
  explicit Answering(ManualExecutor& executor) : executor_(executor) {}
  uint64_t call(RpcCall call) override {
    sent.push_back(call.control);
    const uint64_t id = ++last_;
    executor_.post(kMillisecond, [call = std::move(call)] {
      if (call.place) (void)call.place(call.control, 0);
      call.done(Status::ok(), {call.control, {}, nullptr});
    });
    return id;
  }
  void cancel(uint64_t id) override { cancels.push_back(id); }
  std::string peer() const override { return "inner"; }
  std::vector<std::string> sent;
  std::vector<uint64_t> cancels;

 private:
  ManualExecutor& executor_;
  uint64_t last_ = 0;
};

struct Seen {
  int count = 0;
  Status status;
  std::string control;
  TimeNs at = 0;
};

struct ChaosTest : ::testing::Test {
  void open(const std::string& text) {
    auto options = parse_chaos(text);
    ASSERT_TRUE(options.is_ok()) << options.status().message();
    auto made = std::make_unique<Answering>(executor);
    inner = made.get();
    channel = std::make_unique<ChaosChannel>(executor, std::move(made), options.value());
  }
  std::shared_ptr<Seen> call(const std::string& control) {
    auto seen = std::make_shared<Seen>();
    RpcCall call;
    call.verb = 9;
    call.control = control;
    call.timeout_ns = kSecond;
    call.place = [this](std::string_view, uint64_t) {
      ++placed;
      return Result<std::vector<MutableByteSpan>>(std::vector<MutableByteSpan>{});
    };
    call.done = [seen, this](Status status, const RpcReply& reply) {
      ++seen->count;
      seen->status = std::move(status);
      seen->control = reply.control;
      seen->at = executor.now_ns();
    };
    last_id = channel->call(std::move(call));
    return seen;
  }
  ManualExecutor executor;
  Answering* inner = nullptr;
  std::unique_ptr<ChaosChannel> channel;
  int placed = 0;
  uint64_t last_id = 0;
};

TEST_F(ChaosTest, WithoutFaultsNothingChanges) {
  open("seed=3");
  const auto seen = call("a");
  executor.run_until(kMillisecond);
  EXPECT_EQ(seen->count, 1);
  EXPECT_EQ(seen->control, "a");
  EXPECT_EQ(placed, 1);
}

TEST_F(ChaosTest, ALostRequestIsNeverSent) {
  open("request=1");
  const auto seen = call("a");
  executor.run_until(kSecond - 1);
  EXPECT_EQ(seen->count, 0);
  executor.run_until(kSecond);
  EXPECT_EQ(seen->count, 1);
  EXPECT_EQ(seen->status.code(), Code::kUnavailable);
  EXPECT_TRUE(inner->sent.empty());
}

TEST_F(ChaosTest, ALostReplyIsSentButNotHeard) {
  open("reply=1,timeout_ms=100");
  const auto seen = call("a");
  executor.run_until(kSecond);
  EXPECT_EQ(inner->sent, std::vector<std::string>{"a"});
  EXPECT_EQ(seen->count, 1);
  EXPECT_EQ(seen->status.code(), Code::kUnavailable);
  EXPECT_EQ(seen->at, 100 * kMillisecond);
  EXPECT_EQ(placed, 0) << "what is lost is not put into the caller's memory";
}

TEST_F(ChaosTest, MemoryIsHeldUntilTheLastCopyIsOver) {
  open("reply=1,timeout_ms=0");
  RpcCall call;
  int count = 0;
  call.timeout_ns = 0;  // given up before the inner call is over
  call.done = [&](const Status& status, const RpcReply&) {
    ++count;
    EXPECT_EQ(status.code(), Code::kUnavailable);
    EXPECT_EQ(executor.now_ns(), kMillisecond);
  };
  channel->call(std::move(call));
  executor.run_until(kMillisecond - 1);
  EXPECT_EQ(count, 0);
  executor.run_until(kMillisecond);
  EXPECT_EQ(count, 1);
}

TEST_F(ChaosTest, ADoubledCallIsAnsweredOnce) {
  open("double=1");
  const auto seen = call("a");
  EXPECT_EQ(inner->sent, (std::vector<std::string>{"a", "a"}));
  executor.run_until(kSecond);
  EXPECT_EQ(seen->count, 1);
  EXPECT_TRUE(seen->status.is_ok());
  EXPECT_EQ(placed, 1);
  EXPECT_EQ(channel->counts().doubled, 1U);
}

TEST_F(ChaosTest, TheNextCallOvertakes) {
  open("reorder=1");
  call("held until the next one");
  EXPECT_TRUE(inner->sent.empty());
  executor.run_until(kSecond);
  EXPECT_EQ(inner->sent.size(), 1U) << "there was none, so it went alone";
  open("reorder=0.5,seed=2");
  std::string sent;
  std::vector<std::shared_ptr<Seen>> all;
  for (char c = 'a'; c <= 'z'; ++c) all.push_back(call({c}));
  executor.run_until(2 * kSecond);
  for (const std::string& one : inner->sent) sent += one;
  EXPECT_FALSE(std::is_sorted(sent.begin(), sent.end())) << sent;
  std::sort(sent.begin(), sent.end());
  EXPECT_EQ(sent, "abcdefghijklmnopqrstuvwxyz");
  for (const auto& seen : all) EXPECT_EQ(seen->count, 1);
}

TEST_F(ChaosTest, EveryCallIsOverOnceWhateverHappens) {
  open("seed=7,request=0.2,reply=0.2,double=0.3,delay=0.5,delay_ms=30,reorder=0.3,timeout_ms=60");
  Random random(5);
  std::vector<std::shared_ptr<Seen>> all;
  for (int i = 0; i < 500; ++i) {
    all.push_back(call(std::to_string(i)));
    if (random.chance(0.2)) channel->cancel(last_id);
    executor.run_until(executor.now_ns() + static_cast<TimeNs>(random.below(3 * kMillisecond)));
  }
  executor.run_until(executor.now_ns() + 10 * kSecond);
  size_t answered = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    ASSERT_EQ(all[i]->count, 1) << i;
    if (!all[i]->status.is_ok()) continue;
    ++answered;
    ASSERT_EQ(all[i]->control, std::to_string(i));
  }
  const ChaosChannel::Counts& counts = channel->counts();
  EXPECT_EQ(counts.calls, 500U);
  for (const uint64_t n : {counts.requests_lost, counts.replies_lost, counts.doubled,
                           counts.delayed, counts.reordered})
    EXPECT_GT(n, 20U);
  EXPECT_GT(answered, 200U);
  const auto last = call("after");
  channel.reset();
  executor.run_until(executor.now_ns() + kSecond);
  EXPECT_EQ(last->count, 0);
}

TEST(Chaos, OptionsAreReadFromText) {
  const ChaosOptions o =
      parse_chaos("seed=7,request=0.25,reply=0.5,double=0.1,delay_ms=50").value();
  EXPECT_EQ(o.seed, 7U);
  EXPECT_EQ(o.request, 0.25);
  EXPECT_EQ(o.reply, 0.5);
  EXPECT_EQ(o.doubled, 0.1);
  EXPECT_EQ(o.delay_ms, 50);
  EXPECT_TRUE(o.any());
  EXPECT_FALSE(parse_chaos("").value().any());
  for (const auto& [text, part] : std::vector<std::pair<const char*, const char*>>{
           {"request", "'request' is not name=value"},
           {"request=1.5", "request=1.5: give a number from 0 to 1"},
           {"request=-1", "request=-1"},
           {"request=nan", "request=nan"},
           {"seed=x", "seed=x"},
           {"requst=0.1", "did you mean 'request'?"},
           {"seed=1,,reply=0", "'' is not name=value"}}) {
    const auto parsed = parse_chaos(text);
    ASSERT_FALSE(parsed.is_ok()) << text;
    EXPECT_NE(parsed.status().message().find(part), std::string::npos) << parsed.status().message();
  }
}

}  // namespace
}  // namespace flux
