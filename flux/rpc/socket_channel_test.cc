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

TEST(Sockets, NamesAreLookedUp) {
  Server server;
  const std::string port = server.address().substr(server.address().rfind(':'));
  Client client("localhost" + port);
  EXPECT_TRUE(client.call(kEcho).status.is_ok());
  Client lost("no-such-host.invalid" + port);
  const Outcome nobody = lost.call(kEcho, "", {}, 200 * kMillisecond);
  EXPECT_EQ(nobody.status.code(), Code::kUnavailable);
}

TEST(Sockets, RequestsLieInMemoryThatIsUsedAgain) {
  Server server;
  Client client(server.address());
  const std::string sent = pattern(2'000'000, 1);
  for (int i = 0; i < 20; ++i)
    ASSERT_TRUE(client.call(kFail, "", {bytes_of(sent)}).status.code() == Code::kStale);
  EXPECT_EQ(server.service.places.size(), 1U);
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

TEST(Sockets, ThreadsOfTheListenerShareTheConnections) {
  ListenerOptions options;
  options.threads = 3;
  Server server(options);
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 9; ++i) clients.push_back(std::make_unique<Client>(server.address()));
  for (int round = 0; round < 20; ++round) {
    std::vector<std::shared_ptr<Outcome>> outcomes;
    const std::string sent = pattern(1000 + static_cast<size_t>(round) * 997, 1);
    for (auto& client : clients) outcomes.push_back(client->start(kEcho, "x", {bytes_of(sent)}));
    for (size_t i = 0; i < clients.size(); ++i)
      ASSERT_TRUE(text_of(clients[i]->wait(outcomes[i]).reply.payload) == sent);
  }
  EXPECT_EQ(server.listener->connections(), 9U);
  clients.clear();
  Client last(server.address());
  ASSERT_TRUE(last.until([&] { return server.service.closed_count() == 9; }));
}

TEST(Sockets, TheListenerMayUseTheCallersLoop) {
  IoLoop loop;
  ListenerOptions options;
  options.loop = &loop;
  {
    Server server(options);
    Client client(server.address());
    const auto outcome = client.start(kEcho, "same thread");
    ASSERT_TRUE(client.until([&] {
      loop.poll();
      return outcome->over;
    }));
    EXPECT_EQ(outcome->reply.control, "same thread");
    server.listener.reset();
    EXPECT_EQ(server.service.closed_count(), 1U);
  }
}

TEST(Sockets, APlaceThatIsRefusedFailsOnlyItsCall) {
  Server server;
  Client client(server.address());
  const auto other = client.start(kKeep);
  const std::string sent = pattern(300'000, 5);
  const Outcome refused =
      client.call(kEcho, "c", {bytes_of(sent)}, 20 * kSecond,
                  [](std::string_view, uint64_t) -> Result<std::vector<MutableByteSpan>> {
                    return Status(Code::kCorrupt, "not mine");
                  });
  EXPECT_EQ(refused.status.code(), Code::kCorrupt);
  EXPECT_EQ(refused.status.message(), "not mine");
  char little[10];
  const Outcome small =
      client.call(kEcho, "c", {bytes_of(sent)}, 20 * kSecond, [&](std::string_view, uint64_t) {
        return Result<std::vector<MutableByteSpan>>({std::as_writable_bytes(std::span(little))});
      });
  EXPECT_EQ(small.status.message(), "the caller made room for 10 bytes, the reply has 300000");
  ASSERT_EQ(server.service.release(), 1U);
  EXPECT_TRUE(client.wait(other).status.is_ok()) << "the connection is the same";
  EXPECT_EQ(client.channel->counters().connections, 1U);
}

TEST(Sockets, TimeOutAndCancelLeaveTheConnectionInPeace) {
  Server server;
  Client client(server.address());
  const auto kept = client.start(kKeep);
  const auto late = client.start(kKeep, "", {}, 30 * kMillisecond);
  EXPECT_EQ(client.wait(late).status.code(), Code::kUnavailable);
  EXPECT_NE(late->status.message().find("verb 4 was not answered within 30 ms"), std::string::npos)
      << late->status.message();
  const auto cancelled = client.start(kKeep);
  client.channel->cancel(client.last_id);
  EXPECT_FALSE(cancelled->over) << "not inside cancel()";
  EXPECT_EQ(client.wait(cancelled).status.code(), Code::kCancelled);
  client.channel->cancel(client.last_id);
  client.channel->cancel(12345);
  ASSERT_TRUE(client.until([&] { return server.service.kept_count() == 3; }));
  server.service.release();  // two of the answers come too late
  EXPECT_TRUE(client.wait(kept).status.is_ok());
  EXPECT_TRUE(client.call(kEcho).status.is_ok());
  EXPECT_EQ(late->count + cancelled->count, 2);
  EXPECT_EQ(client.channel->counters().connections, 1U);
}

TEST(Sockets, AHalfSentCallThatEndsClosesTheConnection) {
  IoLoop loop;  // not turned: the listener reads nothing
  ListenerOptions options;
  options.loop = &loop;
  Server server(options);
  Client client(server.address());
  const auto first = client.start(kEcho);
  ASSERT_TRUE(client.until([&] {
    loop.poll();
    return first->over;
  }));
  const std::string huge = pattern(64U << 20U, 1);  // more than sockets hold
  const auto stuck = client.start(kEcho, "", {bytes_of(huge)}, 50 * kMillisecond);
  const auto other = client.start(kEcho, "behind it");
  EXPECT_EQ(client.wait(stuck).status.code(), Code::kUnavailable);
  EXPECT_EQ(client.wait(other).status.code(), Code::kUnavailable);
  EXPECT_NE(other->status.message().find("half sent"), std::string::npos)
      << other->status.message();
  const auto again = client.start(kEcho, "again");
  ASSERT_TRUE(client.until([&] {
    loop.poll();
    return again->over;
  }));
  EXPECT_TRUE(again->status.is_ok()) << again->status.message();
  EXPECT_EQ(client.channel->counters().connections, 2U);
}

// Both ends are turned by this one thread, which may be kept from running for seconds: so no time
// limit may be near, neither ours nor the kernel's of a TCP connection that nobody reads from.
TEST(Sockets, AHalfReadReplyThatEndsClosesTheConnection) {
  constexpr TimeNs kFar = 3600 * kSecond;
  IoLoop loop;
  ListenerOptions options;
  options.loop = &loop;
  options.addresses = {test::unix_address("half")};
  options.handshake_timeout_ns = options.stall_timeout_ns = kFar;
  Server server(options);
  SocketChannelOptions patient;
  patient.connect_timeout_ns = patient.patience_ns = kFar;
  patient.keep_alive_ns = patient.keep_alive_timeout_ns = kFar;
  Client client(server.address(), patient);
  std::string room(64U << 20U, '\0');
  bool placed = false;
  const auto stuck =
      client.start(kMany, std::to_string(room.size()), {}, kFar, [&](std::string_view, uint64_t) {
        placed = true;
        return Result<std::vector<MutableByteSpan>>(
            {std::as_writable_bytes(std::span<char>(room))});
      });
  const uint64_t id = client.last_id;
  ASSERT_TRUE(client.until([&] {
    if (!placed) loop.poll();  // then the server stops
    return placed;
  }));
  client.channel->cancel(id);
  EXPECT_EQ(client.wait(stuck).status.code(), Code::kCancelled);
  std::fill(room.begin(), room.end(), 'm');  // it is ours again
  const auto again = client.start(kEcho, "again", {}, kFar);
  ASSERT_TRUE(client.until([&] {
    loop.poll();
    return again->over;
  }));
  EXPECT_TRUE(again->status.is_ok()) << again->status.message();
  EXPECT_EQ(room.find_first_not_of('m'), std::string::npos);
  EXPECT_EQ(client.channel->counters().connections, 2U);
}

TEST(Sockets, AServerThatDiesFailsWhatIsInFlightAndIsFoundAgain) {
  const std::string address = test::unix_address("again");
  ListenerOptions options;
  options.addresses = {address};
  SocketChannelOptions fast;
  fast.backoff_first_ns = kMillisecond;
  fast.backoff_max_ns = 10 * kMillisecond;
  fast.patience_ns = 20 * kSecond;
  int breaks = 0;
  fast.on_break = [&] { ++breaks; };
  Client client(address, fast);
  const auto early = client.start(kEcho, "before anybody listens");
  client.loop.run_one_until(client.loop.now_ns() + 5 * kMillisecond);
  {
    Server server(options);
    EXPECT_TRUE(client.wait(early).status.is_ok()) << early->status.message();
    const auto kept = client.start(kKeep);
    ASSERT_TRUE(client.until([&] { return server.service.kept_count() == 1; }));
    server.listener.reset();
    EXPECT_EQ(client.wait(kept).status.code(), Code::kUnavailable);
    EXPECT_EQ(kept->status.message(), address + ": the peer goes away: it was stopped");
    EXPECT_EQ(server.service.closed_count(), 1U);
    server.service.release();  // a responder outlives its listener
    EXPECT_TRUE(client.until([&] { return breaks == 1; })) << "told apart from the calls";
  }
  const Outcome nobody = client.call(kEcho, "", {}, 40 * kMillisecond);
  EXPECT_EQ(nobody.status.code(), Code::kUnavailable);
  EXPECT_NE(nobody.status.message().find("not connected"), std::string::npos)
      << nobody.status.message();
  Server second(options);
  EXPECT_TRUE(client.call(kEcho).status.is_ok());
  EXPECT_EQ(client.channel->counters().connections, 2U);
}

// Who cannot be reached is said at once, over and over, and found when it is there.
TEST(Sockets, APeerThatIsNotThereFailsItsCallsAtOnce) {
  const std::string gone = test::unix_address("nobody");
  const std::string dead = test::unix_address("dead");
  std::string closed_port;
  {
    Server server;  // TCP
    closed_port = server.address();
    ListenerOptions options;
    options.addresses = {dead};
    const Server other(options);
  }
  for (const std::string& address : {gone, dead, closed_port}) {
    Client client(address);
    // Each has 20 s; all together they take what the pauses between attempts take.
    for (int i = 0; i < 5; ++i) {
      const TimeNs begun = client.loop.now_ns();
      const auto one = client.start(kEcho, "a"), two = client.start(kEcho, "b");
      for (const auto& call : {one, two}) {
        EXPECT_EQ(client.wait(call).status.code(), Code::kUnavailable);
        EXPECT_NE(call->status.message().find("cannot connect"), std::string::npos)
            << call->status.message();
      }
      EXPECT_LT(client.loop.now_ns() - begun, 10 * kSecond) << "not by their own time";
    }
    ListenerOptions options;
    options.addresses = {address};
    const Server server(options);
    Outcome found;
    for (int i = 0; i < 100 && found.count == 0; ++i) {
      Outcome got = client.call(kEcho);
      if (got.status.is_ok()) found = std::move(got);
    }
    EXPECT_EQ(found.count, 1) << address;
  }
}

TEST(Sockets, CallsBeyondTheLimitsWaitTheirTurn) {
  Server server;
  SocketChannelOptions options;
  options.in_flight_max = 2;
  options.waiting_max = 3;
  Client client(server.address(), options);
  ASSERT_TRUE(client.call(kEcho).status.is_ok());
  std::vector<std::shared_ptr<Outcome>> calls;
  for (int i = 0; i < 6; ++i)
    calls.push_back(client.start(kKeep, "", {}, i == 4 ? 30 * kMillisecond : 20 * kSecond));
  EXPECT_EQ(client.wait(calls[5]).status.message(), server.address() + ": 3 calls wait already");
  EXPECT_NE(client.wait(calls[4]).status.message().find("waited for room: 2 calls"),
            std::string::npos)
      << calls[4]->status.message();
  ASSERT_TRUE(client.until([&] { return server.service.kept_count() == 2; }));
  server.service.release();
  ASSERT_TRUE(client.until([&] { return server.service.kept_count() == 2; }));
  EXPECT_EQ(calls[0]->count + calls[1]->count, 2);
  server.service.release();
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(client.wait(calls[i]).status.is_ok());

  options = {};
  options.in_flight_bytes_max = 1000;
  Client narrow(server.address(), options);
  const std::string big(5000, 'b'), small(600, 's');
  EXPECT_TRUE(narrow.call(kEcho, "", {bytes_of(big)}).status.is_ok()) << "alone it may go";
  const auto a = narrow.start(kKeep, "", {bytes_of(small)});
  const auto b = narrow.start(kKeep, "", {bytes_of(small)});
  ASSERT_TRUE(narrow.until([&] { return server.service.kept_count() == 1; }));
  server.service.release();
  EXPECT_TRUE(narrow.wait(a).status.is_ok());
  ASSERT_TRUE(narrow.until([&] { return server.service.kept_count() == 1; }));
  server.service.release();
  EXPECT_TRUE(narrow.wait(b).status.is_ok());
}

TEST(Sockets, TooLargeIsSaidByTheCallersOwnEnd) {
  Server server;
  SocketChannelOptions options;
  options.limits.payload_max = 1000;
  options.limits.control_max = 10;
  Client client(server.address(), options);
  const std::string big(1001, 'b');
  const Outcome payload = client.call(kEcho, "", {bytes_of(big)});
  EXPECT_EQ(payload.status.code(), Code::kInvalid);
  EXPECT_NE(payload.status.message().find("1001 payload bytes; at most 1000"), std::string::npos);
  EXPECT_EQ(client.call(kEcho, std::string(11, 'c')).status.code(), Code::kInvalid);
  ListenerOptions narrow;
  narrow.limits.payload_max = 100;
  Server small(narrow);
  Client other(small.address());
  EXPECT_EQ(other.call(kMany, "101").status.code(), Code::kInvalid);
  const Outcome refused = other.call(kEcho, "", {bytes_of(big)});
  EXPECT_NE(refused.status.message().find("frame with 1001 payload bytes; at most 100"),
            std::string::npos)
      << refused.status.message();
}

TEST(Sockets, TheChannelMayEndInsideItsOwnCallbacks) {
  Server server;
  for (const bool in_place : {false, true}) {
    Client client(server.address());
    int done = 0, dropped = 0;
    const auto guard = std::shared_ptr<int>(&dropped, [](int* n) { ++*n; });
    const std::string sent = pattern(100'000, 2);
    for (int i = 0; i < 3; ++i) {
      RpcCall call;
      call.verb = kEcho;
      call.payload = {bytes_of(sent)};
      call.done = [&, guard](const Status&, const RpcReply&) {
        ++done;
        client.channel.reset();
      };
      if (in_place) {
        call.place = [&](std::string_view, uint64_t) -> Result<std::vector<MutableByteSpan>> {
          client.channel.reset();
          return Status(Code::kCancelled, "gone");
        };
      }
      client.channel->call(std::move(call));
    }
    ASSERT_TRUE(client.until([&] { return client.channel == nullptr; }));
    client.loop.poll();
    EXPECT_EQ(done, in_place ? 0 : 1);
    EXPECT_EQ(guard.use_count(), 1) << "what the calls held is let go";
  }
}

TEST(Sockets, ASilentPeerIsGivenUp) {
  IoLoop loop;
  ListenerOptions options;
  options.loop = &loop;
  Server server(options);
  SocketChannelOptions eager;
  eager.keep_alive_ns = 20 * kMillisecond;
  eager.keep_alive_timeout_ns = 20 * kMillisecond;
  Client client(server.address(), eager);
  const auto first = client.start(kEcho);
  ASSERT_TRUE(client.until([&] {
    loop.poll();
    return first->over;
  }));
  const auto lost = client.start(kEcho);  // nobody turns the listener's loop
  EXPECT_EQ(client.wait(lost).status.code(), Code::kUnavailable);
  EXPECT_NE(lost->status.message().find("no sign of life"), std::string::npos)
      << lost->status.message();
}

TEST(Sockets, PingsKeepAQuietConnectionOpen) {
  Server server;
  SocketChannelOptions eager;
  eager.keep_alive_ns = 2 * kMillisecond;
  Client client(server.address(), eager);
  const auto kept = client.start(kKeep);
  ASSERT_TRUE(client.until([&] { return client.channel->counters().frames_in >= 10; }));
  EXPECT_FALSE(kept->over);
  server.service.release();
  EXPECT_TRUE(client.wait(kept).status.is_ok());
  EXPECT_EQ(client.channel->counters().connections, 1U);
}

}  // namespace
}  // namespace flux
