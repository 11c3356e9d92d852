#include "flux/main/peer_servers.h"

#include <utility>

#include "flux/rpc/address.h"

namespace flux {
namespace {

// With faults on purpose, waiting as for a real network would only make tests slow.
constexpr TimeNs kImpatientNs = 200 * kMillisecond;

}  // namespace

PeerServers::PeerServers(Caller caller, RemoteReplica::FindShape shape_of)
    : caller_(std::move(caller)),
      shape_of_(std::move(shape_of)),
      thread_([this] { loop_.run(); }) {}

PeerServers::~PeerServers() {
  loop_.stop();
  thread_.join();
}

std::shared_ptr<ReplicaPort> PeerServers::reach(const std::string& address) {
  if (!parse_address(address).is_ok()) return nullptr;
  const std::lock_guard lock(mutex_);
  std::erase_if(ports_, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<ReplicaPort>& known = ports_[address];
  if (auto port = known.lock()) return port;
  const uint64_t salt = (1ULL << 32) + ++opened_;
  RemoteReplicaOptions options;
  if (!caller_.chaos.empty()) options.replicate_timeout_ns = kImpatientNs;
  auto port = std::make_shared<RemoteReplica>(
      &loop_,
      [this, address, salt]() -> std::unique_ptr<Channel> {
        auto opened = open_channel(&loop_, address, caller_, salt);
        return opened.is_ok() ? std::move(opened.value().channel) : nullptr;
      },
      shape_of_, options);
  known = port;
  return port;
}

}  // namespace flux
