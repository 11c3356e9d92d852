#include "flux/rpc/transport.h"

#include <cerrno>
#include <system_error>
#include <utility>

#include <sys/socket.h>

#include "flux/rpc/tls_session.h"

namespace flux {
namespace {

size_t room(std::span<const iovec> parts) {
  size_t total = 0;
  for (const iovec& part : parts) total += part.iov_len;
  return total;
}

msghdr message(std::span<const iovec> parts) {
  msghdr m{};
  m.msg_iov = const_cast<iovec*>(parts.data());
  m.msg_iovlen = parts.size();
  return m;
}

}  // namespace

Transport::Transport(int fd) : fd_(fd) {}
Transport::Transport(int fd, std::unique_ptr<TlsSession> tls) : fd_(fd), tls_(std::move(tls)) {}
Transport::~Transport() = default;

IoResult Transport::handshake() {
  return tls_ ? tls_->handshake(&failure_) : IoResult{IoOutcome::kBytes, 0, false};
}

size_t Transport::promised() const {
  return tls_ ? tls_->promised() : 0;
}
uint64_t Transport::take_copied() {
  return tls_ ? tls_->take_copied() : 0;
}

bool Transport::fall_back_to_plain() {
  if (!tls_ || !tls_->peer_is_plain()) return false;
  tls_.reset();
  return true;
}

IoResult Transport::read(std::span<const iovec> parts) {
  if (tls_) return tls_->read(parts, &failure_);
  msghdr m = message(parts);
  ssize_t moved;
  do {
    moved = parts.size() == 1 ? ::recv(fd_, parts[0].iov_base, parts[0].iov_len, 0)
                              : ::recvmsg(fd_, &m, 0);
  } while (moved < 0 && errno == EINTR);
  if (moved == 0) return {IoOutcome::kEnd, 0, true};
  return outcome_of(moved, parts, IoOutcome::kWantRead);
}

IoResult Transport::write(std::span<const iovec> parts) {
  if (tls_) return tls_->write(parts, &failure_);
  const msghdr m = message(parts);
  ssize_t moved;
  do {
    moved = ::sendmsg(fd_, &m, MSG_NOSIGNAL);
  } while (moved < 0 && errno == EINTR);
  return outcome_of(moved, parts, IoOutcome::kWantWrite);
}

IoResult Transport::outcome_of(ssize_t moved, std::span<const iovec> parts, IoOutcome again) {
  if (moved >= 0) {
    const auto bytes = static_cast<size_t>(moved);
    return {IoOutcome::kBytes, bytes, bytes < room(parts)};
  }
  if (errno == EAGAIN || errno == EWOULDBLOCK) return {again, 0, true};
  failure_ = Status(Code::kUnavailable, std::generic_category().message(errno));
  return {IoOutcome::kFailed, 0, true};
}

}  // namespace flux
