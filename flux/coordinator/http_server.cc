#include "flux/coordinator/http_server.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <httplib.h>
#include <openssl/crypto.h>
#include <openssl/ssl.h>
#include <unistd.h>

#include "flux/coordinator/prometheus_text.h"
#include "flux/coordinator/status_json.h"

namespace flux {
namespace {

constexpr size_t kThreads = 4;
constexpr size_t kWaitingMax = 64;  // connections accepted but not served yet
constexpr size_t kBodyMax = 4096;
constexpr time_t kIoSeconds = 2;

// httplib's own pool takes any number of connections; this one makes the accepting thread wait.
class BoundedPool final : public httplib::TaskQueue {
 public:
  BoundedPool() {
    for (size_t i = 0; i < kThreads; ++i) threads_.emplace_back([this] { loop(); });
  }
  void enqueue(std::function<void()> task) override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return tasks_.size() < kWaitingMax; });
    tasks_.push_back(std::move(task));
    changed_.notify_all();
  }
  void shutdown() override {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  void loop() {
    for (;;) {
      std::function<void()> task;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return ending_ || !tasks_.empty(); });
        if (tasks_.empty()) return;
        task = std::move(tasks_.front());
        tasks_.pop_front();
      }
      changed_.notify_all();
      task();
    }
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

bool is_address(const std::string& host) {
  unsigned char bytes[16];
  return ::inet_pton(AF_INET, host.c_str(), bytes) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), bytes) == 1;
}

std::string own_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "";
}

// "[::1]:80" -> "::1", "localhost:80" -> "localhost"
std::string host_of(const std::string& text) {
  if (text.starts_with("[")) return text.substr(1, text.find(']') - 1);
  return text.substr(0, text.find(':'));
}

// A foreign page can make a browser call us under a name that it owns, never under an address.
bool is_own_host(const std::string& header) {
  const std::string host = host_of(header);
  return host == "localhost" || is_address(host) || (!host.empty() && host == own_name());
}

bool same_secret(const std::string& a, const std::string& b) {
  return !b.empty() && a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

bool prepare_tls(SSL_CTX* context, const std::string& folder, std::string* problem) {
  const std::string certificate = folder + "/coordinator.pem", key = folder + "/coordinator.key",
                    authority = folder + "/ca.pem";
  const auto try_file = [&](bool good, const std::string& path) {
    if (!good) *problem = path + ": cannot be read or is no good for TLS";
    return good;
  };
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);  // asked for, not demanded: or the token
  return try_file(SSL_CTX_use_certificate_chain_file(context, certificate.c_str()) == 1,
                  certificate) &&
         try_file(SSL_CTX_use_PrivateKey_file(context, key.c_str(), SSL_FILETYPE_PEM) == 1, key) &&
         try_file(SSL_CTX_load_verify_locations(context, authority.c_str(), nullptr) == 1,
                  authority);
}

class Implementation final : public HttpServer {
 public:
  Implementation(const HttpOptions& options, HttpHooks hooks)
      : options_(options), hooks_(std::move(hooks)) {}
  ~Implementation() override {
    if (!thread_.joinable()) return;
    server_->stop();
    thread_.join();
  }

  Status start() {
    FLUX_RETURN_IF_ERROR(make_server());
    limit();
    route();
    int port = options_.port;
    if (port == 0)
      port = server_->bind_to_any_port(options_.host);
    else if (!server_->bind_to_port(options_.host, port))
      port = -1;
    if (port <= 0) {
      const int reason = errno;
      return invalid("cannot listen for HTTP on {}:{}: {}; give another address with --http",
                     options_.host, options_.port,
                     reason != 0 ? std::strerror(reason) : "no such address here");
    }
    const bool six = options_.host.find(':') != std::string::npos;
    url_ = fmt::format("{}://{}{}{}:{}", options_.certificates.empty() ? "http" : "https",
                       six ? "[" : "", options_.host, six ? "]" : "", port);
    thread_ = std::thread([this] { server_->listen_after_bind(); });
    // stop() before the loop has begun would be forgotten.
    while (!server_->is_running()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return Status::ok();
  }
  std::string url() const override { return url_; }

 private:
  Status make_server() {
    if (options_.certificates.empty()) {
      if (!is_loopback_host(options_.host) && !options_.insecure)
        return invalid(
            "--http {}: an address beyond this host needs TLS; make certificates with 'flux "
            "certs' and give --certs DIR, or say --insecure",
            options_.host);
      server_ = std::make_unique<httplib::Server>();
      return Status::ok();
    }
    std::string problem;
    server_ = std::make_unique<httplib::SSLServer>(
        [&](SSL_CTX& context) { return prepare_tls(&context, options_.certificates, &problem); });
    return server_->is_valid() ? Status::ok() : invalid("{}", problem);
  }

  void limit() {
    server_->new_task_queue = [] { return new BoundedPool; };  // httplib deletes it
    server_->set_keep_alive_max_count(1);  // an idle connection would hold a thread
    server_->set_read_timeout(kIoSeconds);
    server_->set_write_timeout(kIoSeconds);
    server_->set_payload_max_length(kBodyMax);
    // httplib's default would share the port with a second server without a word.
    server_->set_socket_options([](socket_t socket) {
      const int yes = 1;
      ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    });
  }

  static void refuse(httplib::Response& response, int code, const std::string& why) {
    response.status = code;
    response.set_content(why + "\n", "text/plain");
  }

  bool has_token(const httplib::Request& request) const {
    return same_secret(request.get_header_value("Authorization"), "Bearer " + options_.token) &&
           !options_.token.empty();
  }

  static bool has_certificate(const httplib::Request& request) {
    if (request.ssl == nullptr) return false;
    X509* certificate = SSL_get_peer_certificate(request.ssl);
    if (certificate == nullptr) return false;
    X509_free(certificate);
    return SSL_get_verify_result(request.ssl) == X509_V_OK;
  }

  // Before any route. True: refused already.
  bool refused(const httplib::Request& request, httplib::Response& response) const {
    const std::string host = request.get_header_value("Host");
    if (request.get_header_value_count("Host") != 1 || !is_own_host(host)) {
      refuse(response, 421, "the Host header must be an address of this host");
      return true;
    }
    const std::string scheme = request.ssl != nullptr ? "https://" : "http://";
    if (request.has_header("Origin") && request.get_header_value("Origin") != scheme + host) {
      refuse(response, 403, "requests of other sites are refused");
      return true;
    }
    const bool open = request.path == "/healthz" || is_loopback_host(options_.host) ||
                      (options_.insecure && options_.certificates.empty());
    if (open || has_token(request) || has_certificate(request)) return false;
    refuse(response, 401, "show the admin token (Authorization: Bearer ...) or a certificate");
    return true;
  }

  void route() {
    using httplib::Request, httplib::Response;
    server_->set_pre_routing_handler([this](const Request& request, Response& response) {
      return refused(request, response) ? httplib::Server::HandlerResponse::Handled
                                        : httplib::Server::HandlerResponse::Unhandled;
    });
    server_->set_default_headers({{"X-Content-Type-Options", "nosniff"},
                                  {"Cache-Control", "no-store"},
                                  {"Cross-Origin-Resource-Policy", "same-origin"}});
    server_->Get("/healthz", [](const Request&, Response& response) {
      response.set_content("ok\n", "text/plain");
    });
    server_->Get("/status", [this](const Request&, Response& response) {
      response.set_content(status_json(hooks_.status()), "application/json");
    });
    server_->Get("/metrics", [this](const Request&, Response& response) {
      response.set_content(prometheus_text(hooks_.status()), "text/plain; version=0.0.4");
    });
    server_->Get("/logs", [this](const Request&, Response& response) {
      response.set_content(hooks_.logs ? hooks_.logs() : "", "text/plain");
    });
    server_->Post("/stop",
                  [this](const Request& request, Response& response) { stop(request, response); });
    for (const char* path : {"/drain", "/scale", "/move", "/rebalance"})
      server_->Post(
          path, [this](const Request& request, Response& response) { operate(request, response); });
  }

  bool may_change(const httplib::Request& request, httplib::Response& response) const {
    if (!has_token(request)) {
      refuse(response, 401, "this needs the admin token: Authorization: Bearer ...");
      return false;
    }
    if (request.get_header_value("Content-Type") == "application/json") return true;
    refuse(response, 415, "Content-Type must be application/json");
    return false;
  }

  void operate(const httplib::Request& request, httplib::Response& response) {
    if (!may_change(request, response)) return;
    const auto done = run_operator_request(request.path, request.body, hooks_.operators);
    const int code = http_status_of(done.status());
    if (!done.is_ok()) return refuse(response, code, done.status().message());
    response.status = code;
    response.set_content(operator_answer(done.value()), "application/json");
  }

  void stop(const httplib::Request& request, httplib::Response& response) {
    if (!may_change(request, response)) return;
    hooks_.stop("asked over HTTP by " + request.remote_addr);
    response.status = 202;
    response.set_content("{\"stopping\": true}\n", "application/json");
  }

  HttpOptions options_;
  HttpHooks hooks_;
  std::unique_ptr<httplib::Server> server_;
  std::thread thread_;
  std::string url_;
};

}  // namespace

bool is_loopback_host(const std::string& host) {
  unsigned char bytes[4];
  if (host == "localhost" || host == "::1") return true;
  return ::inet_pton(AF_INET, host.c_str(), bytes) == 1 && bytes[0] == 127;
}

Result<std::unique_ptr<HttpServer>> HttpServer::start(const HttpOptions& options, HttpHooks hooks) {
  auto server = std::make_unique<Implementation>(options, std::move(hooks));
  FLUX_RETURN_IF_ERROR(server->start());
  return std::unique_ptr<HttpServer>(std::move(server));
}

}  // namespace flux
