// What operators ask for: drain, scale, move.
#include <algorithm>

#include "flux/base/text.h"
#include "flux/coordinator/job_state.h"

namespace flux {

void JobMaster::State::tell_supervisor() {
  wanted_.ending = stopping_ || ended();
  events_->wanted(wanted_);
}

// Somebody goes for good; one has to stay.
void JobMaster::State::want_fewer(int64_t* wanted) {
  if (*wanted <= 1) return;
  --*wanted;
  ++wanted_.orders;
  tell_supervisor();
}

namespace {
void note(const std::string& name, uint32_t pid, std::map<std::string, uint32_t>* to) {
  constexpr size_t kMax = 1000;
  (*to)[name] = pid;
  if (to->size() > kMax) to->erase(to->begin());
}
}  // namespace

void JobMaster::State::member_lost(const std::string& name, uint32_t pid) {
  note(name, pid, &wanted_.lost);
  tell_supervisor();
}

void JobMaster::State::member_here(const std::string& name) {
  wanted_.leaving.erase(name);
  if (wanted_.lost.erase(name) > 0) tell_supervisor();
}

// Told together with the number that is wanted then, or another one would have to go, or to come.
void JobMaster::State::member_leaves(const JoinRequest& who) {
  note(who.name, who.pid, &wanted_.leaving);
}

Status JobMaster::State::drain_server(ServerId id) {
  ServerEntry& server = servers_[id];
  const auto stay = std::count_if(servers_.begin(), servers_.end(), [](const ServerEntry& s) {
    return !s.gone && s.ready && !s.draining;
  });
  if (stay <= 1)
    return invalid("{} is the only server that does not drain; start another one first",
                   server.info.name);
  server.draining = true;
  log_member("drain", server.info.name, server.info.boot, id);
  if (server.ready) places_->draining(id, true);
  say(fmt::format("{} is drained: its {} shards go to other servers", server.info.name,
                  places_->primaries(id) + places_->backups(id)));
  return Status::ok();
}

void JobMaster::State::ask_to_leave(Worker* worker) {
  worker->leaves = true;
  member_leaves(worker->info);
  say(fmt::format("{} is asked to leave", worker->info.name));
}

Status JobMaster::State::drain_node(const std::string& name) {
  if (ended()) return error(Code::kCancelled, "job {} is over", plan_.name);
  for (ServerId id = 0; id < servers_.size(); ++id) {
    if (servers_[id].gone || servers_[id].info.name != name) continue;
    if (servers_[id].draining) return Status::ok();
    FLUX_RETURN_IF_ERROR(drain_server(id));
    want_fewer(&wanted_.servers);
    pump_places();
    return Status::ok();
  }
  for (auto& [id, worker] : workers_) {
    if (worker.info.name != name) continue;
    if (worker.leaves) return Status::ok();
    const auto stay = std::count_if(workers_.begin(), workers_.end(),
                                    [](const auto& one) { return !one.second.leaves; });
    if (stay <= 1)
      return invalid(
          "{} is the only worker that does not leave; start another one first (flux scale "
          "--workers 2), or end the job: flux stop",
          name);
    ask_to_leave(&worker);
    want_fewer(&wanted_.workers);
    return Status::ok();
  }
  std::vector<std::string> names;
  for (const ServerEntry& server : servers_)
    if (!server.gone) names.push_back(server.info.name);
  for (const auto& [id, worker] : workers_) names.push_back(worker.info.name);
  return error(Code::kNotFound, "job {} has no {}; there are: {}", plan_.name, name,
               flux::join(names, ", "));
}

Status JobMaster::State::scale(int64_t workers, int64_t servers) {
  constexpr int64_t kMax = 4096;
  if (ended()) return error(Code::kCancelled, "job {} is over", plan_.name);
  if (workers < 0 && servers < 0) return invalid("say how many workers or servers there are to be");
  if (workers == 0 || servers == 0)
    return invalid("a job needs a worker and a server at least; to end it: flux stop");
  if (workers > kMax || servers > kMax) return invalid("at most {} of each", kMax);
  if (servers > 0 && !options_.standing_servers.empty())
    return invalid("this job runs on servers of its own list; start it anew with another one");
  if (workers > 0) wanted_.workers = workers;
  if (servers > 0) wanted_.servers = servers;
  ++wanted_.orders;
  say(fmt::format("wanted: {}{}{}", workers > 0 ? fmt::format("{} worker(s)", workers) : "",
                  workers > 0 && servers > 0 ? ", " : "",
                  servers > 0 ? fmt::format("{} server(s)", servers) : ""));
  apply_scale();
  tell_supervisor();
  return Status::ok();
}

namespace {
// "worker-10" after "worker-9".
bool comes_after(const std::string& a, const std::string& b) {
  return a.size() != b.size() ? a.size() > b.size() : a > b;
}
}  // namespace

// Those too many go, highest names first; only if somebody has asked for a number: whoever is
// started by hand beside those of a supervisor is welcome.
void JobMaster::State::apply_scale() {
  if (ended() || !places_on_ || wanted_.orders == 0) return;
  std::vector<Worker*> workers;
  for (auto& [id, worker] : workers_)
    if (!worker.leaves) workers.push_back(&worker);
  std::sort(workers.begin(), workers.end(), [](const Worker* a, const Worker* b) {
    return comes_after(a->info.name, b->info.name);
  });
  for (size_t i = 0;
       wanted_.workers > 0 && static_cast<int64_t>(workers.size() - i) > wanted_.workers; ++i)
    ask_to_leave(workers[i]);
  std::vector<ServerId> servers;
  for (ServerId id = 0; id < servers_.size(); ++id)
    if (!servers_[id].gone && servers_[id].ready && !servers_[id].draining) servers.push_back(id);
  std::sort(servers.begin(), servers.end(), [this](ServerId a, ServerId b) {
    return comes_after(servers_[a].info.name, servers_[b].info.name);
  });
  for (size_t i = 0;
       wanted_.servers > 0 && static_cast<int64_t>(servers.size() - i) > wanted_.servers; ++i)
    if (drain_server(servers[i]).is_ok()) pump_places();
}

Status JobMaster::State::move_shard(ShardId shard, const std::string& server) {
  if (ended() || !places_on_) return error(Code::kCancelled, "job {} does not run", plan_.name);
  if (shard >= plan_.all_shards)
    return invalid("there is no shard {}: they are 0 to {}", shard, plan_.all_shards - 1);
  for (ServerId id = 0; id < servers_.size(); ++id) {
    if (servers_[id].gone || servers_[id].info.name != server) continue;
    if (servers_[id].draining) return invalid("{} is being drained", server);
    places_->pin(shard, server);
    fixed_shards_.insert(shard);
    log_member("move", server, 0, shard);
    say(fmt::format("shard {} is to be on {}", shard, server));
    pump_places();
    return Status::ok();
  }
  return error(Code::kNotFound, "job {} has no server {}", plan_.name, server);
}

}  // namespace flux
