// Requests held back and answered, acknowledgements, sections, sync rounds.
#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

#include "flux/cluster/lease_share.h"
#include "flux/coordinator/job_state.h"
#include "flux/coordinator/lease_order.h"

namespace flux {
namespace {

std::vector<uint8_t> batches_of(const Geometry& geometry) {
  std::vector<uint8_t> batches;
  for (uint32_t b = 0; b < geometry.blocks.size(); ++b)
    batches.push_back(static_cast<uint8_t>(geometry.batches_in(b)));
  return batches;
}

}  // namespace

void JobMaster::State::lease(const LeaseRequest& request, LeaseDone done) {
  const auto at = workers_.find(request.worker);
  if (at == workers_.end())
    return done(error(Code::kStale, "worker {} is not a member of job {} any more", request.worker,
                      plan_.name));
  if (request.lane != 0) return done(invalid("request {} of a worker with one", request.lane));
  workers_members_.renew(request.worker, now());
  at->second.asked = now();
  Slot& slot = at->second.slots[request.lane];
  if (request.seq < slot.seq) {  // a copy that was under way for long
    acknowledge(request.applied, request.evaluated);
    take_refused(request.refused);
    return done(LeaseAnswer{});
  }
  if (request.seq == slot.seq && slot.answered) {
    const LeaseAnswer same = slot.answer;
    acknowledge(request.applied, request.evaluated);
    take_refused(request.refused);
    return done(same);
  }
  if (!slot.answered)
    std::exchange(slot.done, nullptr)(error(Code::kUnavailable, "asked again meanwhile"));
  const bool fresh = request.seq != slot.seq;
  slot.seq = request.seq;
  slot.answered = false;
  slot.done = std::move(done);
  if (fresh) slot.since = now();
  take_refused(request.refused);
  acknowledge(request.applied, request.evaluated);  // may end the section, and so this worker
  const auto here = workers_.find(request.worker);
  if (here == workers_.end() || here->second.slots[request.lane].answered) return;
  const auto early = pending_rounds_.find({request.worker, request.lane});
  if (early != pending_rounds_.end())
    return answer(&here->second.slots[request.lane], pending_rounds_.extract(early).mapped());
  if (fresh && rounds_) rounds_->wait(request.worker, request.lane);
  pump();
}

void JobMaster::State::answer(Slot* slot, LeaseAnswer answer) {
  slot->answered = true;
  slot->answer = answer;
  std::exchange(slot->done, nullptr)(std::move(answer));
}

void JobMaster::State::answer_all(const LeaseAnswer& what) {
  std::vector<LeaseDone> waiting;  // a callback may come back to us
  for (auto& [id, worker] : workers_)
    for (auto& [lane, slot] : worker.slots) {
      if (slot.answered) continue;
      slot.answered = true;
      slot.answer = what;
      waiting.push_back(std::exchange(slot.done, nullptr));
    }
  for (const LeaseDone& done : waiting) done(what);
}

void JobMaster::State::pump() {
  if (!early_.empty()) answer_early();
  if (stopping_ || ended()) {
    LeaseAnswer over;
    over.kind = LeaseAnswer::Kind::kEnd;
    over.reason = !failure_.is_ok() ? failure_.message() : stop_reason_;
    return answer_all(over);
  }
  if (sync() && phase_ == Phase::kTraining) pump_sync();
  std::vector<std::tuple<TimeNs, WorkerId, uint32_t>> waiting;
  for (const auto& [id, worker] : workers_)
    for (const auto& [lane, slot] : worker.slots)
      if (!slot.answered) waiting.emplace_back(slot.since, id, lane);
  std::sort(waiting.begin(), waiting.end());
  for (const auto& [since, id, lane] : waiting) {
    const auto worker = workers_.find(id);
    if (worker == workers_.end()) continue;
    Slot& slot = worker->second.slots[lane];
    if (slot.answered || answer_one(id, &slot)) continue;
    if (now() - since < options_.lease_hold_ns) continue;
    LeaseAnswer wait;
    wait.reason = wait_reason();
    answer(&slot, wait);
  }
}

bool JobMaster::State::takes_over() const {
  return now() < takeover_until_ && !workers_expected_.empty();
}

// After a take-over, those who hold blocks come first.
bool JobMaster::State::leases_wait() const {
  return hold_ || verifying_ || takes_over();
}

// Whether this worker may hold one more of what is left.
bool JobMaster::State::has_share(WorkerId id, const BlockQueue& queue) const {
  LeaseShare share;
  share.todo = queue.todo();
  share.threads_all = 0;
  for (const auto& [other, worker] : workers_)
    share.threads_all += std::max(1U, worker.info.threads);
  share.threads = workers_.at(id).info.threads;
  share.held_blocks = queue.held_by(id);
  share.held_batches = queue.batches_held_by(id);
  return share.may_lease();
}

// A worker without work may have what another got stuck with.
bool JobMaster::State::lease_or_lend(WorkerId id, BlockQueue* queue, BlockLease* out) const {
  if (!has_share(id, *queue)) return false;
  if (queue->lease(id, now(), out)) return true;
  return queue->held_by(id) == 0 && queue->lend(id, now(), out);
}

// Of the passes, epochs and blocks before this one; the same after any crash.
uint64_t JobMaster::State::examples_before(const BlockId& id) const {
  uint64_t examples = 0;
  for (size_t pass = 0; pass < closed_.size() && pass < id.pass; ++pass)
    examples += closed_[pass].records * closed_[pass].repeats;
  examples += geometry_->records() * plan_.schedule.index(id).value_or(0);
  return examples + geometry_->blocks[id.block].first_record;
}

bool JobMaster::State::answer_one(WorkerId id, Slot* slot) {
  LeaseAnswer given;
  if (phase_ == Phase::kTraining && !sync() && !leases_wait() && queue_ &&
      lease_or_lend(id, &*queue_, &given.lease)) {
    given.kind = LeaseAnswer::Kind::kBlock;
    given.geometry = geometry_->hash();
    given.lr_scale = lr_->factor();
    given.examples_before = examples_before(given.lease.id);
    lr_->leased(given.lease.batches);
  } else if (phase_ == Phase::kEvaluating && test_queue_ &&
             lease_or_lend(id, &*test_queue_, &given.lease)) {
    given.kind = LeaseAnswer::Kind::kEvaluate;
    given.geometry = test_->hash();
  } else {
    return false;
  }
  answer(slot, given);
  return true;
}

void JobMaster::State::pump_sync() {
  if (!rounds_ || !queue_ || leases_wait() || !rounds_->ready()) return;
  SyncRound round;
  const float lr_scale = lr_->factor();  // one for all members
  for (const SyncRounds::Given& given : rounds_->form(&*queue_, now(), &round)) {
    LeaseAnswer block;
    block.kind = LeaseAnswer::Kind::kBlock;
    block.lease = given.lease;
    block.geometry = geometry_->hash();
    block.round = round;
    block.lr_scale = lr_scale;
    block.examples_before = examples_before(given.lease.id);
    lr_->leased(given.lease.batches);
    Slot& slot = workers_[given.worker].slots[given.lane];
    // A lane that was told to wait asks again with a new number; it finds this answer then.
    if (slot.answered) {
      pending_rounds_[{given.worker, given.lane}] = block;
    } else {
      answer(&slot, block);
    }
  }
}

void JobMaster::State::acknowledge(const std::vector<BatchId>& applied,
                                   const std::vector<EvalReport>& evaluated) {
  if (queue_)
    for (const BatchId& id : applied) queue_->batch_applied(id, now());
  for (const EvalReport& report : evaluated) take_evaluation(report);
  if (phase_ == Phase::kTraining && !applied.empty() && stop_if_due()) return;
  if (phase_ == Phase::kTraining && queue_ && queue_->all_applied()) verify_section();
  if (phase_ == Phase::kEvaluating && test_queue_ && test_queue_->all_applied()) evaluated_all();
}

void JobMaster::State::begin_section(uint32_t section, const std::vector<uint32_t>& marked) {
  const BlockId id = plan_.schedule.section(pass_, section);
  section_ = section;
  verifying_ = false;
  if (queue_ && queue_->section() == id) {  // after a loss: leases stay
    queue_->recompute(marked, true);
    skip_poisoned();
    return pump();
  }
  BlockQueueOptions options;
  options.timeout_floor_ns = options_.block_timeout_floor_ns;
  queue_.emplace(id, batches_of(*geometry_), lease_order(*geometry_, id), options);
  queue_->recompute(marked, true);
  if (sync() && !rounds_) {
    rounds_.emplace(term_ << 32);
    for (const auto& [worker, w] : workers_) {
      rounds_->add_worker(worker, 1);
      for (const auto& [lane, slot] : w.slots)
        if (!slot.answered) rounds_->wait(worker, lane);
    }
  }
  if (!stop_if_due()) pump();
}

// The hints say that every block is applied; the shards have the last word.
void JobMaster::State::verify_section() {
  if (verifying_ || stopping_) return;
  verifying_ = true;
  ask_marked(
      plan_.schedule.section(pass_, section_), false,
      [this, look = ++looks_, losses = losses_](const Result<std::vector<uint32_t>>& marked) {
        if (phase_ != Phase::kTraining || look != looks_) return;
        if (!marked.is_ok()) return fail(marked.status());
        if (losses != losses_) return find_section(0);
        queue_->recompute(marked.value(), true);
        skip_poisoned();
        if (queue_->all_applied()) {
          reissued_ += queue_->reissued();
          look_at_training(section_);
          return find_section(section_ + 1);
        }
        verifying_ = false;
        pump();
      });
}

void JobMaster::State::expire_blocks() {
  bool late = false;
  for (auto* queue : {&queue_, &test_queue_}) {
    if (!*queue) continue;
    for (const BlockLease& lease : (*queue)->expire(now())) {
      say(fmt::format("block {} was not finished in time (attempt {}); it goes to another worker",
                      lease.id.block, lease.attempt));
      late = true;
      // A round cannot go on without its member: the worker is out.
      if (!rounds_ || queue != &queue_) continue;
      workers_members_.leave(lease.worker);
      lose_worker(lease.worker, true, "it did not finish its part of a round");
    }
  }
  // Does every shard serve? One that refuses gets a new epoch (ask_answered()).
  if (late && places_->unserved() == 0 && phase_ == Phase::kTraining)
    ask_marked(plan_.schedule.section(pass_, section_), true,
               [](const Result<std::vector<uint32_t>>&) {});
  if (!rounds_ || phase_ != Phase::kTraining) return;
  if (takeover_until_ != 0 && now() >= takeover_until_) {
    takeover_until_ = 0;
    void_members(rounds_->take_unclaimed());
  }
  lose_idle_members();
}

// A lane that neither holds a block nor asks for one would hold up every round.
void JobMaster::State::lose_idle_members() {
  std::vector<WorkerId> idle;
  for (const auto& [worker, lane] : rounds_->missing()) {
    const auto at = workers_.find(worker);
    if (at == workers_.end() || queue_->held_by(worker) > 0) continue;
    if (now() - at->second.asked > options_.member_lease_ns) idle.push_back(worker);
  }
  for (const WorkerId worker : idle) {
    workers_members_.leave(worker);
    lose_worker(worker, true, "it takes no part in the rounds");
  }
}

std::string JobMaster::State::wait_reason() const {
  switch (phase_) {
    case Phase::kJoining:
      if (folder_open_ && waits_for_servers()) return "for servers that may hold the job already";
      return !folder_open_ ? "for the output folder to be read"
                           : fmt::format("for {} more server(s) to join",
                                         options_.servers -
                                             std::min<size_t>(options_.servers, servers_here()));
    case Phase::kLoading:
      return fmt::format("for {} shard(s) to be loaded", places_ ? places_->unserved() : 0);
    case Phase::kReading:
      return "for the data of the next pass to be read";
    case Phase::kTraining:
      if (places_->unserved() > 0)
        return fmt::format("for {} shard(s) that nobody serves", places_->unserved());
      if (hold_) return "for a checkpoint between blocks";
      if (!verifying_ && leases_wait()) return "for workers that hold blocks to come back";
      if (verifying_) return "for the servers to confirm the end of a section";
      if (queue_ && queue_->todo() > 0)
        return sync() ? "for the other workers of its round"
                      : "to finish more of the blocks it has";
      return "for blocks that other workers hold";
    case Phase::kClosing:
      return "for the checkpoint that closes the pass";
    case Phase::kEvaluating:
      return "for test blocks that other workers hold";
    case Phase::kDraining:
    case Phase::kEnding:
    case Phase::kEnded:
      break;
  }
  return "for the end of the job";
}

void JobMaster::State::take_evaluation(const EvalReport& report) {
  if (!test_queue_ || phase_ != Phase::kEvaluating || report.id.block.phase != kTestPhase ||
      report.id.block.epoch != test_phase_ || report.id.block.pass != pass_ ||
      report.id.block.block >= test_reported_.size())
    return;
  const uint32_t block = report.id.block.block;
  if (report.id.batch >= test_->batches_in(block)) return;
  uint32_t& reported = test_reported_[block];
  if ((reported >> report.id.batch) & 1) return;  // by two workers, or twice by one
  if (const Status added = metrics_->add_encoded(report.scored); !added.is_ok())
    return test_failed(added);  // whoever evaluates it would say the same
  reported |= 1U << report.id.batch;
  test_queue_->batch_applied(report.id, now());
}

// Once for each phase: its network predicts all test data.
void JobMaster::State::begin_test(uint16_t phase) {
  test_phase_ = phase;
  std::vector<uint32_t> order(test_->blocks.size());
  std::iota(order.begin(), order.end(), 0U);
  BlockQueueOptions options;
  options.timeout_floor_ns = options_.block_timeout_floor_ns;
  test_queue_.emplace(BlockId{pass_, kTestPhase, phase, 0}, batches_of(*test_), order, options);
  test_reported_.assign(test_->blocks.size(), 0);
  MetricOptions metrics;
  metrics.slice_values = plan_.slice_values;
  metrics_.emplace(metrics);
  set_phase(Phase::kEvaluating);
  if (test_queue_->all_applied()) return evaluated_all();  // no examples
  pump();
}

}  // namespace flux
