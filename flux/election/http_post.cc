#include "flux/election/http_post.h"

#include <chrono>
#include <condition_variable>
#include <csignal>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include <httplib.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <pthread.h>

namespace flux {
namespace {

constexpr size_t kAnswerMax = 1 << 20;

// httplib bounds each read, not their sum: a peer that sends a byte now and then would hold us.
class Deadline {
 public:
  Deadline(httplib::ClientImpl* client, TimeNs within)
      : thread_([this, client, within] {
          std::unique_lock lock(mutex_);
          const auto most = std::chrono::nanoseconds(within);
          if (!changed_.wait_for(lock, most, [&] { return done_; })) {
            passed_ = true;
            client->stop();
          }
        }) {}
  ~Deadline() { finish(); }
  // True: the time was up.
  bool finish() {
    {
      const std::lock_guard lock(mutex_);
      done_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
    return passed_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false, passed_ = false;
  std::thread thread_;
};

// Writing to a peer that has gone raises SIGPIPE in httplib and OpenSSL; it would end the process
// of a caller that has not thought of it. Held back in this thread, and forgotten.
class WithoutPipeSignal {
 public:
  WithoutPipeSignal() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    ::pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~WithoutPipeSignal() {
    if (sigismember(&before_, SIGPIPE) == 1) return;
    const timespec now{};
    while (::sigtimedwait(&pipe_, nullptr, &now) == SIGPIPE) continue;
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  WithoutPipeSignal(const WithoutPipeSignal&) = delete;
  WithoutPipeSignal& operator=(const WithoutPipeSignal&) = delete;

 private:
  sigset_t pipe_, before_;
};

std::unique_ptr<httplib::ClientImpl> make_client(const HttpPost& post) {
  std::unique_ptr<httplib::ClientImpl> client;
  if (post.tls) {
    auto secure =
        std::make_unique<httplib::SSLClient>(post.host, post.port, post.certificate, post.key);
    if (!post.ca_file.empty()) secure->set_ca_cert_path(post.ca_file.c_str());
    secure->enable_server_certificate_verification(true);
    client = std::move(secure);
  } else {
    client = std::make_unique<httplib::ClientImpl>(post.host, post.port);
  }
  const time_t seconds = post.within / kSecond;
  const time_t micros = post.within % kSecond / 1000;
  client->set_connection_timeout(seconds, micros);
  client->set_read_timeout(seconds, micros);
  client->set_write_timeout(seconds, micros);
  client->set_follow_location(false);
  client->set_keep_alive(false);
  return client;
}

std::string reason(httplib::Error error, bool tls) {
  switch (error) {
    case httplib::Error::Connection:
      return "cannot be reached";
    case httplib::Error::Read:
    case httplib::Error::Write:
      return tls ? "closed the connection without an answer"
                 : "closed the connection without an answer; if it speaks TLS, write https://";
    case httplib::Error::SSLConnection:
      return "TLS could not be agreed on";
    case httplib::Error::SSLLoadingCerts:
      return "the authorities for TLS could not be read";
    case httplib::Error::SSLServerVerification:
      return "shows a certificate that is not good for its host or not by a known authority";
    default:
      return httplib::to_string(error) + " failed";
  }
}

}  // namespace

Result<HttpAnswer> http_post(const HttpPost& post) {
  if (post.within <= 0) return error(Code::kUnavailable, "there was no time left to ask");
  const WithoutPipeSignal quiet;
  const auto client = make_client(post);
  if (!client->is_valid()) return error(Code::kUnavailable, "TLS could not be set up");
  HttpAnswer answer;
  bool too_long = false;
  httplib::Request request;
  request.method = "POST";
  request.path = post.path;
  request.body = post.body;
  request.set_header("Content-Type", "application/json");
  request.content_receiver = [&](const char* data, size_t size, uint64_t, uint64_t) {
    too_long = answer.body.size() + size > kAnswerMax;
    if (!too_long) answer.body.append(data, size);
    return !too_long;
  };
  Deadline deadline(client.get(), post.within);
  const auto start = steady_now_ns();
  const httplib::Result result = client->send(request);
  const bool late = deadline.finish() || steady_now_ns() - start >= post.within;
  if (result) {
    answer.status = result->status;
    return answer;
  }
  if (too_long) return error(Code::kUnavailable, "answers with more than {} bytes", kAnswerMax);
  if (late)
    return error(Code::kUnavailable, "does not answer within {:.1f} s",
                 static_cast<double>(post.within) * 1e-9);
  return error(Code::kUnavailable, "{}", reason(result.error(), post.tls));
}

Status check_tls_files(const std::string& ca_file, const std::string& certificate,
                       const std::string& key) {
  const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(SSL_CTX_new(TLS_client_method()),
                                                                  &SSL_CTX_free);
  const auto check = [](bool good, const std::string& path) {
    ERR_clear_error();
    return good ? Status::ok() : invalid("{}: cannot be read or is no good for TLS", path);
  };
  if (!ca_file.empty())
    FLUX_RETURN_IF_ERROR(check(
        SSL_CTX_load_verify_locations(context.get(), ca_file.c_str(), nullptr) == 1, ca_file));
  if (certificate.empty()) return Status::ok();
  FLUX_RETURN_IF_ERROR(check(
      SSL_CTX_use_certificate_chain_file(context.get(), certificate.c_str()) == 1, certificate));
  return check(SSL_CTX_use_PrivateKey_file(context.get(), key.c_str(), SSL_FILETYPE_PEM) == 1, key);
}

}  // namespace flux
