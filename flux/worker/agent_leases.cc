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
  if (store_->begin_lease()) send_lease(false);
}

void WorkerAgent::store_changed() {
  const Status failure = store_->failure();
  if (!failure.is_ok()) return fail(failure);
  pump();
  // The coordinator may hold our request until it knows what we have just finished; a refused
  // batch may hold up other workers until its verdict.
  const bool refused = store_->refused_to_tell();
  if (rejoining_ || phase_ != Phase::kTraining || (!refused && !store_->waits_to_tell())) return;
  if (lease_.open) return send_lease(true);
  if (refused && store_->begin_telling()) send_lease(false);
}

// How much is leased ahead follows how fast the trainer is.
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

void WorkerAgent::repeat_lease() {
  if (phase_ != Phase::kTraining || rejoining_ || !lease_.open) return;
  const bool late = executor_->now_ns() - lease_.sent_ns >= options_.repeat_ns;
  if (late || store_->anything_to_tell()) send_lease(true);
}

void WorkerAgent::send_lease(bool repeat) {
  FinishedBatches told = store_->take_finished();
  if (!repeat) {
    ++lease_.seq;
    lease_.open = true;
    lease_.backoff_ns = options_.retry_ns;
    lease_.request = {};
    lease_.request.worker = joined_.worker;
    lease_.request.seq = lease_.seq;
    told.add_to(&lease_.request);
  }
  LeaseRequest request = lease_.request;
  if (repeat) {
    lease_.extra.add(std::move(told));
    lease_.extra.add_to(&request);
  }
  lease_.sent_ns = executor_->now_ns();
  const uint64_t call = ++lease_.call;
  job_->lease(std::move(request),
              guard([this, seq = lease_.seq, call](const Result<LeaseAnswer>& result) {
                on_lease(seq, call, result);
              }));
}

void WorkerAgent::on_lease(uint64_t seq, uint64_t call, const Result<LeaseAnswer>& result) {
  if (phase_ == Phase::kLeaving || phase_ == Phase::kOver) return;
  if (!lease_.open || seq != lease_.seq) return;  // of a request that is answered
  if (!result.is_ok()) {
    if (call != lease_.call) return;  // a later copy is under way
    if (result.status().code() == Code::kStale) return rejoin();
    if (result.status().code() != Code::kUnavailable) return fail(result.status());
    executor_->post(lease_.backoff_ns, guard([this, seq, call] {
                      if (phase_ == Phase::kTraining && !rejoining_ && lease_.open &&
                          lease_.seq == seq && lease_.call == call)
                        send_lease(true);
                    }));
    lease_.backoff_ns = std::min(lease_.backoff_ns * 2, kBackoffMax);
    return;
  }
  heard();
  lease_.open = false;
  // What only repeats told may have met an answer that was made before: it is told again.
  store_->put_back(std::exchange(lease_.extra, {}));
  take_answer(result.value());
}

void WorkerAgent::take_answer(const LeaseAnswer& answer) {
  switch (answer.kind) {
    case LeaseAnswer::Kind::kBlock:
    case LeaseAnswer::Kind::kEvaluate:
      if (phase_ != Phase::kTraining) return;
      store_->leased(
          {answer.lease.id, 0, 0, answer.kind == LeaseAnswer::Kind::kEvaluate, answer.round},
          answer.lease);
      lease_.unopened.push_back(answer);
      store_->lease_over();
      return pump();
    case LeaseAnswer::Kind::kWait: {
      const TimeNs wait = std::max(TimeNs{answer.wait_ms} * kMillisecond, 20 * kMillisecond);
      executor_->post(wait, guard([this] {
                        store_->lease_over();
                        pump();
                      }));
      return;
    }
    case LeaseAnswer::Kind::kEnd:
      store_->lease_over();
      store_->end();
      if (reason_.empty()) reason_ = answer.reason;
      return;
  }
}

// What is surely not begun before the next report: all but the next blocks.
std::vector<BlockId> WorkerAgent::blocks_ahead() const {
  const double soon = batches_per_s_ * kReportsAhead * joined_.report_every_ms * 1e-3;
  std::vector<BlockId> ahead;
  double batches = 0;
  for (const LeaseAnswer& answer : lease_.unopened) {
    const bool trains = answer.kind == LeaseAnswer::Kind::kBlock;
    if (trains && batches > soon) ahead.push_back(answer.lease.id);
    batches += answer.lease.batches;
  }
  return ahead;
}

void WorkerAgent::open_more() {
  std::deque<LeaseAnswer>& unopened = lease_.unopened;
  while (!unopened.empty() && store_->wants_open()) {
    const LeaseAnswer answer = std::move(unopened.front());
    unopened.pop_front();
    if (disclaimed_.contains(answer.lease.id)) send_report();  // it is begun after all
    store_->opening(answer.lease);
    open_block(answer);
  }
}

void WorkerAgent::open_block(const LeaseAnswer& answer) {
  Cut& cut = cuts_[answer.geometry];
  cut.used = ++uses_;
  if (cut.data) return open_in_cut(answer, cut.data);
  cut.waiting.push_back(answer);
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
                  for (const LeaseAnswer& answer : std::exchange(cut.waiting, {}))
                    open_in_cut(answer, opened->data);
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

void WorkerAgent::open_in_cut(const LeaseAnswer& answer,
                              const std::shared_ptr<const Dataset>& data) {
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
  offload_->run(work, guard([this, opened] {
                  if (!opened->status.is_ok()) return fail(opened->status);
                  store_->add(std::move(opened->block));
                  pump();
                }));
}

}  // namespace flux
