// The channel within a process: what a socket promises, without one.
#include "flux/rpc/loopback_channel.h"

#include <cstring>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "flux/base/loop_executor.h"

namespace flux {
namespace {

ByteSpan bytes_of(std::string_view text) {
  return std::as_bytes(std::span<const char>(text.data(), text.size()));
}
std::string text_of(ByteSpan bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Verb 1 answers with the payload doubled, 2 fails, 3 keeps the responder, 4 drops it.
class TestService final : public Service {
 public:
  bool allows(PeerRole role, Verb verb) const override {
    return role == PeerRole::kWorker || verb != 1;
  }
  void handle(RpcRequest request, Responder respond) override {
    seen.push_back(request.verb);
    if (request.verb == 1) {
      EXPECT_EQ(reinterpret_cast<uintptr_t>(request.payload.data()) % 64, 0U);
      RpcAnswer answer{
          "re:" + std::string(request.control), {request.payload, request.payload}, request.memory};
      respond.reply(std::move(answer));
    } else if (request.verb == 2) {
      respond.fail(Status(Code::kStale, "old epoch"));
    } else if (request.verb == 3) {
      kept = std::move(respond);
    }
  }
  void closed(uint64_t connection) override { closed_connection = connection; }
  std::vector<Verb> seen;
  Responder kept;
  uint64_t closed_connection = 0;
};

struct LoopbackTest : ::testing::Test {
  RpcCall make(Verb verb) {
    RpcCall call;
    call.verb = verb;
    call.done = [this](Status s, RpcReply r) {
      ++done;
      status = std::move(s);
      reply = std::move(r);
    };
    return call;
  }
  LoopExecutor executor;
  TestService service;
  int done = 0;
  Status status;
  RpcReply reply;
};

TEST_F(LoopbackTest, CarriesControlAndSpansBothWays) {
  LoopbackChannel channel(executor, service);
  RpcCall call = make(1);
  call.control = "c";
  call.payload = {bytes_of("ab"), {}, bytes_of("cde")};
  channel.call(std::move(call));
  EXPECT_EQ(done, 0);
  EXPECT_TRUE(service.seen.empty()) << "nothing runs inside call()";
  executor.run_ready();
  ASSERT_EQ(done, 1);
  EXPECT_TRUE(status.is_ok());
  EXPECT_EQ(reply.control, "re:c");
  EXPECT_EQ(text_of(reply.payload), "abcdeabcde");
  EXPECT_EQ(reinterpret_cast<uintptr_t>(reply.payload.data()) % 64, 0U);
}

TEST_F(LoopbackTest, PlacesThePayloadWhereTheCallerSays) {
  LoopbackChannel channel(executor, service);
  char a[3], b[3];
  RpcCall call = make(1);
  call.payload = {bytes_of("xyz")};
  call.place = [&](std::string_view, uint64_t bytes) -> Result<std::vector<MutableByteSpan>> {
    EXPECT_EQ(bytes, 6U);
    return std::vector<MutableByteSpan>{
        std::as_writable_bytes(std::span(a)), {}, std::as_writable_bytes(std::span(b))};
  };
  channel.call(std::move(call));
  executor.run_ready();
  ASSERT_TRUE(status.is_ok()) << status.message();
  EXPECT_EQ(std::string(a, 3) + std::string(b, 3), "xyzxyz");
  EXPECT_TRUE(reply.payload.empty());

  call = make(1);
  call.payload = {bytes_of("xyz")};
  call.place = [](std::string_view, uint64_t) -> Result<std::vector<MutableByteSpan>> {
    return Status(Code::kCorrupt, "not what I asked for");
  };
  channel.call(std::move(call));
  executor.run_ready();
  EXPECT_EQ(done, 2);
  EXPECT_EQ(status.code(), Code::kCorrupt);
}

TEST_F(LoopbackTest, FailuresArriveAsTheServiceGaveThem) {
  LoopbackChannel channel(executor, service);
  channel.call(make(2));
  executor.run_ready();
  EXPECT_EQ(status.code(), Code::kStale);
  EXPECT_EQ(status.message(), "old epoch");
  channel.call(make(4));  // the responder is dropped
  executor.run_ready();
  EXPECT_EQ(status.code(), Code::kUnavailable);

  LoopbackChannel viewer(executor, service, {PeerRole::kViewer, "v", 2});
  viewer.call(make(1));
  executor.run_ready();
  EXPECT_EQ(status.code(), Code::kInvalid);
  EXPECT_EQ(status.message(), "role viewer may not use verb 1");
  EXPECT_EQ(done, 3);
  EXPECT_EQ(service.seen, (std::vector<Verb>{2, 4}));
}

TEST_F(LoopbackTest, TimeOutCancelAndEndOfTheChannel) {
  auto channel = std::make_unique<LoopbackChannel>(executor, service,
                                                   LoopbackOptions{PeerRole::kWorker, "s0", 7});
  RpcCall call = make(3);
  call.timeout_ns = 0;
  channel->call(std::move(call));
  executor.run_ready();
  EXPECT_EQ(done, 1);
  EXPECT_EQ(status.code(), Code::kUnavailable);
  EXPECT_EQ(status.message(), "s0: verb 3 was not answered within 0 ms");
  service.kept.reply({});  // too late: nobody hears it
  executor.run_ready();
  EXPECT_EQ(done, 1);

  const uint64_t id = channel->call(make(3));
  executor.run_ready();
  channel->cancel(id);
  channel->cancel(id + 100);
  executor.run_ready();
  EXPECT_EQ(done, 2);
  EXPECT_EQ(status.code(), Code::kCancelled);

  channel->call(make(3));
  executor.run_ready();
  channel.reset();
  EXPECT_EQ(service.closed_connection, 7U);
  service.kept.reply({});
  executor.run_ready();
  EXPECT_EQ(done, 2) << "destroying the channel ends its calls without a word";
}

}  // namespace
}  // namespace flux
