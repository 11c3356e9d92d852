// Calls asked again: until answered, until the deadline, under loss, and after the owner is gone.
#include "flux/client/retry_caller.h"

#include <algorithm>
#include <deque>
#include <optional>

#include <gtest/gtest.h>

#include "flux/client/test_executor.h"

namespace flux {
namespace {

// Keeps calls until the test answers them.
class HeldChannel final : public Channel {
 public:
  uint64_t call(RpcCall call) override {
    calls.push_back(std::move(call));
    return ++last;
  }
  void cancel(uint64_t id) override { cancelled.push_back(id); }
  std::string peer() const override { return "tcp:10.0.0.2:7000"; }
  void answer(Status status, const std::string& control = "") {
    RpcCall call = std::move(calls.front());
    calls.pop_front();
    RpcReply reply;
    reply.control = control;
    call.done(std::move(status), std::move(reply));
  }
  std::deque<RpcCall> calls;
  std::vector<uint64_t> cancelled;
  uint64_t last = 0;
};

const Status kGone(Code::kUnavailable, "the connection broke");

TEST(RetryCaller, AsksAgainAfterPausesThatDouble) {
  TestExecutor executor;
  HeldChannel channel;
  RetryCaller caller(&channel, &executor, 7);
  std::optional<Result<GeometryReply>> got;
  caller.call<GeometryReply>(ApiVerb::kGeometry, GeometryRequest{5}, {},
                             [&](Result<GeometryReply> reply) { got = std::move(reply); });
  std::vector<TimeNs> pauses;
  for (int i = 0; i < 6; ++i) {
    ASSERT_EQ(channel.calls.size(), 1U);
    EXPECT_EQ(channel.calls[0].control, encode_message(GeometryRequest{5})) << "the same bytes";
    const TimeNs before = executor.now_ns();
    channel.answer(kGone);
    ASSERT_TRUE(executor.run_until([&] { return !channel.calls.empty(); }));
    pauses.push_back(executor.now_ns() - before);
    const TimeNs most = std::min<TimeNs>((20 * kMillisecond) << i, 200 * kMillisecond);
    EXPECT_GE(pauses.back(), most / 2);
    EXPECT_LE(pauses.back(), most);
  }
  channel.answer(Status::ok(), encode_message(GeometryReply{"{}"}));
  ASSERT_TRUE(got.has_value());
  ASSERT_TRUE(got->is_ok());
  EXPECT_EQ(got->value().json, "{}");
}

TEST(RetryCaller, OtherFailuresAndBadRepliesEndItAtOnce) {
  TestExecutor executor;
  HeldChannel channel;
  RetryCaller caller(&channel, &executor, 7);
  std::vector<Status> got;
  for (int i = 0; i < 2; ++i)
    caller.call<GeometryReply>(ApiVerb::kGeometry, GeometryRequest{5}, {},
                               [&](const Result<GeometryReply>& r) { got.push_back(r.status()); });
  channel.answer(Status(Code::kStale, "another incarnation"));
  channel.answer(Status::ok(), "\xff\xff");
  ASSERT_EQ(got.size(), 2U);
  EXPECT_EQ(got[0].code(), Code::kStale);
  EXPECT_EQ(got[1].code(), Code::kCorrupt);
}

TEST(RetryCaller, AtTheDeadlineItSaysWhoDidNotAnswerWhat) {
  TestExecutor executor;
  HeldChannel channel;
  RetryCaller caller(&channel, &executor, 7);
  std::optional<Status> got;
  caller.call_plain(ApiVerb::kCloseJob, CloseJobRequest{}, {.deadline_ns = 3 * kSecond},
                    [&](Status status) { got = std::move(status); });
  while (!got) {
    ASSERT_TRUE(executor.run_until([&] { return got || !channel.calls.empty(); }));
    if (got) break;
    EXPECT_LE(channel.calls[0].timeout_ns, kSecond);
    EXPECT_LE(executor.now_ns() + channel.calls[0].timeout_ns, 3 * kSecond + kMillisecond);
    executor.run_for(channel.calls[0].timeout_ns);
    channel.answer(kGone);
  }
  EXPECT_EQ(got->code(), Code::kUnavailable);
  EXPECT_LE(executor.now_ns(), 3 * kSecond + kMillisecond);
  EXPECT_NE(got->message().find("close_job at tcp:10.0.0.2:7000: no answer for"), std::string::npos)
      << got->message();
  EXPECT_NE(got->message().find("the connection broke"), std::string::npos);
}

TEST(RetryCaller, AsOftenAsItIsAllowedTo) {
  TestExecutor executor;
  HeldChannel channel;
  RetryCaller caller(&channel, &executor, 7);
  std::optional<Status> got;
  caller.call_plain(ApiVerb::kCloseJob, CloseJobRequest{},
                    {.try_timeout_ns = kSecond, .tries_max = 2},
                    [&](Status status) { got = std::move(status); });
  EXPECT_EQ(channel.calls[0].timeout_ns, kSecond);
  channel.answer(kGone);
  ASSERT_TRUE(executor.run_until([&] { return !channel.calls.empty(); }));
  EXPECT_FALSE(got.has_value());
  channel.answer(kGone);
  ASSERT_TRUE(got.has_value());
  EXPECT_EQ(got->code(), Code::kUnavailable);
  EXPECT_NE(got->message().find("asked 2 times"), std::string::npos) << got->message();
}

TEST(RetryCaller, LongMessagesTravelAsPayload) {
  TestExecutor executor;
  HeldChannel channel;
  auto caller = std::make_unique<RetryCaller>(&channel, &executor, 7);
  OpenJob job{"job", {"p", std::string(kControlBytesMax, 'x'), {}}, 1, 1, 0, {}};
  bool called = false;
  caller->call_plain(ApiVerb::kOpenJob, job, {}, [&](const Status&) { called = true; });
  ASSERT_EQ(channel.calls.size(), 1U);
  EXPECT_TRUE(channel.calls[0].control.empty());
  ASSERT_EQ(channel.calls[0].payload.size(), 1U);
  // The owner goes: the call is cancelled, its memory lives until the channel lets go.
  caller.reset();
  EXPECT_EQ(channel.cancelled, std::vector<uint64_t>{1});
  OpenJob got;
  EXPECT_TRUE(decode_message(message_bytes("", channel.calls[0].payload[0]), &got).is_ok());
  EXPECT_EQ(got.job, job.job);
  channel.answer(Status(Code::kCancelled, "cancelled"));
  EXPECT_FALSE(called);
}

}  // namespace
}  // namespace flux
