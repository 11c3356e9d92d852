// Which of several channels is used, and lists of addresses.
#include "flux/client/coordinator_channel.h"

#include <gtest/gtest.h>

namespace flux {
namespace {

// Keeps its calls until the test ends them.
class ManualChannel final : public Channel {
 public:
  explicit ManualChannel(std::string name) : name_(std::move(name)) {}
  uint64_t call(RpcCall call) override {
    calls.push_back(std::move(call));
    return calls.size();
  }
  void cancel(uint64_t id) override { cancelled.push_back(id); }
  std::string peer() const override { return name_; }
  void end(size_t at, Code code) { calls[at].done(Status(code, name_), {}); }

  std::vector<RpcCall> calls;
  std::vector<uint64_t> cancelled;

 private:
  std::string name_;
};

struct Three {
  Three() {
    std::vector<std::unique_ptr<Channel>> channels;
    for (const char* name : {"a", "b", "c"}) {
      auto one = std::make_unique<ManualChannel>(name);
      all.push_back(one.get());
      channels.push_back(std::move(one));
    }
    channel = std::make_unique<CoordinatorChannel>(std::move(channels));
  }
  uint64_t call() {
    RpcCall call;
    call.done = [this](const Status& status, const RpcReply&) { got.push_back(status.message()); };
    return channel->call(std::move(call));
  }
  std::vector<ManualChannel*> all;
  std::unique_ptr<CoordinatorChannel> channel;
  std::vector<std::string> got;
};

TEST(CoordinatorChannel, TurnsOnceForCallsThatFailTogether) {
  Three t;
  for (int i = 0; i < 4; ++i) t.call();
  ASSERT_EQ(t.all[0]->calls.size(), 4U);
  t.all[0]->end(0, Code::kUnavailable);
  EXPECT_EQ(t.channel->peer(), "a");
  t.all[0]->end(1, Code::kUnavailable);
  EXPECT_EQ(t.channel->peer(), "b");
  t.all[0]->end(2, Code::kUnavailable);
  t.all[0]->end(3, Code::kUnavailable);
  EXPECT_EQ(t.channel->peer(), "b") << "they were about a, which is not used any more";
  for (int i = 0; i < 2; ++i) t.call();
  for (size_t i = 0; i < 2; ++i) t.all[1]->end(i, Code::kUnavailable);
  for (int i = 0; i < 2; ++i) t.call();
  for (size_t i = 0; i < 2; ++i) t.all[2]->end(i, Code::kUnavailable);
  EXPECT_EQ(t.channel->peer(), "a") << "all the way round";
  EXPECT_EQ(t.got, (std::vector<std::string>{"a", "a", "a", "a", "b", "b", "c", "c"}));
}

TEST(CoordinatorChannel, StaysWithWhoAnswers) {
  Three t;
  for (size_t i = 0; i < 10; i += 2) {
    t.call();
    t.call();
    t.all[0]->end(i, Code::kUnavailable);  // a lease that was asked for again
    t.all[0]->end(i + 1, i % 4 == 0 ? Code::kOk : Code::kStale);
    EXPECT_EQ(t.channel->peer(), "a");
  }
}

TEST(CoordinatorChannel, CancelsWhereTheCallIs) {
  Three t;
  const uint64_t first = t.call();
  for (int i = 0; i < 2; ++i) t.call();
  for (size_t i = 1; i <= 2; ++i) t.all[0]->end(i, Code::kUnavailable);
  const uint64_t second = t.call();
  t.channel->cancel(first);
  t.channel->cancel(second);
  t.channel->cancel(77);
  EXPECT_EQ(t.all[0]->cancelled, std::vector<uint64_t>{1});
  EXPECT_EQ(t.all[1]->cancelled, std::vector<uint64_t>{1});
  t.channel.reset();  // with calls under way: nobody is told
  EXPECT_EQ(t.got.size(), 2U);
}

TEST(CoordinatorChannel, ListsOfAddresses) {
  EXPECT_EQ(split_addresses("tcp:a:1").value(), std::vector<std::string>{"tcp:a:1"});
  EXPECT_EQ(split_addresses("tcp:a:1,unix:/b").value(),
            (std::vector<std::string>{"tcp:a:1", "unix:/b"}));
  for (const char* bad : {"", ",", "a,", ",a", "a,,b", "a,b,a"})
    EXPECT_EQ(split_addresses(bad).status().code(), Code::kInvalid) << bad;
}

}  // namespace
}  // namespace flux
