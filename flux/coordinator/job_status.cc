// The snapshot for people.
#include <algorithm>

#include "flux/coordinator/job_state.h"

namespace flux {
namespace {
double seconds(TimeNs ns) {
  return static_cast<double>(ns) * 1e-9;
}

// AUC by the number of examples: each worker tells its own.
void add_phase(PhaseReport* sum, const PhaseReport& r) {
  const auto before = static_cast<double>(sum->examples), more = static_cast<double>(r.examples);
  if (r.auc && r.examples > 0)
    sum->auc = sum->auc ? (*sum->auc * before + *r.auc * more) / (before + more) : *r.auc;
  sum->examples += r.examples;
  sum->loss_sum += r.loss_sum;
}

PushAgeStatus push_age_of(const AgeHistogram& ages) {
  return {ages.count(), static_cast<uint64_t>(ages.quantile(0.5)),
          static_cast<uint64_t>(ages.quantile(0.99)), ages.max()};
}
}  // namespace

void JobMaster::State::add_report(WorkerReport* sum, const WorkerReport& r) {
  sum->phases.resize(std::max(sum->phases.size(), r.phases.size()));
  for (size_t p = 0; p < r.phases.size(); ++p) add_phase(&sum->phases[p], r.phases[p]);
  sum->examples += r.examples;
  sum->batches += r.batches;
  sum->loss_sum += r.loss_sum;
  sum->duplicates += r.duplicates;
  sum->push_times.merge(r.push_times);
  sum->push_ages.merge(r.push_ages);
  sum->resends += r.resends;
  sum->bytes_sent += r.bytes_sent;
  sum->bytes_received += r.bytes_received;
  sum->cpu_s += r.cpu_s;
  sum->rss_bytes += r.rss_bytes;
  sum->stage_ns.resize(std::max(sum->stage_ns.size(), r.stage_ns.size()));
  for (size_t i = 0; i < r.stage_ns.size(); ++i) sum->stage_ns[i] += r.stage_ns[i];
}

// What was done under this coordinator: reports are totals since a worker joined its first one.
WorkerReport JobMaster::State::since(const WorkerReport& report, const WorkerReport& base) {
  if (base.examples == 0 || report.examples < base.examples) return report;
  WorkerReport r = report;
  const auto less = [](auto* value, auto by) { *value -= std::min(*value, by); };
  less(&r.examples, base.examples);
  less(&r.batches, base.batches);
  r.loss_sum -= base.loss_sum;
  for (size_t p = 0; p < std::min(r.phases.size(), base.phases.size()); ++p) {
    less(&r.phases[p].examples, base.phases[p].examples);
    r.phases[p].loss_sum -= base.phases[p].loss_sum;
  }
  less(&r.duplicates, base.duplicates);
  r.push_times.subtract(base.push_times);
  r.push_ages.subtract(base.push_ages);
  less(&r.resends, base.resends);
  less(&r.bytes_sent, base.bytes_sent);
  less(&r.bytes_received, base.bytes_received);
  less(&r.cpu_s, base.cpu_s);
  for (size_t i = 0; i < std::min(r.stage_ns.size(), base.stage_ns.size()); ++i)
    less(&r.stage_ns[i], base.stage_ns[i]);
  return r;
}

WorkerReport JobMaster::State::sum_reports() const {
  WorkerReport sum = left_;
  for (const auto& [id, worker] : workers_) add_report(&sum, since(worker.report, worker.base));
  return sum;
}

void JobMaster::State::waits_now(std::vector<WaitStatus>* out) const {
  const double since_s = seconds(now() - phase_since_);
  const auto until = [&](TimeNs begin, TimeNs limit) {
    return std::max(0.0, seconds(begin + limit - now()));
  };
  switch (phase_) {
    case Phase::kJoining:
      out->push_back({"coordinator", wait_reason(), seconds(now() - started_),
                      until(started_, options_.servers_deadline_ns)});
      break;
    case Phase::kLoading:
      out->push_back({"coordinator", wait_reason(), since_s,
                      until(phase_since_, options_.restore_deadline_ns)});
      break;
    case Phase::kReading:
      out->push_back({"coordinator", wait_reason(), since_s, -1});
      break;
    case Phase::kDraining:
      out->push_back({"coordinator", fmt::format("for {} worker(s) to finish", workers_.size()),
                      since_s, until(phase_since_, options_.drain_deadline_ns)});
      break;
    case Phase::kTraining:
    case Phase::kEvaluating:
      if (workers_.empty())
        out->push_back({"coordinator", "for a worker to join", seconds(now() - no_worker_since_),
                        until(no_worker_since_, options_.workers_deadline_ns)});
      break;
    default:
      break;
  }
  for (const auto& ask : asks_)
    out->push_back({"coordinator", ask_waits(*ask), seconds(now() - ask->since),
                    std::max(0.0, seconds(ask->until - now()))});
  if (no_server_since_ != 0)
    out->push_back({"coordinator", "for a server to join", seconds(now() - no_server_since_),
                    until(no_server_since_, options_.servers_deadline_ns)});
  for (const auto& [id, worker] : workers_) {
    for (const auto& [lane, slot] : worker.slots)
      if (!slot.answered && now() - slot.since > 100 * kMillisecond)
        out->push_back({worker.info.name, wait_reason(), seconds(now() - slot.since),
                        until(slot.since, options_.lease_hold_ns)});
    if (!worker.report.waits.empty())
      out->push_back({worker.info.name, worker.report.waits, 0, -1});
  }
}

void JobMaster::State::status_of_servers(JobStatus* s) const {
  s->shards = plan_.all_shards;
  s->replicas = plan_.replicas;
  s->epoch_changes = epoch_changes_;
  s->failovers = failovers_all_;
  s->failover_max_s = failover_max_s_;
  s->latest_failovers = failovers_;
  s->servers_lost = servers_lost_;
  s->replicas_differed = replicas_differed_;
  // Also while those whom the log names are waited for: what they hold is what there is.
  s->taken_over = adopted_ || (phase_ == Phase::kJoining && folder_open_ && waits_for_servers());
  s->wanted_workers = wanted_.workers;
  s->wanted_servers = wanted_.servers;
  if (places_on_) {
    s->shards_without_backup = places_->without_backup();
    s->shards_unserved = places_->unserved();
    s->moves = places_->moving();
  }
  for (ServerId i = 0; i < servers_.size(); ++i) {
    const ServerEntry& server = servers_[i];
    if (server.gone) continue;
    const ServerJoin& info = server.info;
    s->servers.push_back({i, info.name, info.host, info.address, info.pid,
                          seconds(now() - server.seen), places_ ? places_->primaries(i) : 0,
                          places_ ? places_->backups(i) : 0, server.draining, server.rss_bytes, 0});
  }
  status_of_loads(s);
}

void JobMaster::State::status_of_phase(const WorkerReport& sum, JobStatus* s) const {
  if (phase_at_hand_ >= sum.phases.size()) return;
  const PhaseReport& phase = sum.phases[phase_at_hand_];
  if (plan_.schedule.phases > 1 && phase_at_hand_ < plan_.phases.size())
    s->phase_name = plan_.phases[phase_at_hand_];
  s->train_auc = phase.auc;
  s->phase_examples = phase.examples;
  s->phase_loss_sum = phase.loss_sum;
  if (phase.examples > 0) s->train_logloss = phase.loss_sum / static_cast<double>(phase.examples);
}

// What workers that are here or gone saw while training, each head and slice; as far as they told.
MetricReport JobMaster::State::progressive() const {
  ProgressiveSet sum = left_metrics_;
  for (const auto& [id, worker] : workers_)
    if (const auto told = ProgressiveSet::decode(worker.metrics); told.is_ok())
      sum.merge(told.value());
  const WorkerReport all = sum_reports();
  return sum.report(all.examples, all.loss_sum);
}

JobStatus JobMaster::State::status() const {
  static constexpr const char* kNames[] = {"starting", "loading",  "reading",
                                           "training", "saving",   "evaluating",
                                           "stopping", "stopping", ""};
  JobStatus s;
  s.job = plan_.name;
  s.state = phase_ != Phase::kEnded ? kNames[static_cast<size_t>(phase_)]
            : !failure_.is_ok()     ? "failed"
            : outcome_.complete     ? "complete"
                                    : "stopped";
  if (phase_ == Phase::kEnding && !stopping_) s.state = "ending";
  s.mode = plan_.mode;
  s.up_s = seconds(now() - started_);
  s.incarnation = incarnation_;
  s.epoch = {term_, places_ ? places_->version() & 0xFFFFFFFF : 0};
  s.pass = pass_;
  s.passes = static_cast<uint32_t>(plan_.passes.size());
  s.pass_name = pass_ < plan_.passes.size() ? plan_.passes[pass_] : "";
  s.section = section_;
  s.sections = plan_.schedule.sections();
  const auto& queue = phase_ == Phase::kEvaluating ? test_queue_ : queue_;
  if (queue) {
    s.todo = queue->todo();
    s.pending = queue->pending();
    s.applied = queue->applied();
    s.done = queue->done();
  }
  const WorkerReport sum = sum_reports();
  s.examples = base_examples_ + sum.examples;
  s.examples_run = sum.examples;
  s.examples_total = total_examples_;
  s.examples_applied = closed_examples();
  if (queue_ && closed_.size() == pass_) s.examples_applied += examples_by_hints();
  status_of_phase(sum, &s);
  s.duplicates = sum.duplicates;
  s.push_age = push_age_of(sum.push_ages);
  if (const MetricValues* values = tested_ ? tested_->whole() : nullptr) {
    s.auc = values->auc;
    s.logloss = values->log_loss;
  }
  s.last_checkpoint = last_checkpoint_.empty() ? resumed_from_ : last_checkpoint_;
  if (checkpoint_time_ > 0) s.checkpoint_s_ago = seconds(now() - checkpoint_time_);
  s.workers_lost = workers_lost_;
  s.blocks_reissued = reissued_ + (queue_ ? queue_->reissued() : 0);
  s.batches_skipped = batches_skipped_;
  for (const auto& [id, w] : workers_) {
    const Member* member = workers_members_.find(id);
    const double seen = member != nullptr ? seconds(now() - member->seen_ns) : -1;
    const uint32_t blocks = queue ? queue->held_by(id) : 0;
    s.workers.push_back({id, w.info.name, w.info.host, w.info.pid, w.info.threads, seen, w.rate,
                         blocks, since(w.report, w.base)});
    s.examples_per_s += w.rate;
  }
  status_of_servers(&s);
  status_of_health(&s);
  waits_now(&s.waits);
  s.error = failure_.message();
  return s;
}

}  // namespace flux
