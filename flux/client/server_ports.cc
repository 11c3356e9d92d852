#include "flux/client/server_ports.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

namespace flux {

ReachServer reach_fixed(std::vector<std::shared_ptr<ServerPort>> ports) {
  return [ports = std::move(ports)](ServerId server, const std::string&) {
    return server < ports.size() ? ports[server] : nullptr;
  };
}

bool ServerPorts::gone(const Port& port) const {
  return port.server >= map_.servers.size() || map_.servers[port.server] != port.address;
}

std::shared_ptr<ServerPorts::Port> ServerPorts::port(ServerId server) {
  const auto known = ports_.find(server);
  if (known != ports_.end() && !gone(*known->second)) return known->second;
  if (server >= map_.servers.size() || map_.servers[server].empty()) return nullptr;
  if (known != ports_.end()) return nullptr;  // at its former address: dropped soon
  auto made = std::make_shared<Port>();
  made->server = server;
  made->address = map_.servers[server];
  made->port = reach_(server, made->address);
  if (!made->port) return nullptr;
  ports_[server] = made;
  return made;
}

void ServerPorts::begin(const std::shared_ptr<Port>& port, const std::shared_ptr<Call>& call,
                        TimeNs now) {
  call->port = port;
  port->calls.push_back(call);
  if (call->prompt && port->owes_since < 0) port->owes_since = now;
}

bool ServerPorts::end(Call* call, bool reached, TimeNs now) {
  if (std::exchange(call->over, true)) return false;
  const auto port = call->port.lock();
  if (!port) return true;
  std::erase_if(port->calls, [call](const auto& one) { return one.get() == call; });
  const bool owes = std::any_of(port->calls.begin(), port->calls.end(),
                                [](const auto& one) { return one->prompt; });
  if (reached || !owes) port->owes_since = owes ? now : -1;
  if (reached || call->prompt) port->failed_ns = reached ? -1 : now;
  return true;
}

std::vector<ServerId> ServerPorts::suspects(TimeNs patience, TimeNs idle_since, TimeNs now) const {
  constexpr TimeNs kFreshNs = kSecond;  // nobody asks it any more: nothing is known
  std::vector<ServerId> found;
  for (const auto& [server, port] : ports_) {
    const bool owes =
        port->owes_since >= 0 && now - std::max(port->owes_since, idle_since) >= patience;
    const bool fails = port->failed_ns >= 0 && now - port->failed_ns < kFreshNs;
    if ((owes || fails) && !gone(*port)) found.push_back(server);
  }
  return found;
}

std::vector<std::shared_ptr<ServerPorts::Call>> ServerPorts::drop_gone() {
  std::vector<std::shared_ptr<Call>> ended;
  for (auto at = ports_.begin(); at != ports_.end();) {
    const std::shared_ptr<Port> port = at->second;
    if (!gone(*port)) {
      ++at;
      continue;
    }
    at = ports_.erase(at);
    const bool last = port->port.use_count() == 1;
    port->port.reset();
    if (!last) continue;  // somebody else keeps it: its calls are answered
    for (const auto& call : port->calls) call->over = true;
    std::move(port->calls.begin(), port->calls.end(), std::back_inserter(ended));
    port->calls.clear();
  }
  return ended;
}

std::string ServerPorts::waits_for(Call::Kind kind) const {
  for (const auto& [server, port] : ports_)
    for (const auto& call : port->calls)
      if (call->kind == kind) return fmt::format("server {}", server);
  return "";
}

}  // namespace flux
