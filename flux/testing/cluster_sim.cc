#include "flux/testing/cluster_sim.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "flux/checkpoint/store.h"
#include "flux/storage/atomic_file.h"
#include "flux/testing/sim_roles.h"

namespace flux {
namespace {

constexpr TimeNs kFinishWithin = 300 * kSecond;  // after the faults stopped
constexpr TimeNs kFailuresUntil = 90 * kSecond;  // ... a job may still end for their sake
// Without a coordinator no process stays longer: its silence, goodbyes that nobody hears and a
// pause, by the slowest clock.
constexpr TimeNs kEndWithin = 100 * kSecond;
constexpr uint64_t kStepsMax = 5'000'000;
constexpr size_t kServersMax = 5;

class Cluster {
 public:
  Cluster(uint64_t seed, ClusterBug bug, SimWorld::Tell tell)
      : context_(seed, bug, std::move(tell)) {
    context_.facts.fail = [this](const std::string& what) { fail(what); };
    context_.disk.on_write = [this](const std::string& path) { written(path); };
    context_.disk.on_part = [this](const std::string&) {  // the worst moment to be replaced
      if (context_.plan.kill_coordinator == 0 || context_.healed || !random().chance(0.08)) return;
      post(context_.world.draw(0, 30 * kMillisecond), [this] { lose_coordinator(); });
    };
    result_.plan = to_string(context_.plan);
    result_.mode = context_.plan.mode;
    context_.world.tell(result_.plan);
  }
  ~Cluster() {  // users before what they use
    workers_.clear();
    servers_.clear();
    coordinator_.reset();
    zombies_.clear();
  }

  ClusterSimResult run() {
    start_job();
    post(rest(), [this] { nemesis(); });
    post(context_.plan.faults_end, [this] { heal(); });
    post(kSecond, [this] { look(); });
    while (result_.ok && !done_ && result_.steps < kStepsMax && executor().step()) {
      ++result_.steps;
      reap();
      if (now() > context_.plan.faults_end + kFinishWithin)
        fail("the job does not end: " + waits());
    }
    if (result_.ok && !done_) fail("nothing happens any more, but the job is not complete");
    result_.messages = context_.net.messages();
    const ClusterFacts& seen = context_.facts;
    std::tie(result_.pushes, result_.duplicates, result_.refused) =
        std::tie(seen.pushes, seen.duplicates, seen.refused);
    std::tie(result_.poisoned, result_.rebalanced, result_.rumours, result_.condemned) =
        std::tie(seen.poisoned, seen.rebalanced, seen.rumours, seen.condemned);
    result_.skipped = context_.audit.skipped();
    result_.unread = context_.disk.unread();
    result_.misread = context_.disk.bent();
    result_.acknowledged = context_.facts.replicas.told();
    result_.backups = context_.facts.replicas.backups_seen();
    result_.trace_hash = context_.world.trace_hash();
    result_.simulated_s = static_cast<double>(now()) * 1e-9;
    return result_;
  }

 private:
  SimExecutor& executor() { return context_.world.executor(); }
  Random& random() { return context_.world.random(); }
  TimeNs now() const { return context_.world.now_ns(); }
  TimeNs rest() { return context_.world.draw(kMillisecond, context_.plan.rest_max); }
  void post(TimeNs delay, std::function<void()> task) { executor().post(delay, std::move(task)); }
  void fail(const std::string& what) {
    if (!result_.ok) return;
    result_.ok = false;
    result_.failure = fmt::format("{} (at {} ms)", what, now() / kMillisecond);
    context_.world.tell("FAILED: " + what);
  }

  // --- who starts processes ---
  // Everything anew: the first time, after a power cut, after the job ended for a reason.
  void start_job() {
    for (auto& server : servers_)
      if (server) bury(&server, "is killed: its address is needed");
    servers_.clear();
    ++starts_;
    start_coordinator();
    for (uint32_t i = 0; i < context_.plan.servers; ++i) start_server(i);
    for (uint32_t i = 0; i < context_.plan.workers; ++i)
      later(context_.world.draw(0, kSecond), [this, i] { start_worker(i); });
  }
  // The coordinator alone; the others go on.
  void start_coordinator() {
    ++result_.lives;
    coordinator_.reset();
    coordinator_ = std::make_unique<CoordinatorProcess>(
        &context_, result_.lives, random().next() | 1,
        [this, life = result_.lives](const JobOutcome& outcome) {
          if (life == result_.lives && coordinator_)
            finished(outcome);
          else
            zombie_finished(life, outcome);
        });
    context_.world.tell(coordinator_->name() + " is started");
    finished_ = false;
  }
  void start_server(uint32_t index) {
    if (servers_.size() <= index) servers_.resize(index + 1);
    if (servers_[index]) return;
    servers_[index] = std::make_unique<ServerProcess>(&context_, index);
    context_.world.tell(servers_[index]->name() + " is started");
  }
  void start_worker(uint32_t index) {
    for (const auto& worker : workers_)
      if (worker->index() == index && worker_start_[worker.get()] == starts_) return;
    workers_.push_back(std::make_unique<WorkerProcess>(&context_, index));
    worker_start_[workers_.back().get()] = starts_;
    context_.world.tell(workers_.back()->name() + " is started");
  }
  // Unless everything was started anew, or is over, by then.
  void later(TimeNs delay, std::function<void()> task) {
    post(delay, [this, start = starts_, task = std::move(task)] {
      if (start == starts_ && !complete_ && !failed_) task();
    });
  }
  bool job_over() const { return !coordinator_ || finished_; }

  void finished(const JobOutcome& outcome) {
    finished_ = true;
    const Status& status = outcome.status;
    context_.world.trace(static_cast<uint64_t>(status.code()));
    context_.world.tell(fmt::format("the job ends: {}{}", status.is_ok() ? "" : status.message(),
                                    outcome.complete ? "complete" : ""));
    if (!status.is_ok()) check_reason(status);
    if (status.is_ok() && outcome.complete) {
      check_complete();
      const std::string wrong = context_.audit.check_accounts(outcome.passes, outcome.totals,
                                                              outcome.last.batches_skipped);
      if (!wrong.empty()) fail("the job is complete, but " + wrong);
      complete_ = true;
    } else {
      failed_ = true;
    }
    // It answers a while longer, so that the others learn of the end.
    post(context_.world.draw(0, 3 * kSecond), [this, life = result_.lives] {
      if (life != result_.lives || !coordinator_) return;
      coordinator_.reset();
      coordinator_gone();
    });
  }
  // A coordinator that was replaced notices, or succeeds; then it is gone.
  void zombie_finished(uint64_t life, const JobOutcome& outcome) {
    context_.world.tell(fmt::format("coordinator-{} ends: {}", life, outcome.status.message()));
    if (!outcome.status.is_ok()) check_reason(outcome.status);
    post(context_.world.draw(0, kSecond), [this, life] { zombies_.erase(life); });
  }
  // It is not heard any more, but lives; another one is started elsewhere. If it sleeps, what is
  // sent to it is there when it wakes up.
  void lose_coordinator() {
    if (!coordinator_ || finished_ || complete_) return;
    const bool sleeps = random().chance(0.3);
    const TimeNs least = random().chance(0.5) ? kSecond : kSecond / 30;
    const TimeNs until = now() + context_.world.draw(least, 15 * least);
    context_.world.tell(coordinator_->name() + " is not heard any more");
    if (!sleeps) context_.net.isolate(coordinator_->name(), until);
    if (sleeps || random().chance(0.5)) coordinator_->node()->pause(until);
    zombies_[result_.lives] = std::move(coordinator_);
    ++doubles_;
    finished_ = true;
    coordinator_gone();
  }
  // What may end a job while there are faults.
  void check_reason(const Status& status) {
    // Of two coordinators at work the one that claimed its term later wins, whichever that is.
    const bool replaced = status.code() == Code::kStale && doubles_ > 0;
    const bool misread = status.code() == Code::kCorrupt && context_.disk.bent() > 0;
    const bool known = status.code() == Code::kUnavailable || status.code() == Code::kIo ||
                       status.code() == Code::kCancelled || replaced || misread;
    if (!known) return fail("the job ended for no good reason: " + status.message());
    if (now() > context_.plan.faults_end + kFailuresUntil)
      fail("the job ended without a fault: " + status.message());
  }
  void coordinator_gone() {
    gone_since_ = now();
    if (complete_) {
      post(kEndWithin, [this] { all_ended(); });
      return;
    }
    if (failed_) {  // somebody reads why, and runs the job again
      post(context_.world.draw(kMillisecond, 4 * kSecond), [this, start = starts_] {
        if (start != starts_) return;
        failed_ = false;
        start_job();
      });
      return;
    }
    if (random().chance(0.3)) lose_log();
    later(context_.world.draw(10 * kMillisecond, 2 * kSecond), [this, life = result_.lives] {
      if (life == result_.lives) start_coordinator();
    });
  }
  // What only the log knew is forgotten: with servers out of reach older replicas may win.
  void lose_log() {
    context_.world.tell("the coordinator's log is deleted");
    read_decisions();
    const Status removed = context_.eye.remove_all(kDecisionLog);
    (void)removed;  // it may not exist yet
    context_.facts.replicas.rolled_back_all();
  }
  void all_ended() {
    for (const auto& server : servers_)
      if (server) return fail(server->name() + " goes on though the job is over");
    for (const auto& worker : workers_)
      return fail(worker->name() + " goes on though the job is over");
    for (const auto& [life, zombie] : zombies_)
      return fail(zombie->name() + " goes on though the job is over");
    done_ = true;
  }

  // --- processes that end or die ---
  template <typename P>
  void bury(std::unique_ptr<P>* process, const char* how) {
    context_.world.tell((*process)->name() + " " + how);
    context_.world.trace(hash_bytes((*process)->name()));
    (*process)->kill();
    process->reset();
  }
  void reap() {
    std::erase_if(zombies_, [](const auto& z) { return !z.second->node()->alive(); });
    if (coordinator_ && !coordinator_->node()->alive()) kill_coordinator("died");
    for (auto& server : servers_)
      if (server && (server->over() || !server->node()->alive())) reap_server(&server);
    for (size_t i = 0; i < workers_.size();) {
      auto& worker = workers_[i];
      if (!worker->over() && worker->node()->alive()) {
        ++i;
        continue;
      }
      reap_worker(i);
    }
  }
  void reap_server(std::unique_ptr<ServerProcess>* server) {
    const uint32_t index = (*server)->index();
    const bool drained = (*server)->over() && (*server)->status().is_ok();
    if (!(*server)->over()) ++result_.crashes;
    bury(server, "is gone");
    // One that was sent away comes back too: somebody wants more servers.
    const TimeNs after = drained ? 10 * kSecond : 3 * kSecond;
    later(context_.world.draw(0, after), [this, index] { start_server(index); });
  }
  void reap_worker(size_t i) {
    auto& worker = workers_[i];
    const uint32_t index = worker->index();
    const Status status = worker->status();
    const bool ended = worker->over();
    const bool mine = worker_start_[worker.get()] == starts_;
    if (!ended) ++result_.crashes;
    if (ended && (status.code() == Code::kInvalid || status.code() == Code::kCorrupt))
      fail(worker->name() + " ended for no good reason: " + status.message());
    worker_start_.erase(worker.get());
    bury(&worker, ended ? "is gone" : "died");
    workers_.erase(workers_.begin() + static_cast<long>(i));
    if (mine) later(context_.world.draw(0, 3 * kSecond), [this, index] { start_worker(index); });
  }
  void kill_coordinator(const char* how) {
    ++result_.crashes;
    const bool was_over = finished_;
    bury(&coordinator_, how);
    finished_ = true;
    if (complete_ && was_over)
      post(kEndWithin, [this] { all_ended(); });
    else
      coordinator_gone();
  }
  // All processes at once, and what was not on disk.
  void power_cut() {
    if (complete_) return;
    context_.world.tell("the power is cut");
    ++result_.power_cuts;
    result_.crashes += 1 + servers_.size() + workers_.size();
    zombies_.clear();
    if (coordinator_) bury(&coordinator_, "loses power");
    for (auto& server : servers_)
      if (server) bury(&server, "loses power");
    while (!workers_.empty()) {
      worker_start_.erase(workers_.back().get());
      bury(&workers_.back(), "loses power");
      workers_.pop_back();
    }
    context_.disk.power_cut();
    finished_ = true;
    gone_since_ = now();
    ++starts_;
    failed_ = true;
    post(context_.world.draw(kMillisecond, 4 * kSecond), [this, start = starts_] {
      if (start != starts_) return;
      failed_ = false;
      start_job();
    });
  }

  // --- faults ---
  void nemesis() {
    if (context_.healed || done_) return;
    const ClusterPlan& p = context_.plan;
    const uint32_t weights[] = {
        p.kill_worker,  p.leave_worker,     p.pause_worker, p.isolate_worker,
        p.kill_server,  p.kill_coordinator, p.stop_job,     1,
        p.pause_server, p.isolate_server,   p.cut,          p.power_cut,
        p.drain,        p.add_server,       p.move,         p.jump_clock,
        p.drift_clock};
    uint32_t sum = 0;
    for (const uint32_t w : weights) sum += w;
    uint64_t pick = random().below(sum);
    size_t deed = 0;
    while (pick >= weights[deed]) pick -= weights[deed++];
    do_deed(deed);
    post(rest(), [this] { nemesis(); });
  }
  void do_deed(size_t deed) {
    WorkerProcess* worker =
        workers_.empty() ? nullptr : workers_[random().below(workers_.size())].get();
    const TimeNs until = now() + context_.world.draw(100 * kMillisecond, 8 * kSecond);
    if (deed < 4 && worker == nullptr) return;
    switch (deed) {
      case 0:
        context_.world.tell(worker->name() + " is killed");
        worker->node()->kill();
        break;
      case 1:
        context_.world.tell(worker->name() + " is told to leave");
        worker->agent()->stop("somebody wants it to leave");
        break;
      case 2:
        context_.world.tell(worker->name() + " pauses");
        worker->node()->pause(until);
        break;
      case 3:
        context_.world.tell(worker->name() + " is cut off");
        context_.net.isolate(worker->name(), until);
        break;
      case 4:
        return kill_server();
      case 5:
        if (random().chance(0.6)) return lose_coordinator();
        if (coordinator_ && !complete_) coordinator_->node()->kill();
        break;
      case 6:
        if (coordinator_ && !finished_) coordinator_->master()->stop("somebody wants it to stop");
        break;
      case 7:
        probe();
        break;
      case 11:
        power_cut();
        break;
      case 13:
        if (servers_.size() < kServersMax && !complete_)
          start_server(static_cast<uint32_t>(servers_.size()));
        break;
      case 10:
        cut();
        break;
      case 15:
      case 16:
        change_clock(deed == 15);
        break;
      default:
        do_server_deed(deed, until);
    }
  }
  void do_server_deed(size_t deed, TimeNs until) {
    if (servers_.empty()) return;
    auto& server = servers_[random().below(servers_.size())];
    if (!server || complete_) return;
    switch (deed) {
      case 8:
        context_.world.tell(server->name() + " pauses");
        server->node()->pause(until);
        break;
      case 9:
        context_.world.tell(server->name() + " is cut off");
        context_.net.isolate(server->name(), until);
        break;
      case 12:
        if (coordinator_ && !finished_) {
          context_.world.tell(server->name() + " is to be drained");
          (void)coordinator_->master()->drain(server->name());
        }
        break;
      default:
        if (coordinator_ && !finished_)
          (void)coordinator_->master()->move(
              static_cast<ShardId>(random().below(context_.all_shards())), server->name());
    }
  }
  void kill_server() {
    if (servers_.empty()) return;
    auto& server = servers_[random().below(servers_.size())];
    if (!server || complete_) return;
    context_.world.tell(server->name() + " is killed");
    server->node()->kill();
  }
  // Of any process: forward by seconds, seldom by minutes; or it runs at another rate.
  void change_clock(bool jumps) {
    std::vector<SimProcess*> all;
    if (coordinator_) all.push_back(coordinator_.get());
    for (const auto& server : servers_)
      if (server) all.push_back(server.get());
    for (const auto& worker : workers_) all.push_back(worker.get());
    if (all.empty()) return;
    SimProcess* one = all[random().below(all.size())];
    if (!jumps) return one->node()->drift_clock(0.8 + random().uniform() * 0.5);
    ++result_.jumps;
    const TimeNs by =
        context_.world.draw(kMillisecond, random().chance(0.1) ? 300 * kSecond : 20 * kSecond);
    context_.world.tell(
        fmt::format("the clock of {} jumps by {} ms", one->name(), by / kMillisecond));
    one->node()->jump_clock(by);
  }
  // One way or both, between any two.
  void cut() {
    std::vector<std::string> names;
    if (coordinator_) names.push_back(coordinator_->name());
    for (const auto& server : servers_)
      if (server) names.push_back(server->name());
    for (const auto& worker : workers_) names.push_back(worker->name());
    if (names.size() < 2) return;
    const std::string& a = names[random().below(names.size())];
    const std::string& b = names[random().below(names.size())];
    if (a == b) return;
    const TimeNs until = now() + context_.world.draw(100 * kMillisecond, 8 * kSecond);
    const bool both = random().chance(0.5);
    context_.world.tell(
        fmt::format("nothing passes from {} to {}{}", a, b, both ? ", or back" : ""));
    context_.net.cut(a, b, until);
    if (both) context_.net.cut(b, a, until);
  }
  // A sender that lags: a write under an epoch that has passed.
  void probe() {
    if (!coordinator_) return;
    const uint32_t pass = static_cast<uint32_t>(random().below(context_.plan.passes.size()));
    const Geometry geometry = sim_geometry(context_.plan.passes[pass]);
    const uint32_t block = static_cast<uint32_t>(random().below(geometry.blocks.size()));
    const uint32_t batches = geometry.batches_in(block);
    const BatchId id{{pass, 0, 0, block},
                     static_cast<uint8_t>(random().below(batches)),
                     static_cast<uint8_t>(batches)};
    for (const auto& server : servers_)
      if (server) server->probe(coordinator_->incarnation(), geometry.hash(), id);
  }
  void heal() {
    context_.healed = true;
    context_.net.heal();
    context_.world.tell("the faults stop");
    if (coordinator_) coordinator_->heal();
    for (const auto& [life, zombie] : zombies_) zombie->heal();
    for (const auto& server : servers_)
      if (server) server->heal();
    for (const auto& worker : workers_) worker->heal();
  }

  // --- the audit ---
  void read_decisions() {
    context_.facts.decided.merge(logged_skips(&context_.eye, kDecisionLog));
    context_.audit.add_skipped(context_.facts.decided);
  }
  void written(const std::string& path) {
    if (!path.ends_with("/manifest.json")) return;
    ++result_.checkpoints;
    const Manifest manifest =
        decode_manifest(path, context_.eye.read(path, 1U << 20).value()).value();
    check_manifest(path, manifest);
    read_decisions();
    const std::string wrong = context_.audit.check_checkpoint(&context_.eye, parent_folder(path));
    if (!wrong.empty()) return fail("a bad checkpoint was committed: " + wrong);
    closed_ = std::max(closed_, static_cast<uint32_t>(manifest.closed.size()));
  }
  // Nobody commits who has been replaced, or has forgotten what was committed before.
  void check_manifest(const std::string& path, const Manifest& manifest) {
    const auto terms = context_.eye.list(join_path(kSimOutput, "terms")).value();
    for (const std::string& name : terms)
      if (std::stoull(name) > manifest.epoch.term)
        fail(fmt::format("a coordinator of term {} committed {} though term {} is claimed",
                         manifest.epoch.term, path, std::stoull(name)));
    const CheckpointStore store(join_path(kSimOutput, "checkpoints"), &context_.eye);
    const auto numbers = store.committed().value();
    if (numbers.size() < 2) return;
    const auto before = store.load(numbers[numbers.size() - 2]);
    if (before.is_ok() && before.value().closed.size() > manifest.closed.size())
      fail(fmt::format("{} has {} closed passes, the one before {}", path, manifest.closed.size(),
                       before.value().closed.size()));
  }
  void check_complete() {
    read_decisions();
    const auto map = current_map();
    for (const ReplicaAudit::Seen& seen : seen_servers())
      for (const ShardId shard : seen.server->primaries().shards) {
        if (!map || seen.server->state(shard).epoch != map->route.epoch[shard]) continue;
        const std::string wrong =
            context_.audit.check_complete(seen.server->image(shard), context_.plan.schedule.passes);
        if (!wrong.empty()) fail("the job is complete, but " + wrong);
      }
    const CheckpointStore store(join_path(kSimOutput, "checkpoints"), &context_.eye);
    const auto committed = store.committed().value();  // no leftovers of writers that died
    if (committed.empty()) return fail("the job is complete, but there is no checkpoint");
    const std::string newest = store.path_of(committed.back());
    const std::string wrong =
        context_.audit.check_checkpoint(&context_.eye, newest, context_.plan.schedule.passes);
    if (!wrong.empty()) fail("the job is complete, but " + wrong);
  }
  std::vector<ReplicaAudit::Seen> seen_servers() {
    std::vector<ReplicaAudit::Seen> out;
    for (const auto& server : servers_) {
      const Server* live =
          server && coordinator_ ? server->server(coordinator_->incarnation()) : nullptr;
      if (live != nullptr) out.push_back({server->name(), server_address(server->index()), live});
    }
    return out;
  }
  std::optional<ClusterMap> current_map() {
    std::optional<ClusterMap> out;
    if (!coordinator_ || !coordinator_->node()->alive()) return out;
    coordinator_->master()->map([&out](const Result<ClusterMap>& map) {
      if (map.is_ok() && map.value().route.size() > 0) out = map.value();
    });
    return out;
  }
  std::string waits() {
    if (!coordinator_) return "no coordinator";
    std::string out;
    const JobStatus status = coordinator_->master()->status();
    for (const WaitStatus& wait : status.waits)
      out += fmt::format("{}{} waits {}", out.empty() ? "" : "; ", wait.who, wait.what);
    return fmt::format("{}, {} todo {} pending; {}", status.state, status.todo, status.pending,
                       out);
  }
  // A term belongs to one coordinator.
  void check_terms(CoordinatorProcess* one) {
    const uint64_t term = one->master()->status().epoch.term;
    const auto [at, is_new] = context_.facts.terms.try_emplace(term, one->name());
    if (term != 0 && at->second != one->name())
      fail(fmt::format("{} and {} have the same term {}", at->second, one->name(), term));
  }
  // Nothing waits without a name, and live shards agree with their ledgers.
  void look() {
    if (done_) return;
    if (coordinator_) check_terms(coordinator_.get());
    if (coordinator_ && coordinator_->node()->alive())
      for (const WaitStatus& wait : coordinator_->master()->status().waits)
        if (wait.who.empty() || wait.what.empty()) fail("somebody waits without a name");
    read_decisions();
    const auto seen = seen_servers();
    std::string wrong = context_.facts.replicas.check(seen, context_.audit, closed_);
    if (!wrong.empty()) fail(wrong);
    if (const auto map = current_map(); map && wrong.empty()) {
      wrong = context_.facts.replicas.check_owners(seen, *map, coordinator_->incarnation());
      if (!wrong.empty()) fail(wrong);
    }
    for (const ReplicaAudit::Seen& one : seen)
      if (one.server->diverged() > 0) fail(one.name + ": a history differs from its primary's");
    for (const auto& server : servers_)
      if (server && !(wrong = server->look()).empty()) fail(server->name() + ": " + wrong);
    if (!coordinator_ && !complete_ && now() - gone_since_ > kEndWithin)
      fail("nobody starts the job again");
    post(kSecond, [this] { look(); });
  }

  ClusterContext context_;
  ClusterSimResult result_;
  std::unique_ptr<CoordinatorProcess> coordinator_;
  std::map<uint64_t, std::unique_ptr<CoordinatorProcess>> zombies_;  // by life
  std::vector<std::unique_ptr<ServerProcess>> servers_;
  std::vector<std::unique_ptr<WorkerProcess>> workers_;  // also those of former lives
  std::map<const WorkerProcess*, uint64_t> worker_start_;
  uint64_t starts_ = 0;    // of everything
  uint64_t doubles_ = 0;   // coordinators that were replaced while they lived
  uint32_t closed_ = 0;    // passes, by manifests on disk
  bool finished_ = false;  // this life of the coordinator
  bool failed_ = false;    // the job ended for a reason; it will be started again
  bool complete_ = false;
  bool done_ = false;
  TimeNs gone_since_ = 0;
};

}  // namespace

ClusterSimResult run_cluster_sim(
    uint64_t seed, ClusterBug bug,
    const std::function<void(TimeNs now, const std::string& line)>& tell) {
  return Cluster(seed, bug, tell).run();
}

}  // namespace flux
