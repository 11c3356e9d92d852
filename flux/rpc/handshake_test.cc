// The handshake alone: both state machines against each other, and against liars.
#include "flux/rpc/handshake.h"

#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "flux/base/bytes.h"
#include "flux/rpc/address.h"
#include "flux/rpc/buffer_pool.h"

namespace flux {
namespace {

Nonce nonce(unsigned char fill) {
  Nonce n;
  n.fill(fill);
  return n;
}

HandshakeIdentity worker() {
  return {PeerRole::kWorker, "worker-1"};
}

// Runs it to the end; the first failure of either side.
Status run(ClientHandshake* client, ServerHandshake* server) {
  HandshakeFrame from_client = client->hello(), from_server;
  for (int i = 0; i < 4 && !client->done(); ++i) {
    FLUX_RETURN_IF_ERROR(server->receive(from_client.kind, from_client.control, &from_server));
    bool answered = false;
    FLUX_RETURN_IF_ERROR(
        client->receive(from_server.kind, Code::kOk, from_server.control, &from_client, &answered));
    if (!answered) break;
  }
  return Status::ok();
}

TEST(Handshake, EndsWithBothSidesSure) {
  for (const char* token : {"", "a secret"}) {
    ClientHandshake client(worker(), token, nonce(1));
    ServerHandshake server("server-0", token, nonce(2));
    ASSERT_TRUE(run(&client, &server).is_ok());
    EXPECT_TRUE(client.done());
    EXPECT_TRUE(server.done());
    EXPECT_EQ(client.version(), 1);
    EXPECT_EQ(client.server_name(), "server-0");
    EXPECT_EQ(server.peer().role, PeerRole::kWorker);
    EXPECT_EQ(server.peer().name, "worker-1");
  }
}

TEST(Handshake, TheTokenNeverTravels) {
  const std::string token = "a secret that is long enough to be seen";
  ClientHandshake client(worker(), token, nonce(1));
  ServerHandshake server("server-0", token, nonce(2));
  HandshakeFrame answer, proof;
  bool answered = false;
  std::string wire = client.hello().control;
  ASSERT_TRUE(server.receive(FrameKind::kHello, wire, &answer).is_ok());
  ASSERT_EQ(answer.kind, FrameKind::kChallenge);
  wire += answer.control;
  ASSERT_TRUE(client.receive(answer.kind, Code::kOk, answer.control, &proof, &answered).is_ok());
  wire += proof.control;
  ASSERT_TRUE(server.receive(FrameKind::kProof, proof.control, &answer).is_ok());
  wire += answer.control;
  for (size_t at = 0; at + 8 <= token.size(); ++at)
    EXPECT_EQ(wire.find(token.substr(at, 8)), std::string::npos);
  // The proof of one connection is worth nothing on another.
  ServerHandshake other("server-0", token, nonce(3));
  ASSERT_TRUE(other.receive(FrameKind::kHello, client.hello().control, &answer).is_ok());
  EXPECT_EQ(other.receive(FrameKind::kProof, proof.control, &answer).message(), "bad token");
  EXPECT_FALSE(other.done());
}

TEST(Handshake, WrongTokensAreRefused) {
  const auto outcome = [](const char* client_token, const char* server_token) {
    ClientHandshake client(worker(), client_token, nonce(1));
    ServerHandshake server("s", server_token, nonce(2));
    return run(&client, &server);
  };
  EXPECT_EQ(outcome("one", "two").message(), "bad token");
  EXPECT_EQ(outcome("", "two").message(), "a token is needed to connect here");
  EXPECT_NE(outcome("one", "").message().find("this listener has no token"), std::string::npos);
}

TEST(Handshake, AFalseListenerIsFoundOut) {
  ClientHandshake client(worker(), "secret", nonce(1));
  HandshakeFrame answer;
  bool answered = false;
  ByteWriter ok;
  ok.put<uint8_t>(1);
  ok.text("liar");
  ok.text("");
  EXPECT_EQ(client.receive(FrameKind::kHelloOk, Code::kOk, ok.str(), &answer, &answered).message(),
            "the listener does not ask for the token; it is not ours");
  ByteWriter challenge;
  challenge.put<uint8_t>(1);
  const Nonce n = nonce(9);
  challenge.bytes(n.data(), n.size());
  ASSERT_TRUE(client.receive(FrameKind::kChallenge, Code::kOk, challenge.str(), &answer, &answered)
                  .is_ok());
  ByteWriter lie;
  lie.put<uint8_t>(1);
  lie.text("liar");
  lie.text(answer.control);  // our own proof sent back
  EXPECT_EQ(client.receive(FrameKind::kHelloOk, Code::kOk, lie.str(), &answer, &answered).message(),
            "the listener does not know our token; it is not ours");
  EXPECT_FALSE(client.done());
}

TEST(Handshake, VersionsMustMeet) {
  const auto outcome = [](uint8_t low, uint8_t high) {
    HandshakeIdentity self = worker();
    self.version_min = low;
    self.version_max = high;
    ClientHandshake client(self, "", nonce(1));
    ServerHandshake server("s", "", nonce(2));
    return run(&client, &server);
  };
  EXPECT_TRUE(outcome(1, 1).is_ok());
  EXPECT_TRUE(outcome(1, 9).is_ok()) << "a newer client comes down";
  EXPECT_TRUE(outcome(0, 3).is_ok());
  EXPECT_NE(outcome(2, 9).message().find("versions 2 to 9 are not spoken here, only 1 to 1"),
            std::string::npos);
  EXPECT_EQ(outcome(0, 0).code(), Code::kInvalid);
  EXPECT_EQ(outcome(3, 2).message(), "handshake: malformed hello");
}

TEST(Handshake, MalformedOrUntimelyFramesAreRefused) {
  HandshakeFrame answer;
  const std::string hello = ClientHandshake(worker(), "", nonce(1)).hello().control;
  for (size_t size = 0; size < hello.size(); ++size) {
    ServerHandshake server("s", "", nonce(2));
    EXPECT_EQ(server.receive(FrameKind::kHello, hello.substr(0, size), &answer).code(),
              Code::kCorrupt);
    EXPECT_FALSE(server.done());
  }
  std::string strange = hello;
  strange[2] = 17;  // a role that is none
  ServerHandshake server("s", "", nonce(2));
  EXPECT_EQ(server.receive(FrameKind::kHello, strange, &answer).message(), "role 17 is not known");
  ServerHandshake hasty("s", "secret", nonce(2));
  EXPECT_EQ(hasty.receive(FrameKind::kProof, "", &answer).code(), Code::kCorrupt);
  EXPECT_EQ(hasty.receive(FrameKind::kRequest, "", &answer).code(), Code::kCorrupt);
  ClientHandshake client(worker(), "", nonce(1));
  bool answered = false;
  EXPECT_EQ(client.receive(FrameKind::kReply, Code::kOk, "", &answer, &answered).code(),
            Code::kCorrupt);
  EXPECT_EQ(
      client.receive(FrameKind::kRefuse, Code::kInvalid, "no\nentry", &answer, &answered).message(),
      "refused: no entry");
}

TEST(Address, AllForms) {
  EXPECT_EQ(parse_address("tcp:10.0.0.2:7000").value().text(), "tcp:10.0.0.2:7000");
  EXPECT_EQ(parse_address("host:7000").value().text(), "tcp:host:7000");
  EXPECT_EQ(parse_address("[::1]:0").value().text(), "tcp:[::1]:0");
  EXPECT_EQ(parse_address("unix:/tmp/x").value().text(), "unix:/tmp/x");
  for (const char* bad : {"", "host", "host:", ":7000", "host:70000", "host:-1", "host:7x", "::1:7",
                          "[::1:7", "unix:", "a b:1", "tcp:"}) {
    const auto parsed = parse_address(bad);
    ASSERT_FALSE(parsed.is_ok()) << bad;
    EXPECT_NE(parsed.status().message().find(bad), std::string::npos);
  }
  EXPECT_FALSE(parse_address("unix:/" + std::string(200, 'x')).is_ok());
  for (const char* near : {"127.0.0.1:1", "localhost:1", "[::1]:1", "unix:/x", "127.9.9.9:1"})
    EXPECT_TRUE(parse_address(near).value().is_loopback()) << near;
  for (const char* far : {"0.0.0.0:1", "[::]:1", "10.0.0.1:1", "127.example.org:1"})
    EXPECT_FALSE(parse_address(far).value().is_loopback()) << far;
}

TEST(BufferPool, UsesMemoryAgain) {
  BufferPool pool(2, 1U << 20U);
  const void* first = nullptr;
  for (int i = 0; i < 10; ++i) {
    const auto memory = pool.take(10, 200'000);
    if (i == 0) first = memory->payload.data();
    EXPECT_EQ(memory->payload.data(), first);
    EXPECT_EQ(memory->payload.size(), 200'000U);
    EXPECT_EQ(memory->control.size(), 10U);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory->payload.data()) % 64, 0U);
  }
  EXPECT_EQ(pool.allocated(), 1U);
  {
    const auto a = pool.take(0, 200'000), b = pool.take(0, 1), c = pool.take(0, 300'000);
    EXPECT_NE(a->payload.data(), c->payload.data());
  }
  EXPECT_EQ(pool.allocated(), 3U);
  { const auto huge = pool.take(0, 2U << 20U); }  // more than it may keep
  { const auto huge = pool.take(0, 2U << 20U); }
  EXPECT_EQ(pool.allocated(), 5U);
}

}  // namespace
}  // namespace flux
