// Channel and listener over real sockets.
#include "flux/rpc/socket_channel.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "flux/rpc/test_peer.h"

namespace flux {
namespace {

using test::bytes_of;
using test::Client;
using test::kDrop;
using test::kEcho;
using test::kFail;
using test::kKeep;
using test::kMany;
using test::kSplit;
using test::Outcome;
using test::pattern;
using test::Server;
using test::text_of;

TEST(Sockets, RoundTripsOverTcpAndUnix) {
  ListenerOptions options;
  options.addresses = {"127.0.0.1:0", test::unix_address("round")};
  options.name = "server-0";
  Server server(options);
  for (size_t i = 0; i < 2; ++i) {
    Client client(server.address(i));
    for (const size_t size : {0UL, 1UL, 63UL, 4096UL, 100'000UL, 3'000'000UL}) {
      const std::string sent = pattern(size, i);
      const Outcome got = client.call(kEcho, "control", {bytes_of(sent)});
      ASSERT_TRUE(got.status.is_ok()) << got.status.message();
      EXPECT_EQ(got.reply.control, "control");
      EXPECT_TRUE(text_of(got.reply.payload) == sent) << size;
      EXPECT_EQ(reinterpret_cast<uintptr_t>(got.reply.payload.data()) % 64, 0U);
    }
    EXPECT_EQ(client.channel->server_name(), "server-0");
    EXPECT_EQ(client.channel->peer(), server.address(i));
  }
}

TEST(Sockets, ManySpansBothWaysWithoutACopy) {
  Server server;
  Client client(server.address());
  const std::string all = pattern(250'000, 3);
  std::vector<ByteSpan> spans;  // 1,800 and more, some of them empty: more than one writev takes
  for (size_t at = 0, i = 0; at < all.size(); ++i) {
    const size_t size = std::min(i % 277, all.size() - at);
    spans.push_back(bytes_of(all).subspan(at, size));
    at += size;
  }
  std::string back(all.size(), '\0');
  const PlacePayload place = [&](std::string_view control, uint64_t bytes) {
    EXPECT_EQ(control, "c");
    EXPECT_EQ(bytes, all.size());
    std::vector<MutableByteSpan> out;
    auto room = std::as_writable_bytes(std::span<char>(back.data(), back.size()));
    for (size_t i = 0; !room.empty(); ++i) {
      const size_t size = std::min(i % 131, room.size());
      out.push_back(room.first(size));
      room = room.subspan(size);
    }
    return Result<std::vector<MutableByteSpan>>(std::move(out));
  };
  const Outcome got = client.call(kSplit, "c", spans, 20 * kSecond, place);
  ASSERT_TRUE(got.status.is_ok()) << got.status.message();
  EXPECT_TRUE(back == all);
  EXPECT_TRUE(got.reply.payload.empty());
  EXPECT_EQ(client.channel->counters().payload_bytes_copied, 0U);
  EXPECT_EQ(server.listener->counters().payload_bytes_copied, 0U);
  EXPECT_GT(client.channel->counters().bytes_out, all.size());
  EXPECT_EQ(client.channel->counters().bytes_out, server.listener->counters().bytes_in);
}

TEST(Sockets, AnswersInAnyOrderAndFromAnyThread) {
  Server server;
  Client client(server.address());
  const auto kept = client.start(kKeep);
  ASSERT_TRUE(client.until([&] { return server.service.kept_count() == 1; }));
  EXPECT_TRUE(client.call(kEcho).status.is_ok());
  EXPECT_FALSE(kept->over);
  EXPECT_EQ(server.service.release(), 1U);
  EXPECT_EQ(client.wait(kept).reply.control, "kept");
  EXPECT_EQ(client.call(kFail).status.code(), Code::kStale);
  EXPECT_EQ(client.call(kFail).status.message(), "old");
  EXPECT_EQ(client.call(kDrop).status.code(), Code::kUnavailable);
  EXPECT_EQ(kept->count, 1);
}

}  // namespace
}  // namespace flux
