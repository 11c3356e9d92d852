// Servers that join, report, die.
#include <algorithm>
#include <utility>

#include "flux/coordinator/job_state.h"

namespace flux {
namespace {
constexpr size_t kFailoversShown = 16;
constexpr TimeNs kStandingAgainNs = 500 * kMillisecond;
constexpr ServerId kServersMax = 1U << 20;
constexpr TimeNs kOpenAgainNs = 50 * kMillisecond;
constexpr uint32_t kOpensMax = 40;
}  // namespace

void JobMaster::State::join_server(const ServerJoin& request, const ServerDone& done) {
  member_here(request.name);
  if (phase_ == Phase::kEnded) return done(error(Code::kCancelled, "job {} is over", plan_.name));
  if (!folder_open_) {
    early_servers_.emplace_back(request, done);
    return;
  }
  ServerJoinReply reply;
  reply.report_every_ms = static_cast<uint32_t>(options_.report_every_ns / kMillisecond);
  for (ServerId id = 0; id < servers_.size(); ++id)
    if (!servers_[id].gone && servers_[id].info.name == request.name &&
        servers_[id].info.boot == request.boot) {  // a repeat
      reply.server = id;
      return done(reply);
    }
  arrive(request, done);
}

// Before it gets a number: what does it hold, and under which number?
void JobMaster::State::arrive(ServerJoin info, ServerDone done) {
  for (ServerArrival& other : arrivals_)
    if (other.info.name == info.name && other.info.boot == info.boot) {
      std::exchange(other.done,
                    std::move(done))(error(Code::kUnavailable, "asked again meanwhile"));
      return;
    }
  std::shared_ptr<ServerAdminPort> port = reach_(info.address);
  if (port == nullptr)
    return done(error(Code::kUnavailable, "{} cannot be reached at {}", info.name, info.address));
  arrivals_.push_back({info, port, std::move(done)});
  port->holdings(open_job_of(0).name, term_,
                 guard([this, name = info.name, boot = info.boot](Result<Holdings> held) {
                   arrived(name, boot, std::move(held));
                 }));
}

void JobMaster::State::arrived(const std::string& name, uint64_t boot, Result<Holdings> held) {
  const auto at = std::find_if(arrivals_.begin(), arrivals_.end(), [&](const ServerArrival& a) {
    return a.info.name == name && a.info.boot == boot;
  });
  if (at == arrivals_.end()) return;
  ServerArrival arrival = std::move(*at);
  arrivals_.erase(at);
  if (phase_ == Phase::kEnded)
    return arrival.done(error(Code::kCancelled, "job {} is over", plan_.name));
  if (!held.is_ok()) {
    if (held.status().code() == Code::kStale) check_term(held.status());
    return arrival.done(held.status());
  }
  seat(std::move(arrival), std::move(held).value());
}

// It ends: two servers of one name that both came back would take turns for ever.
Status JobMaster::State::displaced(const std::string& name) const {
  return invalid("another process is {} of job {} now; give each server a name of its own", name,
                 plan_.name);
}

void JobMaster::State::seat(ServerArrival arrival, Holdings held) {
  if (servers_members_.was_replaced(arrival.info.name, arrival.info.boot))
    return arrival.done(displaced(arrival.info.name));
  // It comes too late with what it has: others have its shards by now.
  if (phase_ != Phase::kJoining && held.incarnation == incarnation_)
    return arrival.done(error(Code::kStale, "{} was not there when job {} was taken over",
                              arrival.info.name, plan_.name));
  servers_members_.join(arrival.info.name, arrival.info.boot, now());
  for (ServerId id = 0; id < servers_.size(); ++id)
    if (!servers_[id].gone && servers_[id].info.name == arrival.info.name)
      lose_server(id, "it came back anew");
  member_here(arrival.info.name);
  // Primaries name their backups by these numbers: while a job may be adopted they stay.
  if (phase_ == Phase::kJoining && options_.fresh) held = Holdings{};
  const bool keeps = phase_ == Phase::kJoining && held.incarnation != 0 &&
                     held.self < kServersMax &&
                     (held.self >= servers_.size() || servers_[held.self].info.name.empty());
  const ServerId id = keeps ? held.self : static_cast<ServerId>(servers_.size());
  if (id >= servers_.size()) servers_.resize(id + 1);
  // Numbers that others remember are not given to strangers.
  for (const ShardState& shard : held.shards)
    if (keeps && shard.backup < kServersMax && shard.backup >= servers_.size())
      servers_.resize(shard.backup + 1);
  ServerEntry& entry = servers_[id];
  entry = ServerEntry{};
  entry.info = arrival.info;
  entry.admin = arrival.admin;
  entry.seen = now();
  entry.gone = false;
  entry.held = std::move(held);
  for (const Decision& d : decisions_)  // asked for before a take-over
    if (d.kind == "drain" && d.member == arrival.info.name && d.boot == arrival.info.boot)
      entry.draining = true;
  servers_expected_.erase(arrival.info.name);
  log_member("server", arrival.info.name, arrival.info.boot, id);
  if (options_.announce_members)
    say(fmt::format("{} joined at {}", arrival.info.name, arrival.info.address));
  ServerJoinReply reply;
  reply.server = id;
  reply.report_every_ms = static_cast<uint32_t>(options_.report_every_ns / kMillisecond);
  arrival.done(reply);
  if (phase_ == Phase::kJoining) return servers_complete_if();
  entry.paused = suspicions_.paused_until(entry.info.name) > now();
  if (!entry.paused) open_on(id);
}

OpenJob JobMaster::State::open_job_of(ServerId id) const {
  OpenJob job;
  job.name = fmt::format("{} in {}", plan_.name, plan_.output);
  job.job = plan_.spec;
  job.incarnation = incarnation_;
  job.term = term_;
  job.self = id;
  job.places.servers = addresses();
  if (id < servers_.size()) job.boot = servers_[id].info.boot;
  return job;
}

// It may not have heard yet which number it has; then it is asked again.
void JobMaster::State::open_again(ServerId id, const OpenJob& job, uint32_t tries,
                                  const ServerAdminPort::Done& done) {
  admin(id)->open_job(job, guard([this, id, job, tries, done](const Status& status) {
                        const bool again = status.code() == Code::kUnavailable &&
                                           !servers_[id].gone && tries < kOpensMax;
                        if (!again) return done(status);
                        executor_->post(kOpenAgainNs, guard([this, id, job, tries, done] {
                                          open_again(id, job, tries + 1, done);
                                        }));
                      }));
}

// A server that comes while the job runs has nothing of it yet.
void JobMaster::State::open_on(ServerId id) {
  open_again(id, open_job_of(id), 0,
             guard([this, id, boot = servers_[id].info.boot](const Status& status) {
               opened_on(id, boot, status);
             }));
}

void JobMaster::State::opened_on(ServerId id, uint64_t boot, const Status& status) {
  if (phase_ == Phase::kEnded || servers_[id].gone || servers_[id].info.boot != boot) return;
  if (status.code() == Code::kStale) check_term(status);
  if (!status.is_ok()) return lose_server(id, "it cannot open the job: " + status.message());
  if (std::exchange(servers_[id].ready, true)) return;  // it has got another number only
  places_->joined(id, server_name(id));
  if (servers_[id].draining) places_->draining(id, true);
  no_server_since_ = 0;
  apply_scale();
  pump_places();
}

void JobMaster::State::report_server(const ServerReport& report,
                                     const std::function<void(Result<bool>)>& done) {
  const ServerId id = report.server;
  const bool known = id < servers_.size() && servers_[id].info.boot == report.boot &&
                     !servers_[id].info.name.empty();
  if (phase_ == Phase::kEnded) return done(true);
  if (!known)
    return done(error(Code::kNotFound, "server {} is not known to the coordinator of job {}: join",
                      id, plan_.name));
  ServerEntry& entry = servers_[id];
  const Member* member = servers_members_.find(entry.info.name);
  if (entry.gone && member != nullptr) return done(displaced(entry.info.name));
  if (entry.gone)
    return done(error(Code::kStale, "server {} is no member of job {} any more", id, plan_.name));
  if (member != nullptr) servers_members_.renew(member->id, now());
  entry.seen = now();
  entry.rss_bytes = report.rss_bytes;
  if (report.tells_work && loads_) loads_->reported(id, report.work, now());
  if (report.differed > entry.differed) {
    const uint64_t more = report.differed - entry.differed;
    replicas_differed_ += more;
    say(
        fmt::format("warning: {}: {} replica(s) differed from their primaries: dropped, to be "
                    "copied anew; its log says which",
                    entry.info.name, more));
  }
  entry.differed = report.differed;
  if (places_on_ && !report.suspects.empty()) {
    for (const ServerId suspect : report.suspects) places_->suspected(id, suspect, now());
    pump_places();
  }
  std::vector<ServerId> named = report.suspects;
  named.insert(named.end(), report.silent.begin(), report.silent.end());
  take_suspects({false, id}, named);
  const bool may_go = entry.draining && entry.ready && places_on_ && places_->empty(id) &&
                      places_->live_servers() > 1;
  done(may_go);
}

void JobMaster::State::server_gone(const std::string& name, uint64_t boot, const std::string& why) {
  for (ServerId id = 0; id < servers_.size(); ++id)
    if (!servers_[id].gone && servers_[id].info.name == name && servers_[id].info.boot == boot)
      return lose_server(id, why);
}

void JobMaster::State::lose_server(ServerId id, const std::string& why) {
  ServerEntry& entry = servers_[id];
  if (entry.gone || phase_ == Phase::kEnded) return;
  entry.gone = true;
  if (loads_) loads_->lost(id);
  suspicions_.gone({false, id});
  const Member* member = servers_members_.find(entry.info.name);
  if (member != nullptr && member->boot == entry.info.boot) servers_members_.leave(member->id);
  const bool drained = entry.draining && places_on_ && places_->empty(id);
  if (entry.ready) {
    const uint32_t before = places_->unserved(), had = places_->primaries(id);
    places_->lost(id, now());
    if (places_->unserved() > before) {
      if (unserved_since_ == 0) unserved_since_ = now();
      ++failovers_all_;
      failovers_.push_back({fmt::format("lost {}: {}", entry.info.name, why), had, 0});
      if (failovers_.size() > kFailoversShown) failovers_.erase(failovers_.begin());
    }
  }
  pump_places();  // before anything that takes longer
  entry.info.address.clear();
  servers_lost_ += drained ? 0 : 1;
  if (options_.announce_members || !drained)
    say(drained ? fmt::format("{} left: it is drained", entry.info.name)
                : fmt::format("lost {}: {}", entry.info.name, why));
  log_member("server_gone", entry.info.name, entry.info.boot, id);
  if (!drained) member_lost(entry.info.name, entry.info.pid);
  asks_lost(id);
  kick_asks();
  opened_if(id);
  apply_scale();
}

size_t JobMaster::State::servers_here() const {
  return static_cast<size_t>(std::count_if(servers_.begin(), servers_.end(),
                                           [](const ServerEntry& s) { return !s.gone; }));
}

std::vector<std::string> JobMaster::State::addresses() const {
  std::vector<std::string> all;
  for (const ServerEntry& s : servers_) all.push_back(s.gone ? "" : s.info.address);
  return all;
}

std::string JobMaster::State::how_to_go_on() const {
  const std::string& last = last_checkpoint_.empty() ? resumed_from_ : last_checkpoint_;
  return last.empty() ? "there is no checkpoint yet: running the job again starts it over"
                      : fmt::format("run the job again to go on from {}", last);
}

// Servers that run on their own do not join: they are reached.
void JobMaster::State::reach_standing() {
  if (!folder_open_ || ended() || now() < standing_due_) return;
  standing_due_ = now() + kStandingAgainNs;
  for (const std::string& address : options_.standing_servers) {
    const auto here = [&](const auto& server) { return server.info.name == address; };
    const bool seated = std::any_of(servers_.begin(), servers_.end(),
                                    [&](const ServerEntry& s) { return !s.gone && here(s); });
    if (seated || std::any_of(arrivals_.begin(), arrivals_.end(), here)) continue;
    ServerJoin info;
    info.name = info.address = address;
    info.boot = ++standing_boot_;
    arrive(info, [](const Result<ServerJoinReply>&) {});
  }
}

// They do not report either: they are asked.
void JobMaster::State::ask_standing() {
  if (options_.standing_servers.empty()) return;
  for (ServerId i = 0; i < servers_.size(); ++i) {
    ServerEntry& s = servers_[i];
    if (s.gone) continue;
    const Member* member = servers_members_.find(s.info.name);
    if (member != nullptr && !s.ready) servers_members_.renew(member->id, now());
    if (now() - s.seen >= options_.member_lease_ns / 5) ask_for_sign(i);
  }
}

void JobMaster::State::ask_for_sign(ServerId id) {
  ServerEntry& s = servers_[id];
  if (!s.ready || std::exchange(s.asked, true)) return;
  // Nothing about no blocks: answered at once, also while it saves.
  s.admin->marked(make_call({}), BlockId{}, 0, true,
                  guard([this, id](const Result<std::vector<uint32_t>>& answer) {
                    servers_[id].asked = false;
                    if (!answer.is_ok()) return;
                    servers_[id].seen = now();
                    const Member* alive = servers_members_.find(servers_[id].info.name);
                    if (alive != nullptr) servers_members_.renew(alive->id, now());
                  }));
}

// Silence is no proof of death, and to go back to a checkpoint costs more than to wait: who has the
// only replica of a shard is given more time. (A closed connection counts at once, as ever.)
void JobMaster::State::spare_last_replicas() {
  if (!places_on_) return;
  for (ServerId id = 0; id < servers_.size(); ++id) {
    ServerEntry& server = servers_[id];
    const TimeNs silent = now() - server.seen;
    const TimeNs lease = options_.member_lease_ns;
    const TimeNs most = std::max(options_.last_replica_ns, 3 * lease);
    if (server.gone || silent < lease / 2) server.spared = false;
    const Member* member = servers_members_.find(server.info.name);
    if (server.gone || member == nullptr || silent + lease > most) continue;
    if (silent < lease / 2 && now() < servers_members_.due(*member)) continue;
    const uint32_t alone = places_->alone_with(id);
    if (alone == 0) continue;
    servers_members_.renew(member->id, now());
    if (silent < lease || std::exchange(server.spared, true)) continue;
    say(fmt::format("{} is not heard; it alone has {} shard(s), so {} s are waited for it",
                    server.info.name, alone, most / kSecond));
  }
}

void JobMaster::State::check_servers() {
  reach_standing();
  ask_standing();
  condemn_suspects();
  open_paused();
  spare_last_replicas();
  for (const Member& member : servers_members_.expire(now()))
    for (ServerId id = 0; id < servers_.size(); ++id)
      if (!servers_[id].gone && servers_[id].info.name == member.name &&
          servers_[id].info.boot == member.boot)
        lose_server(id, fmt::format("it was not heard for {:.1f} s",
                                    static_cast<double>(now() - servers_[id].seen) * 1e-9));
  if (phase_ == Phase::kEnded || !folder_open_) return;
  if (phase_ == Phase::kJoining) {
    servers_complete_if();
    if (phase_ == Phase::kJoining && now() - started_ > options_.servers_deadline_ns)
      fail(error(Code::kUnavailable,
                 "{} of {} servers joined within {} s; start the others: flux server --coordinator "
                 "ADDRESS",
                 servers_here(), options_.servers, options_.servers_deadline_ns / kSecond));
    return;
  }
  if (!places_on_ || places_->live_servers() > 0) {
    no_server_since_ = 0;
  } else if (no_server_since_ == 0) {
    no_server_since_ = now();
  } else if (now() - no_server_since_ > options_.servers_deadline_ns) {
    return give_up(error(Code::kUnavailable, "no server has been here for {} s; {}",
                         options_.servers_deadline_ns / kSecond, how_to_go_on()));
  }
  if (places_on_ && unserved_since_ != 0 && now() - unserved_since_ > options_.restore_deadline_ns)
    give_up(error(Code::kUnavailable, "{} shards could not be restored within {} s; {}",
                  places_->unserved(), options_.restore_deadline_ns / kSecond, how_to_go_on()));
}

ClusterMap JobMaster::State::cluster_map() const {
  ClusterMap map;
  if (places_) {
    map.route = places_->route();
    map.version = places_->version();
  }
  map.servers = addresses();
  return map;
}

}  // namespace flux
