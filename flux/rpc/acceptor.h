// Acceptor: one listening socket, TCP or Unix. Private to rpc/ (it shows Asio).
// Threads: the loop's (listen() before the loop is turned). Failure: listen() says why in one line
// with the address; failures to accept are logged and tried again.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include <asio/generic/stream_protocol.hpp>
#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/steady_timer.hpp>

#include "flux/base/status.h"
#include "flux/rpc/address.h"
#include "flux/rpc/dialer.h"

namespace flux {

class Acceptor final : public std::enable_shared_from_this<Acceptor> {
 public:
  using Protocol = asio::generic::stream_protocol;
  using Accepted = std::function<void(int fd, const Protocol& protocol, std::string peer)>;
  using Log = std::function<void(const std::string&)>;

  explicit Acceptor(asio::io_context& context);
  ~Acceptor();
  // The address with its real port.
  Result<std::string> listen(const Address& address);
  void start(Accepted accepted, Log log);
  void close();

 private:
  Result<std::string> listen_unix();
  Result<std::string> listen_tcp();
  void wait();
  void accept_all();

  asio::posix::stream_descriptor listening_;
  asio::steady_timer pause_;
  Address address_;
  Protocol protocol_{0, 0};
  Accepted accepted_;
  Log log_;
};

}  // namespace flux
