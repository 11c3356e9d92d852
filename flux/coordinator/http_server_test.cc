// The HTTP interface over a real socket: what is answered, to whom, and what is refused.
#include "flux/coordinator/http_server.h"

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "flux/coordinator/http_client.h"
#include "flux/coordinator/status_json.h"
#include "flux/rpc/certs.h"

namespace flux {
namespace {

constexpr const char* kToken = "0123456789abcdef";

class HttpServerTest : public testing::Test {
 protected:
  void SetUp() override {
    options_.token = kToken;
    hooks_.status = [] {
      JobStatus status;
      status.job = "test";
      status.state = "training";
      return status;
    };
    hooks_.stop = [this](const std::string&) { ++stops_; };
    hooks_.logs = [] { return std::string("line\n"); };
    auto started = HttpServer::start(options_, hooks_);
    ASSERT_TRUE(started.is_ok()) << started.status().message();
    server_ = std::move(started).value();
    port_ = static_cast<uint16_t>(std::stoi(server_->url().substr(server_->url().rfind(':') + 1)));
  }

  // Sends bytes as they are and reads until the other side closes.
  std::string exchange(const std::string& bytes) const {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port_);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return "";
    EXPECT_EQ(::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
    std::string answer;
    char buffer[4096];
    for (ssize_t n; (n = ::read(fd, buffer, sizeof buffer)) > 0;)
      answer.append(buffer, static_cast<size_t>(n));
    ::close(fd);
    return answer;
  }
  std::string host() const { return "Host: 127.0.0.1:" + std::to_string(port_) + "\r\n"; }
  std::string get(const std::string& path, const std::string& headers) const {
    return exchange("GET " + path + " HTTP/1.1\r\n" + headers + "\r\n");
  }
  std::string post(const std::string& headers) const {
    return exchange("POST /stop HTTP/1.1\r\n" + headers + "Content-Length: 2\r\n\r\n{}");
  }
  static int code(const std::string& answer) {
    return answer.starts_with("HTTP/1.1 ") ? std::stoi(answer.substr(9, 3)) : 0;
  }

  HttpOptions options_;
  HttpHooks hooks_;
  std::atomic<int> stops_{0};
  std::unique_ptr<HttpServer> server_;
  uint16_t port_ = 0;
};

TEST_F(HttpServerTest, ReadersAreAnswered) {
  const std::string status = get("/status", host());
  EXPECT_EQ(code(status), 200) << status;
  const auto parsed = parse_status_json(status.substr(status.find("\r\n\r\n") + 4));
  ASSERT_TRUE(parsed.is_ok()) << status;
  EXPECT_EQ(parsed.value().state, "training");
  EXPECT_NE(get("/metrics", host()).find("# HELP flux_"), std::string::npos);
  EXPECT_NE(get("/healthz", host()).find("ok"), std::string::npos);
  EXPECT_NE(get("/logs", host()).find("line"), std::string::npos);
  EXPECT_EQ(code(get("/healthz", "Host: localhost\r\n")), 200);
  EXPECT_EQ(code(get("/", host())), 404);
  EXPECT_EQ(code(get("/../../etc/passwd", host())), 404);
  EXPECT_EQ(code(get("/status%00", host())), 404);
}

TEST_F(HttpServerTest, ForeignNamesAndPagesAreRefused) {
  EXPECT_EQ(code(get("/status", "Host: evil.example\r\n")), 421);
  EXPECT_EQ(code(get("/status", "Host: 127.0.0.1.evil.example\r\n")), 421);
  EXPECT_EQ(code(get("/status", "")), 421);
  EXPECT_EQ(code(get("/status", host() + "Host: evil.example\r\n")), 421);
  EXPECT_EQ(code(get("/status", host() + "Origin: http://evil.example\r\n")), 403);
  EXPECT_EQ(code(get("/status", host() + "Origin: null\r\n")), 403);
  const std::string own = "Origin: http://127.0.0.1:" + std::to_string(port_) + "\r\n";
  EXPECT_EQ(code(get("/status", host() + own)), 200);
}

TEST_F(HttpServerTest, StopNeedsTheTokenAndAJsonType) {
  const std::string token = std::string("Authorization: Bearer ") + kToken + "\r\n";
  const std::string json = "Content-Type: application/json\r\n";
  EXPECT_EQ(code(post(host() + json)), 401);
  EXPECT_EQ(code(post(host() + json + "Authorization: Bearer \r\n")), 401);
  EXPECT_EQ(code(post(host() + json + "Authorization: Bearer 0123456789abcdeX\r\n")), 401);
  EXPECT_EQ(code(post(host() + token)), 415);
  EXPECT_EQ(code(post(host() + token + "Content-Type: text/plain\r\n")), 415);
  EXPECT_EQ(code(post(host() + token + json + "Origin: http://evil.example\r\n")), 403);
  EXPECT_EQ(code(get("/stop", host() + token)), 404);
  EXPECT_EQ(stops_, 0);
  EXPECT_EQ(code(post(host() + token + json)), 202);
  EXPECT_EQ(stops_, 1);
}

TEST_F(HttpServerTest, LargeAndOddRequestsAreRefused) {
  const std::string token = std::string("Authorization: Bearer ") + kToken + "\r\n";
  const std::string large =
      exchange("POST /stop HTTP/1.1\r\n" + host() + token +
               "Content-Type: application/json\r\nContent-Length: 1000000\r\n\r\n");
  EXPECT_EQ(code(large), 413) << large;
  EXPECT_NE(code(get("/" + std::string(100000, 'a'), host())), 200);
  exchange(std::string("\x16\x03\x01\x02\x00\x01\x00\xff", 8) + "\r\n\r\n");
  EXPECT_EQ(stops_, 0);
  EXPECT_EQ(code(get("/healthz", host())), 200);
}

TEST_F(HttpServerTest, APortInUseIsNamed) {
  HttpOptions same = options_;
  same.port = port_;
  const auto second = HttpServer::start(same, hooks_);
  ASSERT_FALSE(second.is_ok());
  EXPECT_EQ(second.status().code(), Code::kInvalid);
  EXPECT_NE(second.status().message().find(std::to_string(port_)), std::string::npos);
  EXPECT_NE(second.status().message().find("in use"), std::string::npos)
      << second.status().message();
}

TEST_F(HttpServerTest, BeyondThisHostNeedsTls) {
  HttpOptions open = options_;
  open.host = "0.0.0.0";
  const auto refused = HttpServer::start(open, hooks_);
  ASSERT_FALSE(refused.is_ok());
  EXPECT_NE(refused.status().message().find("--insecure"), std::string::npos);
  open.insecure = true;
  EXPECT_TRUE(HttpServer::start(open, hooks_).is_ok());
  open.certificates = "/no/such/folder";
  const auto missing = HttpServer::start(open, hooks_);
  ASSERT_FALSE(missing.is_ok());
  EXPECT_NE(missing.status().message().find("/no/such/folder"), std::string::npos);
}

class HttpsTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string folder = (std::filesystem::temp_directory_path() / "flux_https.XXXXXX").string();
    ASSERT_NE(::mkdtemp(folder.data()), nullptr);
    folder_ = folder;
    for (const char* name : {"/ours", "/theirs"})
      ASSERT_TRUE(make_certificates(folder_ + name, {}).is_ok());
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  Result<std::unique_ptr<HttpServer>> serve(const std::string& certificates) {
    HttpOptions options;
    options.host = "0.0.0.0";
    options.token = kToken;
    options.certificates = certificates;
    return HttpServer::start(options, {[] { return JobStatus(); }, [](const std::string&) {}, {}});
  }
  HttpTarget target(const HttpServer& server) const {
    HttpTarget target;
    target.url = server.url();
    target.url.replace(target.url.find("0.0.0.0"), 7, "127.0.0.1");
    return target;
  }
  std::string folder_;
};

TEST_F(HttpsTest, ReadersShowACertificateOrTheToken) {
  const auto server = serve(folder_ + "/ours");
  ASSERT_TRUE(server.is_ok()) << server.status().message();
  HttpTarget with = target(*server.value());
  with.certificates = folder_ + "/ours";
  const auto read = http_get(with, "/status");
  EXPECT_TRUE(read.is_ok()) << read.status().message();
  // The authority alone, without a certificate of one's own: nobody in particular.
  HttpTarget nobody = with;
  nobody.certificates = folder_ + "/only_authority";
  std::filesystem::create_directory(nobody.certificates);
  std::filesystem::copy(folder_ + "/ours/ca.pem", nobody.certificates);
  EXPECT_EQ(http_get(nobody, "/status").status().code(), Code::kInvalid);
  EXPECT_TRUE(http_get(nobody, "/healthz").is_ok());
  nobody.token = kToken;
  EXPECT_TRUE(http_get(nobody, "/status").is_ok());
  // A certificate reads; only the token changes anything.
  EXPECT_EQ(http_post_json(with, "/stop", "{}").status().code(), Code::kInvalid);
  EXPECT_TRUE(http_post_json(nobody, "/stop", "{}").is_ok());
}

TEST_F(HttpsTest, ForeignAuthoritiesAndOtherRolesAreNotBelieved) {
  const auto server = serve(folder_ + "/ours");
  ASSERT_TRUE(server.is_ok());
  HttpTarget foreign = target(*server.value());
  foreign.token = kToken;
  foreign.certificates = folder_ + "/theirs";
  EXPECT_EQ(http_get(foreign, "/status").status().code(), Code::kUnavailable);
  foreign.certificates = "";
  EXPECT_EQ(http_get(foreign, "/status").status().code(), Code::kInvalid);

  // A worker of the same job that plays the coordinator must not be told the admin token.
  const std::string fake = folder_ + "/fake";
  std::filesystem::create_directory(fake);
  std::filesystem::copy(folder_ + "/ours/ca.pem", fake);
  std::filesystem::copy(folder_ + "/ours/worker.pem", fake + "/coordinator.pem");
  std::filesystem::copy(folder_ + "/ours/worker.key", fake + "/coordinator.key");
  const auto impostor = serve(fake);
  ASSERT_TRUE(impostor.is_ok()) << impostor.status().message();
  HttpTarget fooled = target(*impostor.value());
  fooled.certificates = folder_ + "/ours";
  fooled.token = kToken;
  EXPECT_EQ(http_get(fooled, "/status").status().code(), Code::kUnavailable);
}

}  // namespace
}  // namespace flux
