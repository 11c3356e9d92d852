// Leases asked for and asked again, data opened, acknowledgements told.
#include <algorithm>
#include <utility>

#include "flux/worker/agent.h"

namespace flux {
namespace {

constexpr TimeNs kBackoffMax = kSecond;
constexpr size_t kCutsKept = 4;
constexpr double kRateShare = 0.3;   // of the newest measurement
constexpr double kReportsAhead = 2;  // blocks that may be begun until so many reports later

// What the lease says against what the geometry says.
Status check_lease(const LeaseAnswer& answer, const Geometry& geometry) {
  const auto fits = [&](const BlockId& id, uint32_t batches) {
    return id.block < geometry.blocks.size() && geometry.batches_in(id.block) == batches;
  };
  if (!fits(answer.lease.id, answer.lease.batches))
    return error(Code::kCorrupt,
                 "the coordinator leases {} of {} batches, which its geometry lacks",
                 to_string(answer.lease.id), answer.lease.batches);
  for (const RoundMember& member : answer.round.members)
    if (!fits(member.block, member.batches))
      return error(Code::kCorrupt, "round {} names {} of {} batches, which its geometry lacks",
                   answer.round.id, to_string(member.block), member.batches);
  return Status::ok();
}

std::vector<std::shared_ptr<const SyncStep>> steps_of(const LeaseAnswer& answer,
                                                      const Geometry& geometry) {
  std::vector<std::shared_ptr<const SyncStep>> steps;
  if (answer.round.id == 0) return steps;
  for (uint32_t batch = 0; batch < answer.lease.batches; ++batch) {
    auto step = std::make_shared<SyncStep>(sync_step(answer.round, batch));
    step->examples = 0;
    for (const BatchId& id : step->ids)
      step->examples += geometry.batch_records(id.block.block, id.batch);
    if (step->ids.size() < answer.round.lanes)
      step->examples += (answer.round.lanes - step->ids.size()) * uint64_t{geometry.batch_size};
    steps.push_back(std::move(step));
  }
  return steps;
}

}  // namespace

void WorkerAgent::pump() {
  if (phase_ != Phase::kTraining) return;
  open_more();
  if (rejoining_) return;
  for (uint32_t q = 0; q < store_->queues(); ++q)
    if (store_->begin_lease(q)) send_lease(q, false);
}

void WorkerAgent::store_changed() {
  const Status failure = store_->failure();
  if (!failure.is_ok()) return fail(failure);
  pump();
  // The coordinator may hold our request until it knows what we have just finished; a refused
  // batch may hold up other workers until its verdict.
  const bool refused = store_->refused_to_tell();
  if (rejoining_ || phase_ != Phase::kTraining || (!refused && !store_->waits_to_tell())) return;
  for (uint32_t q = 0; q < slots_.size(); ++q)
    if (slots_[q].open) return send_lease(q, true);
  if (refused && store_->begin_telling(0)) send_lease(0, false);
}

// How much is leased ahead follows how fast the lanes are.
void WorkerAgent::measure_rate() {
  const TimeNs now = executor_->now_ns();
  const uint64_t handed_out = store_->handed_out();
  if (measured_ns_ > 0 && now > measured_ns_) {
    const double rate = static_cast<double>(handed_out - handed_out_) /
                        (static_cast<double>(now - measured_ns_) * 1e-9);
    batches_per_s_ += (rate - batches_per_s_) * kRateShare;
    store_->set_target(
        static_cast<uint32_t>(batches_per_s_ * static_cast<double>(options_.ahead_ns) * 1e-9));
    pump();
  }
  measured_ns_ = now;
  handed_out_ = handed_out;
}

void WorkerAgent::repeat_leases() {
  if (phase_ != Phase::kTraining || rejoining_) return;
  for (uint32_t q = 0; q < slots_.size(); ++q) {
    if (!slots_[q].open) continue;
    const bool late = executor_->now_ns() - slots_[q].sent_ns >= options_.repeat_ns;
    if (late || store_->anything_to_tell()) send_lease(q, true);
  }
}

void WorkerAgent::send_lease(uint32_t queue, bool repeat) {
  Slot& slot = slots_[queue];
  FinishedBatches told = store_->take_finished();
  if (!repeat) {
    ++slot.seq;
    slot.open = true;
    slot.backoff_ns = options_.retry_ns;
    slot.request = {};
    slot.request.worker = joined_.worker;
    slot.request.lane = queue;
    slot.request.seq = slot.seq;
    told.add_to(&slot.request);
  }
  LeaseRequest request = slot.request;
  if (repeat) {
    slot.extra.add(std::move(told));
    slot.extra.add_to(&request);
  }
  slot.sent_ns = executor_->now_ns();
  const uint64_t call = ++slot.call;
  job_->lease(std::move(request),
              guard([this, queue, seq = slot.seq, call](const Result<LeaseAnswer>& result) {
                on_lease(queue, seq, call, result);
              }));
}

void WorkerAgent::on_lease(uint32_t queue, uint64_t seq, uint64_t call,
                           const Result<LeaseAnswer>& result) {
  Slot& slot = slots_[queue];
  if (phase_ == Phase::kLeaving || phase_ == Phase::kOver) return;
  if (!slot.open || seq != slot.seq) return;  // of a request that is answered
  if (!result.is_ok()) {
    if (call != slot.call) return;  // a later copy is under way
    if (result.status().code() == Code::kStale) return rejoin();
    if (result.status().code() != Code::kUnavailable) return fail(result.status());
    executor_->post(slot.backoff_ns, guard([this, queue, seq, call] {
                      const Slot& again = slots_[queue];
                      if (phase_ == Phase::kTraining && !rejoining_ && again.open &&
                          again.seq == seq && again.call == call)
                        send_lease(queue, true);
                    }));
    slot.backoff_ns = std::min(slot.backoff_ns * 2, kBackoffMax);
    return;
  }
  heard();
  slot.open = false;
  // What only repeats told may have met an answer that was made before: it is told again.
  store_->put_back(std::exchange(slot.extra, {}));
  take_answer(queue, result.value());
}

void WorkerAgent::take_answer(uint32_t queue, const LeaseAnswer& answer) {
  switch (answer.kind) {
    case LeaseAnswer::Kind::kBlock:
    case LeaseAnswer::Kind::kEvaluate:
      if (phase_ != Phase::kTraining) return;
      store_->leased(
          queue,
          {answer.lease.id, queue, 0, answer.kind == LeaseAnswer::Kind::kEvaluate, answer.round},
          answer.lease);
      slots_[queue].unopened.push_back(answer);
      store_->lease_over(queue);
      return pump();
    case LeaseAnswer::Kind::kWait: {
      const TimeNs wait = std::max(TimeNs{answer.wait_ms} * kMillisecond, 20 * kMillisecond);
      executor_->post(wait, guard([this, queue] {
                        store_->lease_over(queue);
                        pump();
                      }));
      return;
    }
    case LeaseAnswer::Kind::kEnd:
      store_->lease_over(queue);
      // For every lane: the answers of the others may be lost with the coordinator that gave them,
      // and the rounds of the next one would wait for a lane that has ended.
      for (uint32_t q = 0; q < store_->queues(); ++q) store_->end(q);
      if (reason_.empty()) reason_ = answer.reason;
      return;
  }
}

// What is surely not begun before the next report: all but the next blocks.
std::vector<BlockId> WorkerAgent::blocks_ahead() const {
  const double soon = batches_per_s_ * kReportsAhead * joined_.report_every_ms * 1e-3;
  std::vector<BlockId> ahead;
  for (const Slot& slot : slots_) {
    double batches = 0;
    for (const LeaseAnswer& answer : slot.unopened) {
      const bool trains = answer.kind == LeaseAnswer::Kind::kBlock;
      if (trains && batches > soon) ahead.push_back(answer.lease.id);
      batches += answer.lease.batches;
    }
  }
  return ahead;
}

void WorkerAgent::open_more() {
  for (uint32_t q = 0; q < slots_.size(); ++q) {
    std::deque<LeaseAnswer>& unopened = slots_[q].unopened;
    while (!unopened.empty() && store_->wants_open(q)) {
      const LeaseAnswer answer = std::move(unopened.front());
      unopened.pop_front();
      if (disclaimed_.contains(answer.lease.id)) send_report();  // it is begun after all
      store_->opening(q, answer.lease);
      open_block(q, answer);
    }
  }
}

void WorkerAgent::open_block(uint32_t queue, const LeaseAnswer& answer) {
  Cut& cut = cuts_[answer.geometry];
  cut.used = ++uses_;
  if (cut.data) return open_in_cut({queue, answer}, cut.data);
  cut.waiting.push_back({queue, answer});
  if (cut.asked) return;
  cut.asked = true;
  fetch_cut(answer.geometry, options_.retry_ns);
}

void WorkerAgent::fetch_cut(uint64_t hash, TimeNs backoff) {
  job_->geometry(hash, guard([this, hash, backoff](const Result<std::string>& json) {
                   if (phase_ != Phase::kTraining && phase_ != Phase::kEnding) return;
                   if (json.is_ok()) {
                     heard();
                     return open_cut(hash, json.value());
                   }
                   if (json.status().code() != Code::kUnavailable) return fail(json.status());
                   executor_->post(backoff, guard([this, hash, backoff] {
                                     if (phase_ == Phase::kTraining)
                                       fetch_cut(hash, std::min(backoff * 2, kBackoffMax));
                                   }));
                 }));
}

void WorkerAgent::open_cut(uint64_t hash, const std::string& json) {
  struct Opened {
    Status status;
    std::shared_ptr<const Dataset> data;
  };
  auto opened = std::make_shared<Opened>();
  const auto work = [opened, hash, json, open = open_dataset_] {
    auto geometry = Geometry::from_json(json);
    if (geometry.is_ok() && geometry.value().hash() != hash)
      geometry = error(Code::kCorrupt, "the coordinator sent another geometry than {:016x}", hash);
    if (!geometry.is_ok()) {
      opened->status = geometry.status();
      return;
    }
    auto data = open(geometry.value());
    if (data.is_ok())
      opened->data = std::move(data).value();
    else
      opened->status = data.status();
  };
  offload_->run(work, guard([this, opened, hash] {
                  if (!opened->status.is_ok()) return fail(opened->status);
                  Cut& cut = cuts_[hash];
                  cut.data = opened->data;
                  cut.used = ++uses_;
                  const std::vector<Waiting> waiting = std::exchange(cut.waiting, {});
                  for (const Waiting& one : waiting) open_in_cut(one, opened->data);
                  drop_old_cuts();
                }));
}

void WorkerAgent::drop_old_cuts() {
  while (cuts_.size() > kCutsKept) {
    const auto oldest = std::min_element(
        cuts_.begin(), cuts_.end(), [](auto& a, auto& b) { return a.second.used < b.second.used; });
    if (!oldest->second.data) return;  // still being fetched
    cuts_.erase(oldest);
  }
}

void WorkerAgent::open_in_cut(const Waiting& waiting, const std::shared_ptr<const Dataset>& data) {
  const LeaseAnswer& answer = waiting.answer;
  const Status good = check_lease(answer, data->geometry());
  if (!good.is_ok()) return fail(good);
  struct Opened {
    Status status;
    OpenBlock block;
  };
  auto opened = std::make_shared<Opened>();
  opened->block.lease = answer.lease;
  opened->block.evaluate = answer.kind == LeaseAnswer::Kind::kEvaluate;
  opened->block.geometry = answer.geometry;
  opened->block.lr_scale = answer.lr_scale;
  opened->block.first_batch = answer.examples_before / data->geometry().batch_size;
  const auto work = [opened, data, round = answer] {
    const BlockId& id = opened->block.lease.id;
    // Test data has no epochs: its order is that of the records.
    auto reader = data->open_block(id.block, opened->block.evaluate ? 0 : id.epoch);
    if (!reader.is_ok()) {
      opened->status = reader.status();
      return;
    }
    opened->block.reader = std::move(reader).value();
    opened->block.steps = steps_of(round, data->geometry());
  };
  offload_->run(work, guard([this, opened, queue = waiting.queue] {
                  if (!opened->status.is_ok()) return fail(opened->status);
                  store_->add(queue, std::move(opened->block));
                  pump();
                }));
}

}  // namespace flux
