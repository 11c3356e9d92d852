#include "flux/cluster/suspicions.h"

#include <algorithm>
#include <set>

namespace flux {

void Suspicions::tell(Peer by, std::span<const ServerId> suspects, TimeNs now) {
  const auto before = told_.find(by);
  std::map<ServerId, TimeNs> named;
  for (const ServerId server : suspects) {
    if (!by.is_worker && by.id == server) continue;
    TimeNs since = now;
    if (before != told_.end())
      if (const auto at = before->second.find(server); at != before->second.end())
        since = at->second;
    named[server] = since;
  }
  if (named.empty()) {
    told_.erase(by);
  } else {
    told_[by] = std::move(named);
  }
}

void Suspicions::gone(Peer peer) {
  told_.erase(peer);
  if (peer.is_worker) return;
  for (auto& [by, named] : told_) named.erase(static_cast<ServerId>(peer.id));
  std::erase_if(told_, [](const auto& entry) { return entry.second.empty(); });
}

std::vector<ServerId> Suspicions::condemned(size_t workers, size_t servers, TimeNs now) const {
  std::set<ServerId> all;
  for (const auto& [by, named] : told_)
    for (const auto& [server, since] : named) all.insert(server);
  std::vector<ServerId> found;
  for (const ServerId server : all) {
    size_t worker_votes = 0, server_votes = 0, of_workers = workers;
    size_t of_servers = servers > 0 ? servers - 1 : 0;
    for (const auto& [by, named] : told_) {
      if (!by.is_worker && by.id == server) continue;
      size_t& votes = by.is_worker ? worker_votes : server_votes;
      size_t& voters = by.is_worker ? of_workers : of_servers;
      const auto at = named.find(server);
      if (at == named.end()) continue;
      if (!is_cut_off(named, servers)) {
        votes += now - at->second >= options_.bound_ns ? 1 : 0;
      } else if (voters > 0) {
        --voters;
      }
    }
    const size_t votes = worker_votes + server_votes;
    const bool by_workers = worker_votes > 0 && worker_votes >= of_workers;
    if (by_workers || (votes > 1 && 2 * votes > of_workers + of_servers)) found.push_back(server);
  }
  return found;
}

size_t Suspicions::count(ServerId server) const {
  return static_cast<size_t>(std::count_if(told_.begin(), told_.end(), [&](const auto& entry) {
    return entry.second.contains(server);
  }));
}

TimeNs Suspicions::pause(const std::string& name, TimeNs now) {
  if (pauses_.size() >= kPausesMax && !pauses_.contains(name)) {
    const auto oldest = std::min_element(
        pauses_.begin(), pauses_.end(),
        [](const auto& a, const auto& b) { return a.second.until < b.second.until; });
    pauses_.erase(oldest);
  }
  Pause& pause = pauses_[name];
  // Long after the last one it begins anew.
  const bool again = pause.length > 0 && now - pause.until < options_.pause_max_ns;
  pause.length = again ? std::min(2 * pause.length, options_.pause_max_ns) : options_.pause_ns;
  pause.until = now + pause.length;
  return pause.until;
}

TimeNs Suspicions::paused_until(const std::string& name) const {
  const auto at = pauses_.find(name);
  return at == pauses_.end() ? 0 : at->second.until;
}

}  // namespace flux
