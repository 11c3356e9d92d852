// Dialer: connects a socket to an address, without blocking. Private to rpc/ (it shows Asio).
// A host name that stands for several addresses is tried one after the other; the last failure is
// told. Threads: the loop's. cancel() (or its end) drops `done` uncalled.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include <asio/generic/stream_protocol.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>

#include "flux/base/status.h"
#include "flux/rpc/address.h"

namespace flux {

class Dialer final : public std::enable_shared_from_this<Dialer> {
 public:
  using Socket = asio::generic::stream_protocol::socket;
  using Done = std::function<void(const Status&, Socket)>;

  Dialer(asio::io_context& context, Address address, Done done);
  void start();
  void cancel();

 private:
  void try_next();
  void finish(const Status& status);

  Address address_;
  Done done_;
  asio::ip::tcp::resolver resolver_;
  Socket socket_;
  std::vector<asio::generic::stream_protocol::endpoint> endpoints_;
  size_t at_ = 0;
  Status last_;
};

// TCP_NODELAY and large buffers where the system allows them.
void tune_socket(int fd, bool local);

}  // namespace flux
