// Mutual TLS: a job's certificates let its own roles in and nobody else.
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "flux/rpc/certs.h"
#include "flux/rpc/test_peer.h"
#include "flux/rpc/tls_context.h"

namespace flux {
namespace {

using test::bytes_of;
using test::Client;
using test::kEcho;
using test::kSplit;
using test::Outcome;
using test::pattern;
using test::Server;
using test::text_of;

std::string fresh_folder(const std::string& name) {
  const std::string path =
      ::testing::TempDir() + "flux-tls-" + std::to_string(::getpid()) + "-" + name;
  std::filesystem::remove_all(path);
  return path;
}

// Certificates of one job, for the life of a test.
class Job {
 public:
  explicit Job(const std::string& name, const CertificateOptions& options = {})
      : folder(fresh_folder(name)) {
    const Status made = make_certificates(folder, options);
    EXPECT_TRUE(made.is_ok()) << made.message();
  }
  ~Job() { std::filesystem::remove_all(folder); }
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;
  std::string folder;
};

ListenerOptions listening(const Job& job, PeerRole role = PeerRole::kServer) {
  ListenerOptions options;
  options.role = role;
  options.security.certificates = job.folder;
  return options;
}
SocketChannelOptions calling(const Job& job, PeerRole role = PeerRole::kWorker) {
  SocketChannelOptions options;
  options.role = role;
  options.security.certificates = job.folder;
  return options;
}

TEST(Tls, CarriesCallsOfAllSizes) {
  const Job job("sizes");
  Server server(listening(job));
  Client client(server.address(), calling(job));
  for (const size_t size : {0UL, 1UL, 16'383UL, 16'384UL, 100'000UL, 5'000'000UL}) {
    const std::string sent = pattern(size, 1);
    std::vector<ByteSpan> spans;
    for (size_t at = 0, i = 1; at < size; at += spans.back().size(), ++i)
      spans.push_back(bytes_of(sent).subspan(at, std::min(size - at, i * 37 % 40'000 + 1)));
    const Outcome got = client.call(kSplit, "control", spans);
    ASSERT_TRUE(got.status.is_ok()) << got.status.message();
    EXPECT_TRUE(text_of(got.reply.payload) == sent) << size;
  }
  EXPECT_EQ(server.service.last_role, PeerRole::kWorker);
  EXPECT_GT(client.channel->counters().payload_bytes_copied, 0U) << "and TLS says so";
}

TEST(Tls, ManyCallsAtOnceBothWays) {
  const Job job("many");
  Server server(listening(job));
  Client client(server.address(), calling(job));
  const std::string sent = pattern(700'000, 3);
  std::vector<std::shared_ptr<Outcome>> calls;
  for (int i = 0; i < 30; ++i) {
    calls.push_back(client.start(kEcho, std::to_string(i), {bytes_of(sent)}));
    if (i % 5 == 4) client.channel->cancel(client.last_id);
  }
  for (size_t i = 0; i < calls.size(); ++i) {
    const Outcome got = client.wait(calls[i]);
    EXPECT_EQ(got.count, 1);
    EXPECT_TRUE(!got.status.is_ok() || text_of(got.reply.payload) == sent);
  }
  EXPECT_TRUE(client.call(kEcho).status.is_ok());
}

TEST(Tls, ATokenMayComeOnTop) {
  const Job job("token");
  ListenerOptions options = listening(job);
  options.security.token = "secret";
  Server server(options);
  SocketChannelOptions mine = calling(job);
  mine.security.token = "secret";
  Client client(server.address(), mine);
  EXPECT_TRUE(client.call(kEcho).status.is_ok());
}

// The outcome of one call, and what the listener logged.
std::pair<Status, std::string> outcome(const ListenerOptions& theirs,
                                       const SocketChannelOptions& mine) {
  Server server(theirs);
  Client client(server.address(), mine);
  Status status = client.call(kEcho, "", {}, 5 * kSecond).status;
  client.until([&] { return !server.all_logs().empty() || status.is_ok(); });
  return {std::move(status), server.all_logs()};
}

void expect_refused(const std::pair<Status, std::string>& got, const char* client_part,
                    const char* listener_part) {
  EXPECT_EQ(got.first.code(), Code::kInvalid) << got.first.message();
  EXPECT_NE(got.first.message().find(client_part), std::string::npos) << got.first.message();
  EXPECT_NE(got.second.find(listener_part), std::string::npos) << got.second;
}

TEST(Tls, AnotherJobsCertificatesAreRefused) {
  const Job job("mine"), other("other");
  expect_refused(outcome(listening(job), calling(other)), "the peer's certificate is not accepted",
                 "the peer refuses our certificate");
}

TEST(Tls, BothEndsMustUseIt) {
  const Job job("both");
  expect_refused(outcome(listening(job), {}), "certificates (TLS) are needed to connect here",
                 "certificates (TLS) are needed to connect here; connection closed");
  expect_refused(outcome({}, calling(job)), "the peer does not use TLS", "the peer speaks TLS");
}

TEST(Tls, TheRoleIsThatOfTheCertificate) {
  const Job job("role");
  const std::string lie = fresh_folder("lie");
  std::filesystem::create_directory(lie);
  for (const char* end : {".pem", ".key"})  // a worker that calls itself admin
    std::filesystem::copy(job.folder + "/worker" + end, lie + "/admin" + end);
  std::filesystem::copy(job.folder + "/ca.pem", lie + "/ca.pem");
  SocketChannelOptions liar;
  liar.role = PeerRole::kAdmin;
  liar.security.certificates = lie;
  expect_refused(outcome(listening(job), liar),
                 "the peer says it is a admin, its certificate is that of a worker",
                 "the peer says it is a admin, its certificate is that of a worker");
  const auto worker = outcome(listening(job, PeerRole::kWorker), calling(job));
  EXPECT_NE(worker.first.message().find("certificate is that of a worker, who may not listen"),
            std::string::npos)
      << worker.first.message();
  std::filesystem::remove_all(lie);
}

// Both ends of a TLS handshake over a pair of sockets; the failures of client and listener.
std::pair<std::string, std::string> shake_hands(TlsContext& client, TlsContext& server) {
  int fds[2];
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
  const auto a = client.connect(fds[0]);
  const auto b = server.accept(fds[1]);
  std::string said[2];
  bool over[2] = {};
  for (int turn = 0; turn < 100 && !(over[0] && over[1]); ++turn) {
    for (int side = 0; side < 2; ++side) {
      if (over[side]) continue;
      Status failure;
      const IoResult io = (side == 0 ? a : b)->handshake(&failure);
      over[side] = io.outcome == IoOutcome::kBytes || io.outcome == IoOutcome::kFailed;
      if (io.outcome == IoOutcome::kFailed) said[side] = failure.message();
    }
  }
  ::close(fds[0]);
  ::close(fds[1]);
  return {said[0], said[1]};
}

TEST(Tls, ExpiredCertificatesAreRefusedByTheirOwnersAndByPeers) {
  CertificateOptions past;
  past.days = 1;
  past.starts_s = -3 * 86400;
  const Job job("past", past), good("now");
  const auto loaded = TlsContext::load(job.folder, PeerRole::kServer);
  ASSERT_FALSE(loaded.is_ok());
  EXPECT_NE(loaded.status().message().find("server.pem: the certificate has expired"),
            std::string::npos);
  past.starts_s = 86400;
  const Job future("future", past);
  EXPECT_NE(
      TlsContext::load(future.folder, PeerRole::kServer).status().message().find("not valid yet"),
      std::string::npos);
  const auto old = TlsContext::load(job.folder, PeerRole::kServer, true).value();
  const auto worker = TlsContext::load(job.folder, PeerRole::kWorker, true).value();
  EXPECT_NE(shake_hands(*worker, *old).first.find("certificate has expired"), std::string::npos);
  const auto fine = TlsContext::load(good.folder, PeerRole::kServer).value();
  EXPECT_EQ(shake_hands(*fine, *fine), (std::pair<std::string, std::string>("", "")));
}

TEST(Certs, FilesAreSecretAndNeverOverwritten) {
  const Job job("files");
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(job.folder)) {
    struct stat found {};
    ASSERT_EQ(::stat(entry.path().c_str(), &found), 0);
    EXPECT_EQ(found.st_mode & 0777U, 0600U) << entry.path();
    ++files;
  }
  EXPECT_EQ(files, 11U);
  const Status again = make_certificates(job.folder, {});
  EXPECT_EQ(again.code(), Code::kInvalid);
  EXPECT_NE(again.message().find("ca.pem is there already"), std::string::npos);
  ASSERT_EQ(::chmod((job.folder + "/worker.key").c_str(), 0644), 0);
  EXPECT_NE(TlsContext::load(job.folder, PeerRole::kWorker).status().message().find("chmod 600"),
            std::string::npos);
  std::filesystem::copy_file(job.folder + "/server.key", job.folder + "/admin.key",
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_FALSE(TlsContext::load(job.folder, PeerRole::kAdmin).is_ok()) << "another's key";
  CertificateOptions bad;
  bad.days = 0;
  EXPECT_EQ(make_certificates(fresh_folder("none"), bad).code(), Code::kInvalid);
  EXPECT_NE(
      TlsContext::load("/nonexistent", PeerRole::kWorker).status().message().find("`flux certs`"),
      std::string::npos);
  IoLoop loop;
  EXPECT_FALSE(SocketChannel::create(loop, "127.0.0.1:1",
                                     [] {
                                       SocketChannelOptions options;
                                       options.security.certificates = "/nonexistent";
                                       return options;
                                     }())
                   .is_ok());
}

}  // namespace
}  // namespace flux
