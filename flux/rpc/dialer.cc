#include "flux/rpc/dialer.h"

#include <utility>

#include <asio/connect.hpp>
#include <asio/local/stream_protocol.hpp>
#include <asio/post.hpp>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

namespace flux {
namespace {

constexpr int kSocketBufferBytes = 4 << 20;
// What is not acknowledged so long ends a connection: after a cut the kernel would wait longer and
// longer before it tries again, while a new connection is there as soon as the network is.
constexpr int kUnacknowledgedMs = 1500;
constexpr int kProbeAfterS = 1;  // of silence, and between probes
constexpr int kProbes = 2;

void notice_cuts(int fd) {
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &kUnacknowledgedMs, sizeof kUnacknowledgedMs);
  ::setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &kProbeAfterS, sizeof kProbeAfterS);
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &kProbeAfterS, sizeof kProbeAfterS);
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &kProbes, sizeof kProbes);
}

}  // namespace

void tune_socket(int fd, bool local) {
  const int on = 1;
  const int bytes = kSocketBufferBytes;
  if (!local) {
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    notice_cuts(fd);
  }
  // A TCP socket whose size is set by hand stops growing by itself, and an unprivileged one may get
  // less than it would have grown to: there only the forced size is asked for.
  for (const auto& [forced, plain] :
       {std::pair{SO_SNDBUFFORCE, SO_SNDBUF}, std::pair{SO_RCVBUFFORCE, SO_RCVBUF}}) {
    if (::setsockopt(fd, SOL_SOCKET, forced, &bytes, sizeof bytes) != 0 && local)
      ::setsockopt(fd, SOL_SOCKET, plain, &bytes, sizeof bytes);
  }
}

Dialer::Dialer(asio::io_context& context, Address address, Done done)
    : address_(std::move(address)), done_(std::move(done)), resolver_(context), socket_(context) {}

void Dialer::start() {
  using asio::ip::tcp;
  last_ = Status(Code::kUnavailable, "no address to try");
  if (address_.local) {
    endpoints_.emplace_back(asio::local::stream_protocol::endpoint(address_.host));
    return asio::post(socket_.get_executor(), [self = shared_from_this()] { self->try_next(); });
  }
  std::error_code failed;
  const asio::ip::address number = asio::ip::make_address(address_.host, failed);
  if (!failed) {
    endpoints_.emplace_back(tcp::endpoint(number, address_.port));
    return asio::post(socket_.get_executor(), [self = shared_from_this()] { self->try_next(); });
  }
  resolver_.async_resolve(
      address_.host, std::to_string(address_.port), tcp::resolver::numeric_service,
      [self = shared_from_this()](const std::error_code& bad,
                                  const tcp::resolver::results_type& r) {
        if (bad) {
          return self->finish(error(Code::kUnavailable, "host '{}' is not known: {}",
                                    self->address_.host, bad.message()));
        }
        for (const auto& entry : r) self->endpoints_.emplace_back(entry.endpoint());
        self->try_next();
      });
}

void Dialer::try_next() {
  if (!done_) return;
  if (at_ == endpoints_.size()) return finish(last_);
  const auto endpoint = endpoints_[at_++];
  std::error_code failed;
  socket_.close(failed);
  socket_.open(endpoint.protocol(), failed);
  if (failed)
    return finish(error(Code::kUnavailable, "cannot open a socket: {}", failed.message()));
  tune_socket(socket_.native_handle(), address_.local);
  socket_.async_connect(endpoint, [self = shared_from_this()](const std::error_code& bad) {
    if (!bad) return self->finish(Status::ok());
    self->last_ = error(Code::kUnavailable, "cannot connect: {}", bad.message());
    self->try_next();
  });
}

void Dialer::finish(const Status& status) {
  if (const Done done = std::exchange(done_, nullptr)) done(status, std::move(socket_));
}

void Dialer::cancel() {
  done_ = nullptr;
  std::error_code ignored;
  resolver_.cancel();
  socket_.close(ignored);
}

}  // namespace flux
