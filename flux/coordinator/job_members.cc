// Workers and servers that join, report, leave, die.
#include <algorithm>
#include <utility>

#include "flux/base/text.h"
#include "flux/coordinator/job_state.h"

namespace flux {

void JobMaster::State::join_worker(const JoinRequest& request,
                                   const std::function<void(Result<JoinReply>)>& done) {
  if (ended() || stopping_)
    return done(error(Code::kCancelled, "job {} is ending; nobody can join", plan_.name));
  if (!request.model.empty()) {
    std::vector<std::string> differences = model_differences(plan_.model, request.model);
    for (std::string& line : differences)  // as said of checkpoints and jobs
      for (const auto& [from, to] : {std::pair{"in the checkpoint", "at the coordinator"},
                                     std::pair{"in the job", "at the worker"}})
        if (const size_t at = line.find(from); at != std::string::npos)
          line.replace(at, std::string(from).size(), to);
    if (!differences.empty()) {
      say(fmt::format("refused {} ({}): it has another model: {}", request.name, request.host,
                      flux::join(differences, "; ")));
      return done(invalid("the coordinator of job {} has another model:\n  {}", plan_.name,
                          flux::join(differences, "\n  ")));
    }
  }
  if (!map_ || phase_ == Phase::kJoining || phase_ == Phase::kLoading) {
    early_.push_back({request, done, now()});
    return;
  }
  const Membership::Joined joined = workers_members_.join(request.name, request.boot, now());
  if (joined.stale)
    return done(
        error(Code::kStale, "another process is {} of job {} now", request.name, plan_.name));
  if (joined.replaced)
    lose_worker(*joined.replaced, true, fmt::format("{} came back anew", request.name));
  if (!joined.again) {
    workers_[joined.id].info = request;
    workers_[joined.id].asked = now();
    if (rounds_) rounds_->add_worker(joined.id, request.lanes);
    if (options_.announce_members)
      say(fmt::format("{} joined ({} thread{})", request.name, request.lanes,
                      request.lanes == 1 ? "" : "s"));
  }
  JoinReply reply;
  reply.worker = joined.id;
  reply.job = plan_.spec;
  reply.incarnation = options_.incarnation;
  reply.map = cluster_map();
  reply.report_every_ms = static_cast<uint32_t>(options_.report_every_ns / kMillisecond);
  done(std::move(reply));
}

// Workers that came before there was anything to do: held back as leases are.
void JobMaster::State::answer_early() {
  const bool ready =
      (map_ && phase_ != Phase::kJoining && phase_ != Phase::kLoading) || stopping_ || ended();
  for (const EarlyJoin& early : std::exchange(early_, {})) {
    if (ready) {
      join_worker(early.request, early.done);
    } else if (now() - early.since < options_.join_hold_ns) {
      early_.push_back(early);
    } else {
      JoinReply wait;
      wait.waits = wait_reason();
      early.done(std::move(wait));
    }
  }
}

void JobMaster::State::report_worker(WorkerId worker, const WorkerReport& report,
                                     const std::function<void(Result<ReportAnswer>)>& done) {
  const auto at = workers_.find(worker);
  if (at == workers_.end() || !workers_members_.renew(worker, now()))
    return done(
        error(Code::kStale, "worker {} is not a member of job {} any more", worker, plan_.name));
  Worker& w = at->second;
  if (report.examples >= w.report.examples) w.report = report;
  if (now() - w.rate_time >= kSecond) {
    if (w.rate_time > 0)
      w.rate = static_cast<double>(w.report.examples - w.rate_examples) * 1e9 /
               static_cast<double>(now() - w.rate_time);
    w.rate_time = now();
    w.rate_examples = w.report.examples;
  }
  ReportAnswer answer;
  answer.stop = stopping_ || ended();
  answer.map_version = map_ ? map_->version() : 0;
  done(answer);
}

void JobMaster::State::leave_worker(const LeaseRequest& last, const WorkerReport& report,
                                    const Status& why, const std::function<void(Status)>& done) {
  const auto at = workers_.find(last.worker);
  if (at == workers_.end()) return done(Status::ok());  // a repeat
  acknowledge(last.applied, last.evaluated);
  if (report.examples >= at->second.report.examples) at->second.report = report;
  const std::string name = at->second.info.name;
  workers_members_.leave(last.worker);
  // Trouble with the data or the model is trouble for every worker; a lost connection is its own.
  const bool jobs_trouble = why.code() == Code::kInvalid || why.code() == Code::kCorrupt ||
                            why.code() == Code::kNotFound || why.code() == Code::kIo;
  if (!why.is_ok()) say(fmt::format("{} gave up: {}", name, why.message()));
  if (why.is_ok() && !stopping_ && !ended() && options_.announce_members)
    say(fmt::format("{} left", name));
  lose_worker(last.worker, false, why.is_ok() ? "" : why.message());
  done(Status::ok());
  if (jobs_trouble && phase_ == Phase::kEvaluating) {
    test_failed(why);
  } else if (jobs_trouble) {
    fail(why);
  }
  if (phase_ == Phase::kTraining && queue_ && queue_->all_applied()) verify_section();
  if (phase_ == Phase::kDraining) drained();
  if (phase_ == Phase::kEnding) left();
  pump();
}

void JobMaster::State::forget_slots(Worker* worker, const Status& why) {
  for (auto& [lane, slot] : worker->slots) {
    if (slot.answered) continue;
    slot.answered = true;
    std::exchange(slot.done, nullptr)(why);
  }
}

void JobMaster::State::lose_worker(WorkerId id, bool died, const std::string& why) {
  const auto at = workers_.find(id);
  if (at == workers_.end()) return;
  Worker worker = std::move(at->second);
  workers_.erase(at);
  gone_.push_back({id, worker.info.name, worker.info.host, worker.info.pid, worker.info.lanes, 0, 0,
                   0, worker.report});
  add_report(&left_, worker.report);
  if (died) {
    ++workers_lost_;
    say(fmt::format("lost {}: {}; its blocks go to others", worker.info.name, why));
  }
  forget_slots(&worker,
               error(Code::kStale, "worker {} is not a member of job {} any more", id, plan_.name));
  std::erase_if(pending_rounds_, [id](const auto& given) { return given.first.first == id; });
  if (queue_) queue_->release(id, died);
  if (test_queue_) test_queue_->release(id, false);
  if (rounds_)
    for (const SyncRounds::Voided& v : rounds_->remove_worker(id))
      call_all(
          [this, v](size_t i, ServerAdminPort::Done done) {
            admin(i)->void_member(options_.incarnation, v.round, v.block, std::move(done));
          },
          [this](const Status& status) {
            if (!status.is_ok()) fail(status);
          });
  skip_poisoned();
}

void JobMaster::State::worker_gone(const std::string& name, uint64_t boot, const std::string& why) {
  const Member* member = workers_members_.find(name);
  if (member == nullptr || member->boot != boot) return;
  const WorkerId id = member->id;
  workers_members_.leave(id);
  lose_worker(id, true, why);
  if (phase_ == Phase::kDraining) drained();
  pump();
}

void JobMaster::State::join_server(const ServerJoin& request,
                                   const std::function<void(Result<ServerJoinReply>)>& done) {
  const Member* known = servers_members_.find(request.name);
  const bool again = known != nullptr && known->boot == request.boot;
  if (!again && phase_ != Phase::kJoining)
    return done(error(Code::kInvalid,
                      "job {} has its {} servers already; a server that came back cannot take part "
                      "until the job is run again",
                      plan_.name, servers_.size()));
  if (!again && known == nullptr && servers_here() >= options_.servers)
    return done(
        error(Code::kInvalid, "job {} has its {} servers already", plan_.name, servers_.size()));
  const Membership::Joined joined = servers_members_.join(request.name, request.boot, now());
  if (joined.stale)
    return done(
        error(Code::kStale, "another process is {} of job {} now", request.name, plan_.name));
  auto at = std::find_if(servers_.begin(), servers_.end(), [&](const ServerEntry& s) {
    return !s.gone && s.info.name == request.name;
  });
  if (at == servers_.end())  // a place that became free
    at =
        std::find_if(servers_.begin(), servers_.end(), [](const ServerEntry& s) { return s.gone; });
  ServerJoinReply reply;
  reply.server = static_cast<uint32_t>(at - servers_.begin());
  reply.report_every_ms = static_cast<uint32_t>(options_.report_every_ns / kMillisecond);
  if (at == servers_.end()) {
    servers_.push_back({request, reach_(request.address), now()});
  } else if (at->gone || !joined.again) {
    *at = {request, reach_(request.address), now()};
  }
  if (!joined.again && options_.announce_members)
    say(fmt::format("{} joined at {}", request.name, request.address));
  done(reply);
  servers_complete_if();
}

void JobMaster::State::report_server(uint32_t server, uint64_t boot,
                                     const std::function<void(Result<bool>)>& done) {
  if (server >= servers_.size() || servers_[server].info.boot != boot)
    return done(error(Code::kStale, "server {} does not belong to job {}", server, plan_.name));
  const Member* member = servers_members_.find(servers_[server].info.name);
  if (member != nullptr) servers_members_.renew(member->id, now());
  servers_[server].seen = now();
  done(phase_ == Phase::kEnded);
}

// The numbers of the other servers stay as they are.
void JobMaster::State::free_place(const std::string& name, const std::string& why) {
  for (ServerEntry& s : servers_)
    if (!s.gone && s.info.name == name) {
      s.gone = true;
      s.info.boot = 0;
      say(fmt::format("lost {}: {}; another server may take its place", name, why));
    }
}

std::string JobMaster::State::how_to_go_on() const {
  const std::string& last = last_checkpoint_.empty() ? resumed_from_ : last_checkpoint_;
  return last.empty() ? "there is no checkpoint yet: running the job again starts it over"
                      : fmt::format("run the job again to go on from {}", last);
}

size_t JobMaster::State::servers_here() const {
  return static_cast<size_t>(std::count_if(servers_.begin(), servers_.end(),
                                           [](const ServerEntry& s) { return !s.gone; }));
}

void JobMaster::State::server_gone(const std::string& name, uint64_t boot, const std::string& why) {
  const Member* member = servers_members_.find(name);
  if (member == nullptr || member->boot != boot) return;
  servers_members_.leave(member->id);
  if (phase_ == Phase::kJoining) return free_place(name, why);
  fail(error(Code::kUnavailable, "lost {}: {}; {}", name, why, how_to_go_on()));
}

void JobMaster::State::check_servers() {
  if (phase_ == Phase::kJoining && folder_open_ && servers_here() < options_.servers &&
      now() - started_ > options_.servers_deadline_ns)
    fail(error(Code::kUnavailable,
               "{} of {} servers joined within {} s; start the others: flux server --coordinator "
               "ADDRESS",
               servers_here(), options_.servers, options_.servers_deadline_ns / kSecond));
  if (ended()) return;
  // Standing servers do not report: they are asked, once they know the job.
  for (size_t i = 0; i < options_.standing_servers.size() && map_; ++i) {
    if (phase_ == Phase::kLoading) {  // the calls under way have deadlines of their own
      const Member* member = servers_members_.find(servers_[i].info.name);
      if (member != nullptr) servers_members_.renew(member->id, now());
      continue;
    }
    ServerEntry& s = servers_[i];
    if (s.asked || now() - s.seen < options_.member_lease_ns / 5) continue;
    s.asked = true;
    // Nothing about no blocks: answered at once, also while it saves.
    s.admin->marked(options_.incarnation, BlockId{}, 0, true,
                    guard([this, i](const Result<std::vector<uint32_t>>& answer) {
                      servers_[i].asked = false;
                      if (!answer.is_ok()) return;
                      servers_[i].seen = now();
                      const Member* member = servers_members_.find(servers_[i].info.name);
                      if (member != nullptr) servers_members_.renew(member->id, now());
                    }));
  }
  if (!map_ && !options_.standing_servers.empty()) return;
  for (const Member& member : servers_members_.expire(now()))
    if (phase_ == Phase::kJoining) {
      free_place(member.name, "it was not heard any more");
    } else {
      fail(error(Code::kUnavailable, "lost {}: it was not heard for {} s; {}", member.name,
                 options_.member_lease_ns / kSecond, how_to_go_on()));
    }
}

std::vector<std::string> JobMaster::State::server_names() const {
  std::vector<std::string> names;
  for (const ServerEntry& s : servers_) names.push_back(s.info.name);
  return names;
}

ClusterMap JobMaster::State::cluster_map() const {
  ClusterMap map;
  if (map_) map.route = map_->route();
  for (const ServerEntry& s : servers_) map.servers.push_back(s.info.address);
  return map;
}

void JobMaster::State::geometry_text(uint64_t hash,
                                     const std::function<void(Result<std::string>)>& done) {
  const auto at = geometry_texts_.find(hash);
  if (at == geometry_texts_.end())
    return done(error(Code::kStale, "the pass with the cut {:016x} is not open", hash));
  done(at->second);
}

void JobMaster::State::call_all(const std::function<void(size_t, ServerAdminPort::Done)>& ask,
                                Then then) {
  fan_out<bool>(
      server_names(),
      [&](size_t i, std::function<void(Result<bool>)> answer) {
        ask(i, [answer = std::move(answer)](const Status& status) {
          answer(status.is_ok() ? Result<bool>(true) : Result<bool>(status));
        });
      },
      guard(
          [then = std::move(then)](const Result<std::vector<bool>>& all) { then(all.status()); }));
}

void JobMaster::State::ask_marked(const BlockId& section, bool any,
                                  std::function<void(Result<std::vector<uint32_t>>)> then) {
  const auto blocks = static_cast<uint32_t>(geometry_->blocks.size());
  using Masks = std::vector<uint32_t>;
  fan_out<Masks>(
      server_names(),
      [&](size_t i, std::function<void(Result<Masks>)> answer) {
        admin(i)->marked(options_.incarnation, section, blocks, any, std::move(answer));
      },
      guard([blocks, any, then = std::move(then)](Result<std::vector<Masks>> all) {
        if (!all.is_ok()) return then(all.status());
        Masks sum(blocks, any ? 0 : ~0U);
        for (const Masks& masks : all.value()) {
          if (masks.size() != blocks)
            return then(
                error(Code::kCorrupt, "a server reported {} blocks of {}", masks.size(), blocks));
          for (uint32_t b = 0; b < blocks; ++b)
            sum[b] = any ? sum[b] | masks[b] : sum[b] & masks[b];
        }
        then(std::move(sum));
      }));
}

}  // namespace flux
