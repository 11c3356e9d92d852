// What a listener refuses, and how it says so: hostile bytes, limits, exposure.
#include "flux/rpc/listener.h"

#include <string>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "flux/rpc/address.h"
#include "flux/rpc/frame.h"
#include "flux/rpc/handshake.h"
#include "flux/rpc/test_peer.h"

namespace flux {
namespace {

using test::bytes_of;
using test::Client;
using test::kAdminOnly;
using test::kEcho;
using test::kKeep;
using test::Outcome;
using test::Server;

// A peer that writes what it likes. Reads block, at most half a minute.
class RawPeer {
 public:
  explicit RawPeer(const std::string& address) : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    name.sin_port = htons(parse_address(address).value().port);
    const timeval limit{30, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    EXPECT_EQ(::connect(fd_, reinterpret_cast<const sockaddr*>(&name), sizeof name), 0);
  }
  ~RawPeer() { ::close(fd_); }
  RawPeer(const RawPeer&) = delete;
  RawPeer& operator=(const RawPeer&) = delete;
  void write(std::string_view bytes) {
    EXPECT_EQ(::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  // All bytes until the listener closes.
  std::string rest() {
    std::string all;
    char some[4096];
    for (ssize_t n; (n = ::recv(fd_, some, sizeof some, 0)) > 0;)
      all.append(some, static_cast<size_t>(n));
    return all;
  }
  std::string read(size_t size) {
    std::string all(size, '\0');
    const ssize_t n = ::recv(fd_, all.data(), size, MSG_WAITALL);
    all.resize(n > 0 ? static_cast<size_t>(n) : 0);
    return all;
  }
  void hang_up() { ::shutdown(fd_, SHUT_WR); }

 private:
  int fd_;
};

std::string frame(FrameHeader header, const std::string& control, const std::string& payload = "") {
  const std::vector<ByteSpan> spans = {bytes_of(payload)};
  const FrameHeader made = make_header(header.kind, control, spans);
  header.control_bytes = made.control_bytes;
  header.payload_bytes = made.payload_bytes;
  header.control_check = made.control_check;
  header.payload_check = made.payload_check;
  const FrameHeaderBytes head = encode_header(header);
  return std::string(reinterpret_cast<const char*>(head.data()), head.size()) + control + payload;
}
std::string frame(FrameKind kind, const std::string& control) {
  FrameHeader header;
  header.kind = kind;
  return frame(header, control);
}
std::string request(uint64_t call, const std::string& payload) {
  FrameHeader header;
  header.kind = FrameKind::kRequest;
  header.verb = kEcho;
  header.call = call;
  return frame(header, "c", payload);
}

HandshakeFrame hello_frame() {
  return ClientHandshake({PeerRole::kWorker, "raw"}, "", random_nonce()).hello();
}

// Says hello and reads the answer, so that requests may follow.
void greet(RawPeer* peer) {
  peer->write(frame(FrameKind::kHello, hello_frame().control));
  const std::string head = peer->read(kFrameHeaderBytes);
  ASSERT_EQ(head.size(), kFrameHeaderBytes);
  const auto parsed = parse_header(
      std::span<const std::byte, kFrameHeaderBytes>(bytes_of(head).data(), kFrameHeaderBytes), {});
  ASSERT_TRUE(parsed.is_ok());
  ASSERT_EQ(parsed.value().kind, FrameKind::kHelloOk);
  peer->read(parsed.value().control_bytes);
}

// The text of the refusal that ends `bytes`, or "".
std::string refusal_in(const std::string& bytes) {
  const size_t at = bytes.rfind("FLXR");
  if (at == std::string::npos || bytes.size() < at + kFrameHeaderBytes) return "";
  const auto parsed = parse_header(
      std::span<const std::byte, kFrameHeaderBytes>(bytes_of(bytes).data() + at, kFrameHeaderBytes),
      {});
  if (!parsed.is_ok() || parsed.value().kind != FrameKind::kRefuse) return "";
  return bytes.substr(at + kFrameHeaderBytes);
}

struct Hostile {
  const char* name;
  bool greeted;
  std::string bytes;
  const char* reason;
};

std::vector<Hostile> hostile_cases() {
  FrameHeader old;
  old.kind = FrameKind::kHello;
  old.version = 0;
  std::string bad_sum = request(1, "payload");
  bad_sum.back() ^= 1;
  std::string bad_header = request(1, "payload");
  bad_header[20] ^= 1;
  FrameHeader big;
  big.kind = FrameKind::kRequest;
  big.call = 1;
  big.payload_bytes = 1ULL << 40U;
  const FrameHeaderBytes oversized = encode_header(big);
  std::string hello = hello_frame().control;
  std::string newer = hello, stranger = hello;
  newer[0] = newer[1] = 9;
  stranger[2] = 77;
  FrameHeader reply;
  reply.kind = FrameKind::kReply;
  reply.call = 1;
  return {
      {"http", false, "GET / HTTP/1.1\r\nHost: x\r\n\r\n", "the peer speaks HTTP"},
      {"tls", false, "\x16\x03\x01\x02", "the peer speaks TLS"},
      {"noise", false, std::string(100, '\x7f'), "bad magic"},
      {"old version", false, frame(old, "x"), "frame of version 0; this end speaks 1 to 1"},
      {"newer version", false, frame(FrameKind::kHello, newer), "versions 9 to 9 are not spoken"},
      {"role", false, frame(FrameKind::kHello, stranger), "role 77 is not known"},
      {"cut hello", false, frame(FrameKind::kHello, hello.substr(0, 9)), "malformed hello"},
      {"long hello", false, frame(FrameKind::kHello, std::string(5000, 'x')),
       "frame with 5000 control bytes; at most 4096"},
      {"hasty", false, request(1, ""), "order of frames"},
      {"checksum", true, bad_sum, "bad frame checksum (payload)"},
      {"header", true, bad_header, "bad frame header checksum"},
      {"oversized", true,
       std::string(reinterpret_cast<const char*>(oversized.data()), oversized.size()),
       "frame with 1099511627776 payload bytes; at most 1073741824"},
      {"twice", true, request(5, "a") + request(5, "b"), "the number of a call was used twice"},
      {"reply", true, frame(reply, ""), "a frame of kind 7 at the wrong time"},
      {"hello again", true, frame(FrameKind::kHello, hello), "a frame of kind 1 at the wrong time"},
  };
}

TEST(Listener, HostileBytesEndOneConnectionWithOneLine) {
  Server server;
  Client bystander(server.address());
  const auto kept = bystander.start(kKeep);
  ASSERT_TRUE(bystander.until([&] { return server.service.kept_count() == 1; }));
  for (const Hostile& hostile : hostile_cases()) {
    RawPeer peer(server.address());
    if (hostile.greeted) greet(&peer);
    peer.write(hostile.bytes);
    const std::string told = refusal_in(peer.rest());
    EXPECT_NE(told.find(hostile.reason), std::string::npos) << hostile.name << ": " << told;
    EXPECT_TRUE(server.logged(told + "; connection closed")) << server.all_logs();
  }
  EXPECT_TRUE(bystander.call(kEcho).status.is_ok()) << "nobody else is disturbed";
  server.service.release();
  EXPECT_TRUE(bystander.wait(kept).status.is_ok());
}

TEST(Listener, ACutFrameIsLogged) {
  Server server;
  {
    RawPeer peer(server.address());
    greet(&peer);
    peer.write(request(1, "payload").substr(0, 60));
    peer.hang_up();
    EXPECT_EQ(peer.rest(), "");
  }
  EXPECT_TRUE(server.logged("the peer closed in the middle of a frame; connection closed"))
      << server.all_logs();
}

TEST(Listener, PeersWhoDawdleAreClosed) {
  ListenerOptions options;
  options.handshake_timeout_ns = kMillisecond;
  Server hasty(options);
  RawPeer silent(hasty.address());
  EXPECT_EQ(silent.rest(), "");
  EXPECT_TRUE(hasty.logged("the handshake is not over for 1 ms; connection closed"))
      << hasty.all_logs();

  options = {};
  options.stall_timeout_ns = kMillisecond;
  Server strict(options);
  RawPeer slow(strict.address());
  greet(&slow);
  slow.write(request(1, "payload").substr(0, 60));
  EXPECT_EQ(slow.rest(), "");
  EXPECT_TRUE(strict.logged("no byte in the middle of a frame for 1 ms")) << strict.all_logs();

  options = {};
  options.idle_timeout_ns = kMillisecond;
  Server busy(options);
  RawPeer idle(busy.address());
  greet(&idle);
  EXPECT_NE(idle.rest().find("no request for too long"), std::string::npos);
}

TEST(Listener, ConnectionsBeyondTheCapAreToldSo) {
  ListenerOptions options;
  options.connections_max = 2;
  Server server(options);
  Client a(server.address()), b(server.address()), c(server.address());
  EXPECT_TRUE(a.call(kEcho).status.is_ok());
  EXPECT_TRUE(b.call(kEcho).status.is_ok());
  const Outcome refused = c.call(kEcho, "", {}, 100 * kMillisecond);
  EXPECT_EQ(refused.status.code(), Code::kUnavailable);
  EXPECT_NE(refused.status.message().find("there are 2 connections already; try later"),
            std::string::npos)
      << refused.status.message();
  EXPECT_TRUE(server.logged("there are 2 connections already"));
  a.channel.reset();
  EXPECT_TRUE(c.call(kEcho).status.is_ok()) << "a place is free again";
}

TEST(Listener, AFloodOfRequestsIsHeldBack) {
  ListenerOptions options;
  options.in_flight_max = 3;
  Server server(options);
  Client client(server.address());
  std::vector<std::shared_ptr<Outcome>> calls;
  for (int i = 0; i < 10; ++i) calls.push_back(client.start(kKeep));
  size_t over = 0;
  while (over < calls.size()) {
    ASSERT_TRUE(client.until([&] { return server.service.kept_count() > 0; }));
    EXPECT_LE(server.service.kept_count(), 3U);
    over += server.service.release();
  }
  for (const auto& call : calls) EXPECT_TRUE(client.wait(call).status.is_ok());

  options = {};
  options.in_flight_bytes_max = 1000;  // one at a time, but each of them
  Server narrow(options);
  Client sender(narrow.address());
  const std::string payload = test::pattern(5000, 1);
  calls.clear();
  for (int i = 0; i < 10; ++i) calls.push_back(sender.start(kEcho, "", {bytes_of(payload)}));
  for (const auto& call : calls)
    EXPECT_TRUE(test::text_of(sender.wait(call).reply.payload) == payload);
}

TEST(Listener, RolesUseOnlyTheirVerbs) {
  Server server;
  Client worker(server.address());
  const Outcome refused = worker.call(kAdminOnly);
  EXPECT_EQ(refused.status.code(), Code::kInvalid);
  EXPECT_EQ(refused.status.message(), "role worker may not use verb 7");
  EXPECT_TRUE(worker.call(kEcho).status.is_ok());
  SocketChannelOptions options;
  options.role = PeerRole::kAdmin;
  Client admin(server.address(), options);
  EXPECT_TRUE(admin.call(kAdminOnly).status.is_ok());
  EXPECT_EQ(server.service.last_role, PeerRole::kAdmin);
}

TEST(Listener, TokensMustMatch) {
  const auto outcome = [](const char* listener_token, const char* client_token,
                          std::string* logged) {
    ListenerOptions options;
    options.security.token = listener_token;
    Server server(options);
    SocketChannelOptions mine;
    mine.security.token = client_token;
    Client client(server.address(), mine);
    const Status status = client.call(kEcho).status;
    server.listener.reset();
    *logged = server.all_logs();
    return status;
  };
  std::string logged;
  EXPECT_TRUE(outcome("secret", "secret", &logged).is_ok());
  EXPECT_EQ(logged, "");
  Status status = outcome("secret", "wrong", &logged);
  EXPECT_EQ(status.code(), Code::kInvalid);
  EXPECT_NE(status.message().find("refused: bad token"), std::string::npos) << status.message();
  EXPECT_NE(logged.find("bad token; connection closed\n"), std::string::npos) << logged;
  status = outcome("secret", "", &logged);
  EXPECT_NE(status.message().find("a token is needed to connect here"), std::string::npos);
  status = outcome("", "secret", &logged);
  EXPECT_NE(status.message().find("this listener has no token"), std::string::npos);
}

TEST(Listener, WillNotListenBeyondThisHostWithoutALock) {
  test::PeerService service;
  ListenerOptions options;
  options.addresses = {"0.0.0.0:0"};
  const auto refused = Listener::start(options, service);
  ASSERT_FALSE(refused.is_ok());
  EXPECT_EQ(refused.status().code(), Code::kInvalid);
  EXPECT_NE(refused.status().message().find("certificates (`flux certs` makes them) or a token"),
            std::string::npos);
  options.security.insecure = true;
  EXPECT_TRUE(Listener::start(options, service).is_ok());
  options.security = {};
  options.security.token = "secret";
  EXPECT_TRUE(Listener::start(options, service).is_ok());
}

TEST(Listener, AddressesInUseAreNamed) {
  Server server;
  test::PeerService service;
  ListenerOptions options;
  options.addresses = {server.address()};
  auto second = Listener::start(options, service);
  ASSERT_FALSE(second.is_ok());
  EXPECT_EQ(second.status().message().find("cannot listen on " + server.address() + ": "), 0U)
      << second.status().message();
  EXPECT_NE(second.status().message().find("another process listens there"), std::string::npos);

  options.addresses = {test::unix_address("used")};
  {
    Server local(options);
    EXPECT_FALSE(Listener::start(options, service).is_ok());
    Client client(local.address());
    EXPECT_TRUE(client.call(kEcho).status.is_ok()) << "the failed one left it alone";
  }
  // A socket file of a process that died is taken over.
  const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  const std::string path = parse_address(options.addresses[0]).value().host;
  path.copy(name.sun_path, sizeof name.sun_path - 1);
  ASSERT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&name), sizeof name), 0);
  ::close(fd);
  EXPECT_TRUE(Listener::start(options, service).is_ok());
  options.addresses = {"256.1.1.1:1"};
  EXPECT_FALSE(Listener::start(options, service).is_ok());
}

TEST(Listener, AClientMeetsAStranger) {
  // Something else listens where a flux server was expected.
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof name;
  ASSERT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&name), size), 0);
  ASSERT_EQ(::listen(fd, 4), 0);
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&name), &size);
  Client client("127.0.0.1:" + std::to_string(ntohs(name.sin_port)));
  const auto outcome = client.start(kEcho);
  int peer = -1;
  ASSERT_TRUE(client.until([&] {
    if (peer < 0) peer = ::accept4(fd, nullptr, nullptr, SOCK_CLOEXEC);
    return peer >= 0;
  }));
  const std::string answer = "HTTP/1.1 400 Bad Request\r\n\r\n";
  EXPECT_GT(::send(peer, answer.data(), answer.size(), MSG_NOSIGNAL), 0);
  EXPECT_NE(client.wait(outcome).status.message().find("the peer speaks HTTP"), std::string::npos)
      << outcome->status.message();
  ::close(peer);
  ::close(fd);
}

}  // namespace
}  // namespace flux
