#include "flux/rpc/acceptor.h"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <system_error>
#include <utility>

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

namespace flux {
namespace {

constexpr int kBacklog = 1024;
constexpr int kAcceptsPerTurn = 64;

std::string error_text(int number) {
  return std::generic_category().message(number);
}

sockaddr_un unix_name(const std::string& path) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  std::memcpy(name.sun_path, path.data(), path.size());  // parse_address() limits it
  return name;
}

std::string peer_text(const sockaddr_storage& from, const Address& address) {
  char host[INET6_ADDRSTRLEN] = "?";
  if (from.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(from);
    ::inet_ntop(AF_INET, &v4.sin_addr, host, sizeof host);
    return fmt::format("{}:{}", host, ntohs(v4.sin_port));
  }
  if (from.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(from);
    ::inet_ntop(AF_INET6, &v6.sin6_addr, host, sizeof host);
    return fmt::format("[{}]:{}", host, ntohs(v6.sin6_port));
  }
  return address.text();
}

uint16_t port_of(int fd) {
  sockaddr_storage name{};
  socklen_t size = sizeof name;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&name), &size) != 0) return 0;
  return ntohs(name.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(name).sin6_port
                                          : reinterpret_cast<sockaddr_in&>(name).sin_port);
}

Status cannot_listen(const Address& address, int number) {
  const char* advice = "";
  if (number == EADDRINUSE) advice = "; another process listens there: stop it or choose another";
  if (number == EADDRNOTAVAIL) advice = "; this host has no such address";
  return invalid("cannot listen on {}: {}{}", address.text(), error_text(number), advice);
}

int stream_socket(int family) {
  return ::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

// A socket file that nobody listens on any more is left over from a process that died.
void remove_dead_socket(const std::string& path) {
  struct stat found {};
  if (::lstat(path.c_str(), &found) != 0 || !S_ISSOCK(found.st_mode)) return;
  const int fd = stream_socket(AF_UNIX);
  if (fd < 0) return;
  const sockaddr_un name = unix_name(path);
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&name), sizeof name) != 0 &&
      errno == ECONNREFUSED)
    ::unlink(path.c_str());
  ::close(fd);
}

}  // namespace

Acceptor::Acceptor(asio::io_context& context) : listening_(context), pause_(context) {}
Acceptor::~Acceptor() {
  close();
}

Result<std::string> Acceptor::listen(const Address& address) {
  address_ = address;
  return address.local ? listen_unix() : listen_tcp();
}

Result<std::string> Acceptor::listen_unix() {
  remove_dead_socket(address_.host);
  const int fd = stream_socket(AF_UNIX);
  const sockaddr_un name = unix_name(address_.host);
  protocol_ = Protocol(AF_UNIX, 0);
  // Only this user may connect: the mode is set before anybody can.
  if (fd < 0 || ::bind(fd, reinterpret_cast<const sockaddr*>(&name), sizeof name) != 0) {
    const int number = errno;
    if (fd >= 0) ::close(fd);
    return cannot_listen(address_, number);
  }
  listening_.assign(fd);
  if (::chmod(address_.host.c_str(), 0600) != 0 || ::listen(fd, kBacklog) != 0)
    return cannot_listen(address_, errno);
  return address_.text();
}

Result<std::string> Acceptor::listen_tcp() {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const std::string port = std::to_string(address_.port);
  const int bad = ::getaddrinfo(address_.host.c_str(), port.c_str(), &hints, &found);
  if (bad != 0) return invalid("cannot listen on {}: {}", address_.text(), ::gai_strerror(bad));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> freed(found, ::freeaddrinfo);
  protocol_ = Protocol(found->ai_family, IPPROTO_TCP);
  const int fd = stream_socket(found->ai_family);
  if (fd < 0) return cannot_listen(address_, errno);
  listening_.assign(fd);
  const int on = 1;
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  tune_socket(fd, false);  // inherited by what is accepted
  if (::bind(fd, found->ai_addr, found->ai_addrlen) != 0 || ::listen(fd, kBacklog) != 0)
    return cannot_listen(address_, errno);
  address_.port = port_of(fd);
  return address_.text();
}

void Acceptor::start(Accepted accepted, Log log) {
  accepted_ = std::move(accepted);
  log_ = std::move(log);
  wait();
}

void Acceptor::wait() {
  listening_.async_wait(asio::posix::stream_descriptor::wait_read,
                        [weak = weak_from_this()](const std::error_code& failed) {
                          const auto self = weak.lock();
                          if (self && !failed && self->listening_.is_open()) self->accept_all();
                        });
}

void Acceptor::accept_all() {
  for (int i = 0; i < kAcceptsPerTurn; ++i) {
    sockaddr_storage from{};
    socklen_t size = sizeof from;
    const int fd = ::accept4(listening_.native_handle(), reinterpret_cast<sockaddr*>(&from), &size,
                             SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
      accepted_(fd, protocol_, peer_text(from, address_));
      continue;
    }
    if (errno == EINTR || errno == ECONNABORTED) continue;
    if (errno == EAGAIN || errno == EWOULDBLOCK) break;
    log_(fmt::format("{}: cannot take a connection: {}; trying again", address_.text(),
                     error_text(errno)));
    pause_.expires_after(std::chrono::milliseconds(100));
    return pause_.async_wait([weak = weak_from_this()](const std::error_code& failed) {
      const auto self = weak.lock();
      if (self && !failed && self->listening_.is_open()) self->wait();
    });
  }
  wait();
}

void Acceptor::close() {
  if (!listening_.is_open()) return;
  std::error_code ignored;
  pause_.cancel();
  listening_.close(ignored);
  if (address_.local) ::unlink(address_.host.c_str());
}

}  // namespace flux
