// What members say of servers that they cannot reach; cluster/suspicions.h has the rule.
#include "flux/coordinator/job_state.h"

namespace flux {

void JobMaster::State::take_suspects(Suspicions::Peer by, const std::vector<ServerId>& named) {
  std::vector<ServerId> here;
  for (const ServerId id : named)
    if (id < servers_.size() && servers_[id].ready && !servers_[id].gone) here.push_back(id);
  suspicions_.tell(by, here, now());
  for (const ServerId id : here) look_sooner(id);
}

// A word is a reason to look, no more. One that alone has a shard is not hurried: to take it for
// dead costs more than to wait.
void JobMaster::State::look_sooner(ServerId id) {
  if (!places_on_ || now() - servers_[id].seen < options_.report_every_ns) return;
  ask_for_sign(id);
  const Member* member = servers_members_.find(servers_[id].info.name);
  if (member != nullptr && places_->alone_with(id) == 0)
    servers_members_.suspect(member->id, now());
}

// They renew their lease, but those who need them do not reach them. Fencing makes it safe to take
// them for dead. One at a time: the next may alone have a shard after that.
void JobMaster::State::condemn_suspects() {
  if (!places_on_ || ended()) return;
  const size_t servers = servers_here();
  for (const ServerId id : suspicions_.condemned(workers_.size(), servers, now())) {
    if (servers_[id].gone || places_->alone_with(id) > 0 || places_->live_servers() < 2) continue;
    const size_t by = suspicions_.count(id);
    const std::string name = server_name(id);
    const TimeNs until = suspicions_.pause(name, now());
    lose_server(id, fmt::format("{} of {} other members cannot reach it", by,
                                workers_.size() + servers - 1));
    say(fmt::format("{} renews its lease all the same; it gets no shards for {} s if it comes back",
                    name, (until - now()) / kSecond));
    return;
  }
}

// Those that came back have waited long enough, or nobody else is left.
void JobMaster::State::open_paused() {
  if (!places_on_ || ended()) return;
  for (ServerId id = 0; id < servers_.size(); ++id) {
    ServerEntry& server = servers_[id];
    if (server.gone || !server.paused) continue;
    const bool needed = places_->live_servers() == 0 || places_->unserved() > 0;
    if (!needed && now() < suspicions_.paused_until(server.info.name)) continue;
    server.paused = false;
    open_on(id);
  }
}

}  // namespace flux
