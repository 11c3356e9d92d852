#include "flux/rpc/socket_channel.h"

#include <utility>

#include "flux/rpc/client_link.h"

namespace flux {

class SocketChannel::Impl {
 public:
  std::shared_ptr<ClientLink> link;
};

SocketChannel::SocketChannel(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
SocketChannel::~SocketChannel() {
  impl_->link->close();
}

Result<std::unique_ptr<SocketChannel>> SocketChannel::create(IoLoop& loop, std::string_view address,
                                                             SocketChannelOptions options) {
  FLUX_ASSIGN_OR_RETURN(Address parsed, parse_address(address));
  if (!parsed.local && parsed.port == 0)
    return invalid("address '{}': port 0 cannot be connected to", address);
  std::shared_ptr<TlsContext> tls = options.tls;
  if (!tls && !options.security.certificates.empty()) {
    FLUX_ASSIGN_OR_RETURN(tls, TlsContext::load(options.security.certificates, options.role));
  }
  auto impl = std::make_shared<Impl>();
  impl->link = std::make_shared<ClientLink>(loop, std::move(parsed), std::move(options), tls);
  return std::unique_ptr<SocketChannel>(new SocketChannel(std::move(impl)));
}

uint64_t SocketChannel::call(RpcCall call) {
  return impl_->link->call(std::move(call));
}
void SocketChannel::cancel(uint64_t id) {
  impl_->link->cancel(id);
}
std::string SocketChannel::peer() const {
  return impl_->link->peer();
}
std::string SocketChannel::server_name() const {
  return impl_->link->server_name();
}

RpcCounters SocketChannel::counters() const {
  RpcCounters sum;
  impl_->link->counters().add_to(&sum);
  return sum;
}

}  // namespace flux
