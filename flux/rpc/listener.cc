#include "flux/rpc/listener.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <asio/generic/stream_protocol.hpp>
#include <asio/post.hpp>
#include <unistd.h>

#include "flux/rpc/acceptor.h"
#include "flux/rpc/address.h"
#include "flux/rpc/server_link.h"

namespace flux {
namespace {

constexpr size_t kTurnedAwayMax = 64;  // connections above the cap that are told so
constexpr TimeNs kSweepEvery = 500 * kMillisecond;
constexpr TimeNs kSweepAtMost = 10 * kMillisecond;

// On its way to its loop, in a task that may never run.
class OwnedFd {
 public:
  explicit OwnedFd(int fd) : fd_(fd) {}
  OwnedFd(const OwnedFd&) = delete;
  OwnedFd& operator=(const OwnedFd&) = delete;
  ~OwnedFd() {
    if (fd_ >= 0) ::close(fd_);
  }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

}  // namespace

Status check_exposure(std::string_view address, const SecurityOptions& security) {
  FLUX_ASSIGN_OR_RETURN(const Address parsed, parse_address(address));
  if (parsed.is_loopback() || security.insecure || !security.certificates.empty() ||
      !security.token.empty())
    return Status::ok();
  return invalid(
      "{} can be reached from other hosts, and nothing keeps strangers out: give "
      "certificates (`flux certs` makes them) or a token, or allow it with --insecure",
      parsed.text());
}

class Listener::Impl {
 public:
  Impl(ListenerOptions options, Service& service)
      : core_(std::make_shared<ListenerCore>(std::move(options), service)) {}

  Status start();
  void stop();
  void accepted(StreamSocket::native_handle_type fd, const StreamSocket::protocol_type& protocol,
                std::string peer);
  void sweep(const std::shared_ptr<ListenLoop>& loop);
  static void close_links(ListenLoop& loop);

  std::shared_ptr<ListenerCore> core_;
  std::vector<std::shared_ptr<ListenLoop>> loops_;
  std::vector<std::shared_ptr<Acceptor>> acceptors_;
  std::vector<std::string> addresses_;
  size_t turn_ = 0;
};

Status Listener::Impl::start() {
  const ListenerOptions& o = core_->options;
  if (o.addresses.empty()) return invalid("a listener needs an address");
  for (const std::string& address : o.addresses)
    FLUX_RETURN_IF_ERROR(check_exposure(address, o.security));
  if (!o.security.certificates.empty()) {
    FLUX_ASSIGN_OR_RETURN(core_->tls, TlsContext::load(o.security.certificates, o.role));
  }
  const uint32_t count = o.loop != nullptr ? 1 : std::max(o.threads, 1U);
  for (uint32_t i = 0; i < count; ++i) loops_.push_back(std::make_shared<ListenLoop>(o.loop));
  for (const std::string& address : o.addresses) {
    FLUX_ASSIGN_OR_RETURN(const Address parsed, parse_address(address));
    auto acceptor = std::make_shared<Acceptor>(loops_[0]->context());
    FLUX_ASSIGN_OR_RETURN(std::string real, acceptor->listen(parsed));
    addresses_.push_back(std::move(real));
    acceptors_.push_back(std::move(acceptor));
  }
  for (const auto& acceptor : acceptors_) {
    acceptor->start([this](int fd, const StreamSocket::protocol_type& protocol,
                           std::string peer) { accepted(fd, protocol, std::move(peer)); },
                    [core = core_](const std::string& line) { core->log(line); });
  }
  for (const auto& loop : loops_) {
    sweep(loop);
    if (loop->own) loop->thread = std::thread([loop] { loop->loop.run(); });
  }
  return Status::ok();
}

// On the first loop; the connection goes to the next one in turn.
void Listener::Impl::accepted(int fd, const StreamSocket::protocol_type& protocol,
                              std::string peer) {
  const size_t open = core_->connections.fetch_add(1) + 1;
  const size_t most = core_->options.connections_max;
  std::string refusal;
  if (open > most) refusal = fmt::format("there are {} connections already; try later", most);
  const auto loop = loops_[turn_++ % loops_.size()];
  if (open > most + kTurnedAwayMax) {
    core_->connections.fetch_sub(1);
    ::close(fd);
    return core_->log(fmt::format("{}: {}; connection closed", peer, refusal));
  }
  asio::post(loop->context(), [core = core_, loop, owned = std::make_shared<OwnedFd>(fd), protocol,
                               peer = std::move(peer), refusal = std::move(refusal)]() mutable {
    if (core->stopped) return;
    const int fd = owned->release();
    tune_socket(fd, protocol.family() == AF_UNIX);
    auto link =
        std::make_shared<ServerLink>(core, loop, StreamSocket(loop->context(), protocol, fd),
                                     std::move(peer), std::move(refusal));
    loop->links.emplace(link->id(), link);
    link->start();
  });
}

void Listener::Impl::sweep(const std::shared_ptr<ListenLoop>& loop) {
  const ListenerOptions& o = core_->options;
  const TimeNs least = std::min({o.handshake_timeout_ns, o.stall_timeout_ns, o.idle_timeout_ns});
  loop->sweep.expires_after(
      std::chrono::nanoseconds(std::clamp(least / 2, kSweepAtMost, kSweepEvery)));
  loop->sweep.async_wait([this, weak = std::weak_ptr(loop)](const std::error_code& failed) {
    const auto loop = weak.lock();
    if (failed || !loop) return;
    const TimeNs now = steady_now_ns();
    std::vector<std::shared_ptr<ServerLink>> links;
    for (const auto& [id, link] : loop->links) links.push_back(link);
    for (const auto& link : links) link->check_time(now);
    sweep(loop);
  });
}

void Listener::Impl::close_links(ListenLoop& loop) {
  loop.sweep.cancel();
  while (!loop.links.empty()) {
    const auto link = loop.links.begin()->second;
    link->go_away("it was stopped");
  }
}

void Listener::Impl::stop() {
  if (core_->stopped.exchange(true)) return;
  for (const auto& loop : loops_) {
    const auto end = [this, loop] {
      if (loop == loops_[0])
        for (const auto& acceptor : acceptors_) acceptor->close();
      close_links(*loop);
    };
    if (!loop->own || !loop->thread.joinable()) {
      end();
      continue;
    }
    asio::post(loop->context(), [loop, end] {
      end();
      loop->loop.stop();
    });
  }
  for (const auto& loop : loops_)
    if (loop->thread.joinable()) loop->thread.join();
  for (const auto& loop : loops_) close_links(*loop);  // what was accepted meanwhile
}

Listener::Listener(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Listener::~Listener() {
  stop();
}
void Listener::stop() {
  impl_->stop();
}
const std::vector<std::string>& Listener::addresses() const {
  return impl_->addresses_;
}
size_t Listener::connections() const {
  return impl_->core_->connections.load();
}

RpcCounters Listener::counters() const {
  RpcCounters sum;
  for (const auto& loop : impl_->loops_) loop->counters->add_to(&sum);
  return sum;
}

Result<std::unique_ptr<Listener>> Listener::start(ListenerOptions options, Service& service) {
  auto impl = std::make_unique<Impl>(std::move(options), service);
  const Status started = impl->start();
  if (!started.is_ok()) {
    impl->stop();
    return started;
  }
  return std::unique_ptr<Listener>(new Listener(std::move(impl)));
}

}  // namespace flux
