// What operators ask for: drain, scale, move.
#include <algorithm>

#include "flux/base/text.h"
#include "flux/coordinator/job_state.h"

namespace flux {

Status JobMaster::State::drain_node(const std::string& name) {
  if (ended()) return error(Code::kCancelled, "job {} is over", plan_.name);
  for (ServerId id = 0; id < servers_.size(); ++id) {
    if (servers_[id].gone || servers_[id].info.name != name) continue;
    const auto stay = std::count_if(servers_.begin(), servers_.end(), [](const ServerEntry& s) {
      return !s.gone && s.ready && !s.draining;
    });
    if (servers_[id].draining) return Status::ok();
    if (stay <= 1)
      return invalid("{} is the only server that does not drain; start another one first", name);
    servers_[id].draining = true;
    log_member("drain", name, servers_[id].info.boot, id);
    if (servers_[id].ready) places_->draining(id, true);
    say(fmt::format("{} is drained: its {} shards go to other servers", name,
                    places_->primaries(id) + places_->backups(id)));
    pump_places();
    return Status::ok();
  }
  for (auto& [id, worker] : workers_) {
    if (worker.info.name != name) continue;
    if (!worker.leaves) say(fmt::format("{} is asked to leave", name));
    worker.leaves = true;
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
  if (workers > 0) wanted_workers_ = workers;
  if (servers > 0) wanted_servers_ = servers;
  say(fmt::format("wanted: {}{}{}", workers > 0 ? fmt::format("{} worker(s)", workers) : "",
                  workers > 0 && servers > 0 ? ", " : "",
                  servers > 0 ? fmt::format("{} server(s)", servers) : ""));
  events_->wanted(wanted_workers_, wanted_servers_);
  apply_scale();
  return Status::ok();
}

namespace {
// "worker-10" after "worker-9".
bool comes_after(const std::string& a, const std::string& b) {
  return a.size() != b.size() ? a.size() > b.size() : a > b;
}
}  // namespace

// Those too many go, highest names first.
void JobMaster::State::apply_scale() {
  if (ended() || !places_on_) return;
  std::vector<std::string> names;
  for (const auto& [id, worker] : workers_)
    if (!worker.leaves) names.push_back(worker.info.name);
  std::sort(names.begin(), names.end(), comes_after);
  for (size_t i = 0;
       wanted_workers_ > 0 && static_cast<int64_t>(names.size() - i) > wanted_workers_; ++i)
    (void)drain_node(names[i]);
  names.clear();
  for (const ServerEntry& server : servers_)
    if (!server.gone && server.ready && !server.draining) names.push_back(server.info.name);
  std::sort(names.begin(), names.end(), comes_after);
  for (size_t i = 0;
       wanted_servers_ > 0 && static_cast<int64_t>(names.size() - i) > wanted_servers_; ++i)
    (void)drain_node(names[i]);
}

Status JobMaster::State::move_shard(ShardId shard, const std::string& server) {
  if (ended() || !places_on_) return error(Code::kCancelled, "job {} does not run", plan_.name);
  if (shard >= plan_.all_shards)
    return invalid("there is no shard {}: they are 0 to {}", shard, plan_.all_shards - 1);
  for (ServerId id = 0; id < servers_.size(); ++id) {
    if (servers_[id].gone || servers_[id].info.name != server) continue;
    if (servers_[id].draining) return invalid("{} is being drained", server);
    places_->pin(shard, server);
    log_member("move", server, 0, shard);
    say(fmt::format("shard {} is to be on {}", shard, server));
    pump_places();
    return Status::ok();
  }
  return error(Code::kNotFound, "job {} has no server {}", plan_.name, server);
}

}  // namespace flux
