// Joining, reporting, ending. Leases and data are in agent_leases.cc.
#include "flux/worker/agent.h"

#include <algorithm>
#include <utility>

namespace flux {
namespace {
constexpr uint32_t kReportsOutMax = 8;
constexpr TimeNs kBackoffMax = kSecond;
constexpr TimeNs kMetricsEvery = 2 * kSecond;
constexpr size_t kMetricsBytesMax = 8U << 20;  // of a report; beyond it they are not told
}  // namespace

WorkerAgent::WorkerAgent(AgentOptions options, Executor* executor, JobPort* job, Offload* offload,
                         TrainerDriver* driver, SetUpWorker set_up)
    : options_(std::move(options)),
      executor_(executor),
      job_(job),
      offload_(offload),
      driver_(driver),
      set_up_(std::move(set_up)) {}

WorkerAgent::~WorkerAgent() = default;

void WorkerAgent::start(std::function<void(const WorkerOutcome&)> over) {
  on_over_ = std::move(over);
  heard();
  join();
  await_first_answer();
}

// Not left to the calls: one that begins shortly before the time is over would outlast it.
void WorkerAgent::await_first_answer() {
  const TimeNs left = heard_ns_ + options_.first_answer_ns - executor_->now_ns();
  if (left <= 0)
    return fail(error(Code::kUnavailable, "{} did not answer for {:.0f} s: {}",
                      options_.coordinator, static_cast<double>(options_.first_answer_ns) * 1e-9,
                      not_joined_.message()));
  executor_->post(left, guard([this] {
                    if (phase_ == Phase::kJoining) await_first_answer();
                  }));
}

void WorkerAgent::join() {
  job_->join(options_.join, guard([this](const Result<JoinReply>& reply) {
               if (phase_ != Phase::kJoining) return;
               if (reply.is_ok()) heard();
               if (reply.is_ok() && reply.value().waits.empty())
                 return set_up_trainer(reply.value());
               if (!reply.is_ok() && reply.status().code() != Code::kUnavailable)
                 return fail(reply.status());
               if (!reply.is_ok()) not_joined_ = reply.status();
               executor_->post(options_.retry_ns, guard([this] {
                                 if (phase_ == Phase::kJoining) join();
                               }));
             }));
}

// The coordinator does not know us. The trainer goes on with what it has; nothing is asked or told
// under a number that may be somebody else's now.
void WorkerAgent::rejoin() {
  if (rejoining_ || (phase_ != Phase::kTraining && phase_ != Phase::kEnding)) return;
  rejoining_ = true;
  JoinRequest request = options_.join;
  request.incarnation = joined_.incarnation;
  if (store_) request.held = store_->held();
  job_->join(std::move(request),
             guard([this](const Result<JoinReply>& reply) { rejoined(reply); }));
}

void WorkerAgent::rejoined(const Result<JoinReply>& reply) {
  rejoining_ = false;
  if (phase_ != Phase::kTraining && phase_ != Phase::kEnding) return;
  if (!reply.is_ok() && reply.status().code() != Code::kUnavailable) return fail(reply.status());
  if (reply.is_ok()) heard();
  if (!reply.is_ok() || !reply.value().waits.empty()) {
    rejoining_ = true;
    executor_->post(rejoin_backoff_ns_, guard([this] {
                      rejoining_ = false;
                      rejoin();
                    }));
    rejoin_backoff_ns_ = std::min(std::max(rejoin_backoff_ns_ * 2, options_.retry_ns), kBackoffMax);
    return;
  }
  if (reply.value().incarnation != joined_.incarnation)
    return fail(Status(Code::kStale, "the job was started anew; this worker belongs to its past"));
  rejoin_backoff_ns_ = 0;
  joined_.worker = reply.value().worker;
  joined_.report_every_ms = reply.value().report_every_ms;
  take_map(reply.value().map);
  lease_.request.worker = joined_.worker;
  if (lease_.open && phase_ == Phase::kTraining) send_lease(true);
  pump();
}

void WorkerAgent::set_up_trainer(const JoinReply& reply) {
  joined_ = reply;
  Result<WorkerSetup> setup = set_up_(reply);
  const Status status = setup.is_ok() ? build_trainer(std::move(setup).value()) : setup.status();
  phase_ = Phase::kTraining;  // a member: it has to leave from now on
  if (!status.is_ok()) return fail(status);
  trains_ = true;
  driver_->start(trainer_, [weak = std::weak_ptr<int>(alive_), executor = executor_, this] {
    executor->post(0, [weak, this] {
      if (weak.lock()) trainer_finished();
    });
  });
  tick();
  pump();
}

Status WorkerAgent::build_trainer(WorkerSetup setup) {
  constexpr uint32_t kBatchesEach = 4;  // open ahead, for each thread
  open_dataset_ = std::move(setup.open_dataset);
  cost_ = std::move(setup.cost);
  team_ = std::move(setup.team);
  setup.trainer.client.incarnation = joined_.incarnation;
  FLUX_ASSIGN_OR_RETURN(mode_, make_mode(setup.mode));
  BlockStoreOptions store;
  store.ahead = kBatchesEach * team_->members();
  store.only_when_idle = setup.deterministic || mode_->in_rounds();
  store.lr_schedule = setup.lr_schedule;
  store_ = std::make_unique<BlockStore>(store);
  trainer_ = std::make_shared<Trainer>(std::move(setup.trainer), setup.executor, team_.get(),
                                       std::move(setup.nets), joined_.map, std::move(setup.reach),
                                       route_fetcher(setup.executor), store_.get(), mode_.get());
  store_->set_wake([executor = setup.executor, weak = std::weak_ptr<Trainer>(trainer_)] {
    executor->post(0, [weak] {
      if (const auto woken = weak.lock()) woken->notify();
    });
  });
  store_->set_changed([executor = executor_, weak = std::weak_ptr<int>(alive_), this] {
    executor->post(0, [weak, this] {
      if (weak.lock()) store_changed();
    });
  });
  return Status::ok();
}

// Called on the trainer's thread; asks the coordinator here and answers there.
FetchRoute WorkerAgent::route_fetcher(Executor* trainer_executor) {
  return [weak = std::weak_ptr<int>(alive_), control = executor_, trainer_executor,
          this](const std::function<void(Result<ClusterMap>)>& done) {
    control->post(0, [weak, trainer_executor, done, this] {
      if (!weak.lock()) return;
      map_waiting_.push_back([trainer_executor, done](const Result<ClusterMap>& map) {
        trainer_executor->post(0, [done, map] { done(map); });
      });
      fetch_map();
    });
  };
}

// One question at a time, whoever asks.
void WorkerAgent::fetch_map() {
  if (fetching_map_) return;
  fetching_map_ = true;
  job_->map(guard([this](const Result<ClusterMap>& map) {
    fetching_map_ = false;
    if (map.is_ok()) {
      heard();
      take_map(map.value());
    }
    for (const auto& tell : std::exchange(map_waiting_, {})) tell(map);
  }));
}

void WorkerAgent::take_map(const ClusterMap& map) {
  if (map.version < joined_.map.version) return;
  const bool same = map.version == joined_.map.version && map.servers == joined_.map.servers &&
                    map.route.epoch == joined_.map.route.epoch;
  if (same) return;
  joined_.map = map;
  if (!trainer_) return;
  trainer_->executor()->post(0, [weak = std::weak_ptr<Trainer>(trainer_), map] {
    if (const auto here = weak.lock(); here && !here->finished()) here->set_map(map);
  });
}

void WorkerAgent::tick() {
  if (phase_ == Phase::kLeaving || phase_ == Phase::kOver) return;
  if (silent(options_.silence_ns)) give_up_on_coordinator();
  measure_rate();
  send_report();
  look_at_servers();
  repeat_lease();
  executor_->post(TimeNs{std::max(joined_.report_every_ms, 1U)} * kMillisecond,
                  guard([this] { tick(); }));
}

// What the trainer knows of servers, for the next report.
void WorkerAgent::look_at_servers() {
  if (!trainer_) return;
  trainer_->executor()->post(0, [weak = std::weak_ptr<Trainer>(trainer_)] {
    if (const auto here = weak.lock()) here->look_at_servers();
  });
}

void WorkerAgent::send_report() {
  if (reports_out_ >= kReportsOutMax || rejoining_) return;
  ++reports_out_;
  const bool tells = executor_->now_ns() - metrics_told_ns_ >= kMetricsEvery;
  if (tells) metrics_told_ns_ = executor_->now_ns();
  WorkerReport now = report(tells);
  now.ahead = blocks_ahead();
  if (trainer_) now.suspects = trainer_->reports().suspects(executor_->now_ns());
  if (now.suspects.size() > kSuspectsMax) now.suspects.resize(kSuspectsMax);
  disclaimed_ = {now.ahead.begin(), now.ahead.end()};
  const std::vector<HealthPiece> health = now.health;
  job_->report(joined_.worker, std::move(now),
               guard([this, health, worker = joined_.worker](const Result<ReportAnswer>& result) {
                 --reports_out_;
                 if (result.is_ok()) health_told_.add(health);
                 if (worker == joined_.worker) on_report(result);
               }));
}

void WorkerAgent::on_report(const Result<ReportAnswer>& result) {
  if (phase_ == Phase::kLeaving || phase_ == Phase::kOver) return;
  if (!result.is_ok()) {
    if (result.status().code() == Code::kStale) return rejoin();
    if (result.status().code() != Code::kUnavailable) fail(result.status());
    return;
  }
  heard();
  if (result.value().stop) stop("the job is stopping");
  if (result.value().map_version > joined_.map.version) fetch_map();
}

void WorkerAgent::give_up_on_coordinator() {
  if (!status_.is_ok()) return;
  fail(error(Code::kUnavailable, "{} did not answer for {:.0f} s; is it running?",
             options_.coordinator, static_cast<double>(options_.silence_ns) * 1e-9));
}

void WorkerAgent::fail(Status status) {
  if (phase_ == Phase::kLeaving || phase_ == Phase::kOver) return;
  if (status_.is_ok()) status_ = std::move(status);
  if (phase_ == Phase::kJoining) return over();
  const bool first = phase_ != Phase::kEnding;
  phase_ = Phase::kEnding;
  if (store_) store_->stop();
  // kStale: taken for dead. Others may train our blocks already; nothing of ours is wanted.
  // sync: steps that this worker was a member of are not poured before it has left.
  if (status_.code() == Code::kStale || (mode_ && mode_->in_rounds())) return abort_trainer();
  if (!trains_) return leave();
  if (first) executor_->post(options_.drain_ns, guard([this] { abort_trainer(); }));
}

void WorkerAgent::abort_trainer() {
  if (phase_ == Phase::kLeaving || phase_ == Phase::kOver) return;
  if (!trains_) return leave();
  trainer_->executor()->post(0, [weak = std::weak_ptr<Trainer>(trainer_)] {
    const auto here = weak.lock();
    if (!here) return;
    here->abort(Status::ok());
    here->notify();
  });
}

void WorkerAgent::stop(const std::string& why) {
  if (phase_ == Phase::kOver || phase_ == Phase::kLeaving) return;
  if (phase_ == Phase::kEnding) return;
  end(why);
  if (phase_ == Phase::kJoining) return over();
  // A member of a round ends it: others wait for its steps. Elsewhere what is not begun is dropped.
  if (mode_->in_rounds())
    store_->end();
  else
    store_->stop();
  executor_->post(options_.drain_ns, guard([this] { abort_trainer(); }));
}

void WorkerAgent::end(const std::string& reason) {
  if (reason_.empty()) reason_ = reason;
  if (phase_ == Phase::kTraining) phase_ = Phase::kEnding;
}

void WorkerAgent::trainer_finished() {
  trains_ = false;
  const Status failure = store_->failure();
  if (!failure.is_ok()) fail(failure);
  leave();
}

void WorkerAgent::leave() {
  if (phase_ == Phase::kLeaving || phase_ == Phase::kOver) return;
  phase_ = Phase::kLeaving;
  heard();  // a last try, whatever was before
  say_goodbye(options_.retry_ns);
}

void WorkerAgent::say_goodbye(TimeNs backoff) {
  LeaseRequest last;
  last.worker = joined_.worker;
  FinishedBatches told;
  if (store_) told = store_->take_finished();
  if (lease_.open) {
    FinishedBatches{lease_.request.applied, lease_.request.evaluated, lease_.request.refused}
        .add_to(&last);
    lease_.extra.add_to(&last);
  }
  told.add_to(&last);
  job_->leave(
      last, report(true), status_, guard([this, told, backoff](const Status& status) {
        if (phase_ == Phase::kOver) return;
        const TimeNs patience = status_.is_ok() ? options_.silence_ns : options_.silence_ns / 4;
        if (status.code() == Code::kUnavailable && executor_->now_ns() - heard_ns_ < patience) {
          if (store_) store_->put_back(told);
          executor_->post(
              backoff, guard([this, backoff] { say_goodbye(std::min(backoff * 2, kBackoffMax)); }));
          return;
        }
        if (!status.is_ok() && status_.is_ok() && status.code() != Code::kStale)
          status_ = status.with_context("leaving the job");
        over();
      }));
}

void WorkerAgent::over() {
  phase_ = Phase::kOver;
  WorkerOutcome outcome;
  outcome.status = status_;
  outcome.reason = reason_;
  outcome.report = report(true);
  if (on_over_) std::exchange(on_over_, nullptr)(outcome);
}

Progress WorkerAgent::progress() const {
  return trainer_ ? trainer_->progress() : Progress();
}

WorkerReport WorkerAgent::report(bool with_metrics) const {
  WorkerReport out;
  const Progress sum = progress();
  out.examples = sum.examples;
  out.batches = sum.batches;
  out.loss_sum = sum.loss_sum;
  out.phases = sum.phases;
  out.health = sum.health;
  health_told_.leave_new(&out.health);
  for (uint32_t p = 0; p < out.phases.size() && options_.report_auc; ++p)
    out.phases[p].auc = sum.metrics.auc(p);
  if (sum.last_phase < out.phases.size()) out.train_auc = out.phases[sum.last_phase].auc;
  if (with_metrics && options_.report_auc) out.metrics = sum.metrics.encode();
  if (out.metrics.size() > kMetricsBytesMax) out.metrics.clear();
  out.duplicates = sum.duplicates;
  out.push_times = sum.push_times;
  out.push_ages = sum.push_ages;
  out.stage_ns.assign(sum.stage_ns.begin(), sum.stage_ns.end());
  out.resends = sum.resends;
  if (trainer_) out.waits = trainer_->reports().text(executor_->now_ns());
  if (cost_) {
    const WorkerCost cost = cost_();
    out.bytes_sent = cost.bytes_sent;
    out.bytes_received = cost.bytes_received;
    out.cpu_s = cost.cpu_s;
    out.rss_bytes = cost.rss_bytes;
  }
  return out;
}

}  // namespace flux
