#include "flux/testing/push_sim.h"

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <vector>

#include "flux/base/hash.h"
#include "flux/cluster/block_queue.h"
#include "flux/cluster/schedule.h"
#include "flux/protocol/push_session.h"
#include "flux/protocol/shard_replica.h"
#include "flux/testing/sim_executor.h"
#include "flux/testing/sim_network.h"

namespace flux {
namespace {

constexpr uint64_t kGeometry = 77;
constexpr TimeNs kFaultsEnd = 20 * kSecond;
constexpr TimeNs kRunEnd = 600 * kSecond;
constexpr uint64_t kStepsMax = 2'000'000;

// A shard with its rows: how often each batch was applied.
struct SimShard {
  ShardReplica replica;
  std::map<BatchId, int> rows;
};

struct SimServer {
  bool up = true;
  uint64_t boot = 0;
};

struct SimWorker {
  uint64_t boot = 0;
  bool up = true;
  std::unique_ptr<PushSession> session;
  std::vector<BatchId> todo;                          // of leased blocks, not yet pushed
  std::map<PushSeq, std::vector<BatchId>> in_flight;  // the held gradients
  uint32_t attempt = 0;
};

class Sim {
 public:
  Sim(uint64_t seed, PlantedBug bug)
      : bug_(bug), executor_(seed), network_(&executor_, draw_faults()) {
    Random& random = executor_.random();
    servers_.resize(1 + random.below(3));
    shards_.resize(2 + random.below(6));
    workers_.resize(1 + random.below(4));
    schedule_.epochs = static_cast<uint16_t>(1 + random.below(2));
    batches_.resize(1 + random.below(6));
    for (uint8_t& n : batches_) n = static_cast<uint8_t>(1 + random.below(6));
    route_.server.resize(shards_.size());
    route_.epoch.assign(shards_.size(), ShardEpoch{1, 1});
    for (size_t s = 0; s < shards_.size(); ++s) {
      route_.server[s] = static_cast<ServerId>(s % servers_.size());
      shards_[s].replica = ShardReplica(static_cast<ShardId>(s), incarnation_, route_.epoch[s]);
      check(shards_[s].replica.open_pass(0, kGeometry).is_ok(), "open_pass");
    }
    durable_ = shards_;
    manifest_ = shards_;
  }

  PushSimResult run() {
    begin_section();
    for (size_t w = 0; w < workers_.size(); ++w) start_worker(w);
    executor_.post(delay(), [this] { nemesis(); });
    while (result_.ok && !finished_ && result_.steps < kStepsMax && executor_.step()) {
      ++result_.steps;
      result_.trace_hash = hash_pair(result_.trace_hash, static_cast<uint64_t>(executor_.now_ns()));
      check_invariants();
      if (executor_.now_ns() > kRunEnd) fail("the run does not finish");
    }
    if (result_.ok && !finished_) fail("nothing left to do, but the pass is not complete");
    if (result_.ok) check_end();
    result_.messages = network_.sent();
    for (const SimWorker& w : workers_)
      if (w.session) result_.duplicates += w.session->duplicates();
    return result_;
  }

 private:
  SimFaults draw_faults() {
    Random& random = executor_.random();
    return {random.uniform() * 0.3, random.uniform() * 0.3,
            static_cast<TimeNs>(1 + random.below(2000)) * kMillisecond};
  }
  TimeNs delay() { return static_cast<TimeNs>(1 + executor_.random().below(500)) * kMillisecond; }
  void fail(const std::string& what) {
    if (!result_.ok) return;
    result_.ok = false;
    result_.failure = what + " (at " + std::to_string(executor_.now_ns() / kMillisecond) + " ms)";
  }
  void check(bool condition, const char* what) {
    if (!condition) fail(what);
  }

  // --- coordinator ---
  std::vector<uint32_t> marked_by_all() const {
    std::vector<uint32_t> all(batches_.size(), ~0U);
    BlockId id = schedule_.section(0, section_);
    for (id.block = 0; id.block < batches_.size(); ++id.block)
      for (const SimShard& shard : shards_) all[id.block] &= shard.replica.ledger().marked(id);
    return all;
  }
  void begin_section() {
    std::vector<uint32_t> order(batches_.size());
    std::iota(order.begin(), order.end(), 0U);
    BlockQueueOptions options;
    options.deaths_alone_max = 0;  // nobody here gives verdicts, and every kill is random
    queue_.emplace(schedule_.section(0, section_), batches_, order, options);
    queue_->recompute(marked_by_all(), false);
  }
  // The truth is in the shards; what workers said are hints.
  void recompute() {
    for (section_ = 0; section_ < schedule_.sections(); ++section_) {
      begin_section();
      if (!queue_->all_applied()) break;
    }
    for (SimWorker& w : workers_) w.todo.clear();  // leases of the former queue are void
    if (section_ == schedule_.sections()) finished_ = true;
  }
  void advance_if_applied() {
    if (!queue_->all_applied()) return;
    recompute();
  }

  // --- workers ---
  void start_worker(size_t w) {
    SimWorker& worker = workers_[w];
    worker.up = true;
    worker.todo.clear();
    worker.in_flight.clear();
    PushSessionOptions options;
    options.pushes_max = 3;
    options.answer_timeout_ns = 200 * kMillisecond;
    options.timeout_max_ns = 2 * kSecond;
    worker.session = std::make_unique<PushSession>(options, route_);
    work(w, ++worker.boot);
  }
  void work(size_t w, uint64_t boot) {
    SimWorker& worker = workers_[w];
    if (!worker.up || worker.boot != boot || finished_) return;
    std::vector<PushAction> actions;
    const TimeNs now = executor_.now_ns();
    if (worker.session->in_flight() > 0 && worker.session->next_time() <= now)
      worker.session->on_time(now, &actions);
    if (worker.todo.empty()) take_lease(w);
    if (!worker.todo.empty() && worker.session->has_room()) start_push(&worker, &actions);
    perform(w, actions);
    executor_.post(delay() / 10, [this, w, boot] { work(w, boot); });
  }
  void take_lease(size_t w) {
    BlockLease lease;
    if (!queue_->lease(static_cast<WorkerId>(w), executor_.now_ns(), &lease)) return;
    BlockId id = lease.id;
    if (bug_ == PlantedBug::kAttemptInKey && lease.attempt > 1)
      id.epoch = static_cast<uint16_t>(id.epoch + 100 * lease.attempt);
    for (uint32_t b = 0; b < lease.batches; ++b)
      if (((lease.skip_mask >> b) & 1) == 0)
        workers_[w].todo.push_back(
            {id, static_cast<uint8_t>(b), static_cast<uint8_t>(lease.batches)});
  }
  void start_push(SimWorker* worker, std::vector<PushAction>* actions) {
    // Sometimes the gradients of two batches are merged into one push.
    const size_t n = std::min<size_t>(worker->todo.size(), executor_.random().chance(0.3) ? 2 : 1);
    std::vector<BatchId> ids(worker->todo.begin(), worker->todo.begin() + static_cast<long>(n));
    worker->todo.erase(worker->todo.begin(), worker->todo.begin() + static_cast<long>(n));
    std::sort(ids.begin(), ids.end());
    const PushSeq seq = worker->session->start(ids, 1, executor_.now_ns(), actions);
    worker->in_flight[seq] = ids;
  }
  void perform(size_t w, const std::vector<PushAction>& actions) {
    SimWorker& worker = workers_[w];
    for (const PushAction& action : actions) {
      switch (action.kind) {
        case PushAction::Kind::kSend:
          send_push(w, action);
          break;
        case PushAction::Kind::kConfirm:  // one replica: nobody gives receipts
        case PushAction::Kind::kApplied:
          break;
        case PushAction::Kind::kRelease:
          for (const BatchId& id : worker.in_flight[action.seq])
            queue_->batch_applied(id, executor_.now_ns());
          worker.in_flight.erase(action.seq);
          advance_if_applied();
          break;
        case PushAction::Kind::kRefresh: {
          const uint64_t boot = worker.boot;
          network_.send([this, w, boot, route = route_] {
            if (!alive(w, boot)) return;
            std::vector<PushAction> more;
            workers_[w].session->on_route(route, executor_.now_ns(), &more);
            perform(w, more);
          });
          break;
        }
        case PushAction::Kind::kStop:
          crash_worker(w);
          return;
      }
    }
  }
  bool alive(size_t w, uint64_t boot) const { return workers_[w].up && workers_[w].boot == boot; }

  void send_push(size_t w, const PushAction& action) {
    const PushClaim claim{incarnation_, kGeometry, action.ids, Verdict::kApplied};
    network_.send([this, w, claim, boot = workers_[w].boot, sent = action] {
      if (!servers_[sent.server].up) return;
      std::vector<ShardAnswer> answers;
      for (size_t i = 0; i < sent.shards.size(); ++i)
        if (route_.server[sent.shards[i]] == sent.server)
          answers.push_back(serve_push(sent.shards[i], claim, sent.epochs[i]));
      network_.send([this, w, boot, sent, answers] {
        if (!alive(w, boot)) return;
        std::vector<PushAction> more;
        workers_[w].session->on_answers(sent, answers, 0, executor_.now_ns(), &more);
        perform(w, more);
      });
    });
  }

  // --- servers ---
  ShardAnswer serve_push(ShardId s, PushClaim claim, ShardEpoch epoch) {
    SimShard& shard = shards_[s];
    const bool stale = claim.incarnation != incarnation_ || epoch != route_.epoch[s];
    if (bug_ == PlantedBug::kNoIncarnationCheck) claim.incarnation = shard.replica.incarnation();
    if (bug_ == PlantedBug::kNoEpochCheck) epoch = shard.replica.epoch();
    ShardAnswer answer = shard.replica.judge(claim, epoch);
    if (answer.answer == Answer::kPartial && bug_ == PlantedBug::kPartialAppliesAll) {
      for (const BatchId& id : claim.ids) ++shard.rows[id];
      answer.answer = Answer::kApplied;
      return answer;
    }
    if (answer.answer != Answer::kApplied) return answer;
    if (stale) fail("a write of an older incarnation or epoch was accepted");
    const bool empty = hash_pair(claim.ids[0].block.block, s) % 4 == 0;
    if (empty && bug_ == PlantedBug::kEmptyShardsUnmarked) return answer;
    if (bug_ == PlantedBug::kAckBeforeApply && executor_.random().chance(0.2)) {
      late_apply(s, claim);
      return answer;
    }
    for (const BatchId& id : claim.ids) ++shard.rows[id];
    shard.replica.commit(claim, hash_bytes(claim.ids.data(), claim.ids.size() * sizeof(BatchId)));
    return answer;
  }
  void late_apply(ShardId s, const PushClaim& claim) {
    const uint64_t boot = servers_[route_.server[s]].boot;
    executor_.post(delay(), [this, s, claim, boot] {
      SimShard& shard = shards_[s];
      if (servers_[route_.server[s]].boot != boot || !servers_[route_.server[s]].up) return;
      for (const BatchId& id : claim.ids) ++shard.rows[id];  // whatever came in meanwhile
      if (shard.replica.judge(claim, shard.replica.epoch()).answer == Answer::kApplied)
        shard.replica.commit(claim, 1);
    });
  }

  // --- faults ---
  void nemesis() {
    if (finished_) return;
    if (executor_.now_ns() > kFaultsEnd) {
      network_.heal();
      for (size_t w = 0; w < workers_.size(); ++w)
        if (!workers_[w].up) start_worker(w);
      return;
    }
    const uint64_t kind = executor_.random().below(10);
    if (kind < 3) {
      crash_worker(executor_.random().below(workers_.size()));
    } else if (kind < 6) {
      save_shard(executor_.random().below(shards_.size()));
    } else if (kind < 8) {
      crash_server(static_cast<ServerId>(executor_.random().below(servers_.size())));
    } else if (kind < 9) {
      manifest_ = durable_;  // every file is complete by now: commit them as one checkpoint
      manifest_epoch_n_ = epoch_n_;
    } else {
      crash_job();
    }
    executor_.post(delay(), [this] { nemesis(); });
  }
  void crash_worker(size_t w) {
    if (!workers_[w].up) return;
    ++result_.crashes;
    workers_[w].up = false;
    queue_->release(static_cast<WorkerId>(w), true);
    const uint64_t boot = workers_[w].boot;
    executor_.post(delay(), [this, w, boot] {
      if (!workers_[w].up && workers_[w].boot == boot && !finished_) start_worker(w);
    });
  }
  void save_shard(size_t s) {
    durable_[s] = shards_[s];
    if (bug_ != PlantedBug::kSnapshotApart) return;
    // The rows of the snapshot are those of a moment later.
    const uint64_t incarnation = incarnation_;
    executor_.post(delay(), [this, s, incarnation] {
      if (incarnation == incarnation_) durable_[s].rows = shards_[s].rows;
    });
  }
  // With one replica a lost server comes back from its files under a new epoch; what its shards
  // lack is leased again.
  void crash_server(ServerId server) {
    ++result_.crashes;
    ++servers_[server].boot;
    ++epoch_n_;
    for (size_t s = 0; s < shards_.size(); ++s) {
      if (route_.server[s] != server) continue;
      const ServerId next = static_cast<ServerId>(executor_.random().below(servers_.size()));
      shards_[s] = durable_[s];
      shards_[s].replica.set_incarnation(incarnation_);
      route_.server[s] = next;
      route_.epoch[s] = ShardEpoch{1, epoch_n_};
      shards_[s].replica.set_epoch(route_.epoch[s]);
    }
    recompute();
  }
  // Everything dies and is restored from the last manifest, as a new incarnation. Epochs go on from
  // that manifest, so two restarts from the same one use the same epochs: only the incarnation
  // tells their messages apart.
  void crash_job() {
    ++result_.crashes;
    ++incarnation_;
    epoch_n_ = manifest_epoch_n_ + 1;
    shards_ = manifest_;
    for (size_t s = 0; s < shards_.size(); ++s) {
      shards_[s].replica.set_incarnation(incarnation_);
      route_.epoch[s] = ShardEpoch{1, epoch_n_};
      shards_[s].replica.set_epoch(route_.epoch[s]);
    }
    for (SimServer& server : servers_) ++server.boot;
    durable_ = manifest_;
    for (size_t w = 0; w < workers_.size(); ++w) {
      workers_[w].up = false;
      const uint64_t boot = ++workers_[w].boot;
      executor_.post(delay(), [this, w, boot] {
        if (!workers_[w].up && workers_[w].boot == boot && !finished_) start_worker(w);
      });
    }
    recompute();
  }

  // --- the audit ---
  void check_invariants() {
    for (const SimShard& shard : shards_) {
      for (const auto& [id, count] : shard.rows) {
        if (count > 1) return fail("shard applied twice: " + to_string(id));
        if (!shard.replica.ledger().find(id)) return fail("rows without a mark: " + to_string(id));
      }
      const auto totals = shard.replica.ledger().totals(0);
      if (totals[0] != shard.rows.size())
        return fail("shard " + std::to_string(shard.replica.shard()) + ": ledger says " +
                    std::to_string(totals[0]) + " batches, rows say " +
                    std::to_string(shard.rows.size()));
    }
  }
  void check_end() {
    uint64_t expected = 0;
    for (const uint8_t n : batches_) expected += n;
    expected *= schedule_.sections();
    for (const SimShard& shard : shards_)
      if (shard.rows.size() != expected)
        return fail("the pass ended with " + std::to_string(shard.rows.size()) + " of " +
                    std::to_string(expected) + " batches on shard " +
                    std::to_string(shard.replica.shard()));
  }

  PlantedBug bug_;
  SimExecutor executor_;
  SimNetwork network_;
  Schedule schedule_;
  uint32_t section_ = 0;
  std::vector<uint8_t> batches_;
  uint64_t incarnation_ = 1;
  uint64_t epoch_n_ = 1;
  uint64_t manifest_epoch_n_ = 1;
  ShardRoute route_;
  std::vector<SimServer> servers_;
  std::vector<SimShard> shards_;
  std::vector<SimShard> durable_;   // newest file of each shard
  std::vector<SimShard> manifest_;  // what a restart of the whole job finds
  std::vector<SimWorker> workers_;
  std::optional<BlockQueue> queue_;
  bool finished_ = false;
  PushSimResult result_;
};

}  // namespace

const char* planted_bug_name(PlantedBug bug) {
  switch (bug) {
    case PlantedBug::kNone:
      return "none";
    case PlantedBug::kAckBeforeApply:
      return "ack before apply";
    case PlantedBug::kNoIncarnationCheck:
      return "no incarnation check";
    case PlantedBug::kNoEpochCheck:
      return "no epoch check";
    case PlantedBug::kEmptyShardsUnmarked:
      return "empty shards unmarked";
    case PlantedBug::kSnapshotApart:
      return "rows and ledger saved apart";
    case PlantedBug::kPartialAppliesAll:
      return "partial set applied whole";
    case PlantedBug::kAttemptInKey:
      return "attempt in the identity";
  }
  return "unknown";
}

PushSimResult run_push_sim(uint64_t seed, PlantedBug bug) {
  return Sim(seed, bug).run();
}

}  // namespace flux
