// EtcdElection before servers that are no etcd, or a sick one: a clear failure within a deadline.
// What it does with a real etcd is in tests/e2e/election.py.
#include "flux/election/etcd_election.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "flux/election/open_election.h"

namespace flux {
namespace {

constexpr TimeNs kGenerous = 30 * kSecond;
constexpr TimeNs kShort = 300 * kMillisecond;

// Listens on a local port; every connection is given to `serve` on the server's one thread, after
// its request was read.
class OddServer {
 public:
  using Serve = std::function<void(int fd, const std::string& request)>;
  explicit OddServer(Serve serve) : serve_(std::move(serve)) {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    FLUX_CHECK(::bind(listener_, reinterpret_cast<sockaddr*>(&address), size) == 0, "bind");
    FLUX_CHECK(::listen(listener_, 16) == 0, "listen");
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { loop(); });
  }
  ~OddServer() {
    ending_ = true;
    thread_.join();
    ::close(listener_);
  }
  std::string url() const { return fmt::format("http://127.0.0.1:{}", port_); }
  uint16_t port() const { return port_; }
  // True soon after the test is over; a server that holds its client asks for it.
  bool ending() const { return ending_; }

 private:
  static bool readable(int fd) {
    pollfd wait{fd, POLLIN, 0};
    return ::poll(&wait, 1, 20) == 1;
  }
  // Closing with something unread would take back what was answered.
  static bool whole(const std::string& request) {
    const size_t head = request.find("\r\n\r\n");
    const size_t length = request.find("Content-Length: ");
    if (head == std::string::npos || length == std::string::npos) return false;
    return request.size() >= head + 4 + std::stoul(request.substr(length + 16, 8));
  }
  void loop() {
    while (!ending_) {
      if (!readable(listener_)) continue;
      const int fd = ::accept(listener_, nullptr, nullptr);
      if (fd < 0) continue;
      std::string request;
      char bytes[4096];
      while (!ending_ && !whole(request)) {
        if (!readable(fd)) continue;
        const ssize_t n = ::recv(fd, bytes, sizeof bytes, 0);
        if (n <= 0) break;
        request.append(bytes, static_cast<size_t>(n));
      }
      serve_(fd, request);
      ::close(fd);
    }
  }

  Serve serve_;
  int listener_ = -1;
  uint16_t port_ = 0;
  std::atomic<bool> ending_{false};
  std::thread thread_;
};

void put(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::send(fd, text.data(), text.size(), MSG_NOSIGNAL);
    if (n <= 0) return;
    text.remove_prefix(static_cast<size_t>(n));
  }
}

// Waits a moment, in a way that costs nothing.
void moment() {
  std::mutex mutex;
  std::condition_variable never;
  std::unique_lock lock(mutex);
  never.wait_for(lock, std::chrono::milliseconds(20));
}

std::string answer(int status, const std::string& body) {
  return fmt::format(
      "HTTP/1.1 {} X\r\nContent-Type: application/json\r\nContent-Length: {}\r\n"
      "Connection: close\r\n\r\n{}",
      status, body.size(), body);
}

EtcdElectionOptions options_for(const std::vector<uint16_t>& ports) {
  EtcdElectionOptions options;
  for (const uint16_t port : ports) options.etcd.endpoints.push_back({false, "127.0.0.1", port});
  options.job = "ctr";
  options.output = "/out";
  options.poll_ns = 10 * kMillisecond;
  options.first_answer_ns = 0;  // every endpoint once
  options.limit = {kGenerous, kGenerous};
  return options;
}

// What campaign() says before a server like this.
Status campaign_before(const OddServer& server, TimeNs attempt = kGenerous) {
  EtcdElectionOptions options = options_for({server.port()});
  options.limit.attempt = attempt;
  const auto election = EtcdElection::make(options);
  EXPECT_TRUE(election.is_ok());
  const TimeNs start = steady_now_ns();
  const Status status = election.value()->campaign(nullptr);
  EXPECT_LT(steady_now_ns() - start, 2 * kGenerous);
  EXPECT_FALSE(status.is_ok());
  EXPECT_NE(status.message().find(server.url()), std::string::npos) << status.message();
  EXPECT_EQ(election.value()->waiting_for(), "");
  EXPECT_EQ(election.value()->lease_held().code(), Code::kStale);
  EXPECT_EQ(election.value()->claim_term(0).status().code(), Code::kStale);
  return status;
}

void expect_words(const Status& status, const std::string& words) {
  EXPECT_NE(status.message().find(words), std::string::npos)
      << "'" << words << "' is not in: " << status.message();
}

TEST(EtcdElection, AnswersThatAreNone) {
  const std::string header = R"("header":{"cluster_id":"1","revision":"5"})";
  const std::vector<std::pair<std::string, std::string>> table = {
      {"", "closed the connection"},
      {"\x16\x03\x01 nonsense \xff\xfe", "closed the connection"},
      {"HTTP/1.1 200 OK\r\n\r\n", "does not answer as etcd"},
      {answer(200, ""), "does not answer as etcd"},
      {answer(200, "<html>welcome</html>"), "'<html>welcome</html>'"},
      {answer(200, "null"), "'null'"},
      {answer(200, "[1,2]"), "'[1,2]'"},
      {answer(200, "{}"), "no cluster in '{}'"},
      {answer(200, R"({"header":7})"), "no cluster"},
      {answer(200, R"({"header":{"cluster_id":"1"}})"), "no revision"},
      {answer(200, R"({"header":{"cluster_id":"1","revision":"x"}})"), "no revision"},
      {answer(200, R"({"header":{"cluster_id":"1","revision":{}}})"), "no revision"},
      {answer(200, "{" + header + "}"), "nothing to fail"},
      {answer(200, "{" + header + R"(,"succeeded":true})"), "another number of results"},
      {answer(200, "{" + header + R"(,"succeeded":"true","responses":[]})"), "nothing to fail"},
      {answer(200, "{" + header + R"(,"succeeded":true,"responses":"abc"})"), "no list"},
      {answer(200, "{" + header + R"(,"succeeded":true,"responses":[5]})"),
       "a result that is none"},
      {answer(200, "{" + header + R"(,"succeeded":true,"responses":[{"response_range":[]}]})"),
       "a result that is none"},
      {answer(200,
              "{" + header +
                  R"(,"succeeded":true,"responses":[{"response_range":{"kvs":[{"key":"!"}]}}]})"),
       "a key that cannot be read"},
      {answer(200,
              "{" + header + R"(,"succeeded":true,"responses":[{"response_range":{"kvs":"x"}}]})"),
       "a key that cannot be read"},
      {answer(200, std::string(100'000, '[')), "does not answer as etcd"},
      {answer(301, "moved"), "answers HTTP 301, not as etcd v3 does: 'moved'"},
      {answer(404, "404 page not found"), "answers HTTP 404"},
      {answer(503, R"({"error":"no leader","message":"etcdserver: no leader","code":14})"),
       "etcd fails: etcdserver: no leader (HTTP 503)"},
      {answer(200, R"({"error":{"grpc_code":14,"message":"stream ended"}})"), "stream ended"},
  };
  for (const auto& [text, words] : table) {
    SCOPED_TRACE(text.substr(0, 200));
    const OddServer server([&](int fd, const std::string&) { put(fd, text); });
    const Status status = campaign_before(server);
    EXPECT_EQ(status.code(), Code::kUnavailable);
    expect_words(status, words);
  }
}

TEST(EtcdElection, ARefusalForGoodIsNotRepeated) {
  std::atomic<int> asked{0};
  const OddServer server([&](int fd, const std::string& request) {
    ++asked;
    EXPECT_EQ(request.find("POST /v3/kv/txn HTTP/1.1\r\n"), 0U) << request;
    put(fd, answer(400, R"({"error":"x","message":"etcdserver: user name is empty","code":3})"));
  });
  const Status status = campaign_before(server);
  EXPECT_EQ(status.code(), Code::kInvalid);
  expect_words(status, "etcd refuses: etcdserver: user name is empty");
  EXPECT_EQ(asked, 1);
}

TEST(EtcdElection, TooLongAnAnswer) {
  const OddServer server([&](int fd, const std::string&) {
    put(fd, "HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n");
    put(fd, std::string(3 << 20, ' '));
  });
  expect_words(campaign_before(server), "more than 1048576 bytes");
}

TEST(EtcdElection, AServerThatHangs) {
  OddServer* self = nullptr;
  OddServer server([&](int, const std::string&) {
    while (!self->ending()) moment();
  });
  self = &server;
  expect_words(campaign_before(server, kShort), "does not answer within 0.3 s");
}

// Each byte comes in time, the answer never does.
TEST(EtcdElection, AServerThatDrips) {
  OddServer* self = nullptr;
  OddServer server([&](int fd, const std::string&) {
    put(fd, "HTTP/1.1 200 OK\r\nX: ");
    while (!self->ending() && ::send(fd, "x", 1, MSG_NOSIGNAL) == 1) moment();
  });
  self = &server;
  expect_words(campaign_before(server, kShort), "does not answer within 0.3 s");
}

TEST(EtcdElection, EveryEndpointThatFailedIsNamed) {
  const OddServer rude([](int, const std::string&) {});
  const OddServer odd([](int fd, const std::string&) { put(fd, answer(200, "{}")); });
  const auto election = EtcdElection::make(options_for({rude.port(), odd.port()}));
  const Status status = election.value()->campaign(nullptr);
  EXPECT_EQ(status.code(), Code::kUnavailable);
  expect_words(status, rude.url() + " closed the connection");
  expect_words(status, odd.url() + " does not answer as etcd");
}

// Somebody else leads, by the word of an etcd: the wait has a name, and ends when it is asked to.
TEST(EtcdElection, AStandbySaysForWhomItWaitsAndCanBeStopped) {
  // {"term":4,"name":"host.9","address":"tcp:h:1"} under a key of one letter.
  const std::string pair = R"({"key":"YQ==","create_revision":"3","lease":"7","value":)"
                           R"("eyJ0ZXJtIjo0LCJuYW1lIjoiaG9zdC45IiwiYWRkcmVzcyI6InRjcDpoOjEifQ=="})";
  const std::string held =
      R"({"header":{"cluster_id":"1","revision":"5"},"succeeded":true,"responses":)"
      R"([{"response_range":{"kvs":[)" +
      pair + "]}}]}";
  const OddServer server([&](int fd, const std::string&) { put(fd, answer(200, held)); });
  const auto election = EtcdElection::make(options_for({server.port()}));
  std::atomic<bool> stop{false};
  Status status;
  std::thread standby([&] { status = election.value()->campaign(&stop); });
  const TimeNs deadline = steady_now_ns() + kGenerous;
  std::string waiting;
  while ((waiting = election.value()->waiting_for()).empty() && steady_now_ns() < deadline)
    moment();
  EXPECT_EQ(waiting, "for host.9 (term 4, tcp:h:1), which leads job ctr, to end");
  stop = true;
  standby.join();
  EXPECT_EQ(status.code(), Code::kCancelled);
  EXPECT_EQ(election.value()->waiting_for(), "");
  EXPECT_EQ(election.value()->leader().value().who.address, "tcp:h:1");
}

TEST(EtcdElection, OptionsAreChecked) {
  const auto refused = [](const std::function<void(EtcdElectionOptions*)>& change) {
    EtcdElectionOptions options = options_for({1});
    change(&options);
    const auto made = EtcdElection::make(options);
    EXPECT_EQ(made.status().code(), Code::kInvalid);
    return made.status().message();
  };
  EXPECT_NE(refused([](auto* o) { o->ttl_s = 1; }).find("2 to 60 s"), std::string::npos);
  EXPECT_NE(refused([](auto* o) { o->ttl_s = 61; }).find("2 to 60 s"), std::string::npos);
  EXPECT_NE(refused([](auto* o) { o->job = ""; }).find("job's name"), std::string::npos);
  EXPECT_NE(refused([](auto* o) { o->output = "out"; }).find("absolute"), std::string::npos);
  EXPECT_NE(refused([](auto* o) { o->etcd.endpoints.clear(); }).find("no etcd endpoint"),
            std::string::npos);
  EXPECT_NE(refused([](auto* o) { o->etcd.ca_file = "/ca.pem"; }).find("without TLS"),
            std::string::npos);
  EXPECT_NE(refused([](auto* o) {
              o->etcd.endpoints[0].tls = true;
              o->etcd.ca_file = "/nowhere/ca.pem";
            }).find("/nowhere/ca.pem: cannot be read"),
            std::string::npos);
  EXPECT_NE(refused([](auto* o) { o->etcd.certificate = "/x.pem"; }).find("needs its key"),
            std::string::npos);
  ElectionSetup setup;
  setup.files = &real_files();
  setup.output = "/out";
  setup.job = "ctr";
  setup.etcd = "a:2379";
  EXPECT_EQ(open_election(setup).status().code(), Code::kInvalid);
  setup.etcd = "";
  EXPECT_TRUE(open_election(setup).is_ok());
}

}  // namespace
}  // namespace flux
