// Stop conditions of the job file: limits, and a metric that gets no better. Whether one is met
// follows from what is applied and from the looks that the log has, so a job that was stopped by
// one says so again when it is run again.
#include <bit>

#include <nlohmann/json.hpp>

#include "flux/base/text.h"
#include "flux/coordinator/job_state.h"

namespace flux {
namespace {

bool named(const std::string& name, const std::string& wanted) {
  return name.empty() || wanted.empty() || name == wanted;
}

// The value that the stop condition names; nothing: the report has no such. Names were checked with
// the job: a row without one is of the only phase, of the only head with a label.
std::optional<double> metric_in(const MetricReport& report, const StopOptions& stop) {
  if (stop.metric == "loss") return report.loss;
  for (const MetricReport::Row& row : report.rows) {
    if (!row.key.slice.empty()) continue;
    if (!named(row.key.phase, stop.phase) || !named(row.key.head, stop.head)) continue;
    for (const MetricField& field : metric_fields())
      if (stop.metric == field.name) return row.values.*field.value;
  }
  return std::nullopt;
}

}  // namespace

uint64_t JobMaster::State::steps_by_hints() const {
  uint64_t steps = 0;
  for (const ClosedPass& pass : closed_) steps += pass.batches * pass.repeats;
  if (!geometry_ || !pass_open_ || closed_.size() != pass_) return steps;
  steps += geometry_->batches() * section_;
  if (!queue_ || section_ >= plan_.schedule.sections()) return steps;
  for (uint32_t b = 0; b < geometry_->blocks.size(); ++b)
    steps += static_cast<uint64_t>(std::popcount(queue_->applied_mask(b)));
  return steps;
}

std::string JobMaster::State::limit_reached() const {
  const StopOptions& stop = plan_.stop;
  if (stop.examples > 0) {
    uint64_t applied = closed_examples();
    if (pass_open_ && geometry_ && closed_.size() == pass_) applied += examples_by_hints();
    if (applied >= stop.examples)
      return fmt::format("stop.examples: the {} that were asked for are applied",
                         with_commas(stop.examples));
  }
  if (stop.steps > 0)
    if (const uint64_t steps = steps_by_hints(); steps >= stop.steps)
      return fmt::format("stop.steps: the {} batches that were asked for are applied",
                         with_commas(stop.steps));
  if (stop.seconds > 0) {
    const TimeNs running = phase_ == Phase::kTraining ? now() - train_start_ : 0;
    const double trained = static_cast<double>(train_ns_ + running) * 1e-9;
    if (trained >= stop.seconds)
      return fmt::format("stop.seconds: the {:g} s that were asked for are over", stop.seconds);
  }
  return "";
}

std::string JobMaster::State::converged() const {
  if (!stop_rule_.converged()) return "";
  return fmt::format("stop.metric: {} {} has not improved on {:.6f} by more than {} for {} looks",
                     plan_.stop.on, plan_.stop.metric, stop_rule_.best().value_or(0),
                     plan_.stop.min_delta, stop_rule_.waited());
}

// True: the job ends because of one.
bool JobMaster::State::stop_if_due() {
  if (stopping_ || ended()) return false;
  std::string why = limit_reached();
  if (why.empty()) why = converged();
  if (why.empty()) return false;
  outcome_.stopped_by = why;
  Decision decision;
  decision.kind = "stop";
  decision.term = term_;
  decision.pass = pass_;
  decision.why = why;
  log_decision(decision);
  say("stopping: " + why);
  stop(why);
  return true;
}

// What former lives of the job looked at, from the log.
void JobMaster::State::replay_looks() {
  for (const Decision& d : decisions_) {
    if (d.kind == "stop") stopped_before_ = d.why;
    if (d.value && stop_rule_.look(*d.value)) best_ = d.checkpoint;
  }
}

// After an evaluation: the checkpoint that closed the pass is the best so far, or not.
void JobMaster::State::look_at_test(const MetricReport& report, Decision* decision) {
  if (!plan_.stop.converges() || plan_.stop.on != "test") return;
  const std::optional<double> value = metric_in(report, plan_.stop);
  if (!value) return say(fmt::format("warning: the test has no {} to stop by", plan_.stop.metric));
  decision->value = value;
  decision->checkpoint = committed_;
  if (!stop_rule_.look(*value)) return;
  best_ = committed_;
  const nlohmann::ordered_json best = {{"checkpoint", store().path_of(best_)},
                                       {"pass", closed_.back().name},
                                       {"metric", plan_.stop.metric},
                                       {"value", *value}};
  slowly<bool>(
      [this, self = shared_from_this(), text = best.dump(2) + "\n"]() -> Result<bool> {
        FLUX_RETURN_IF_ERROR(still_mine());
        FLUX_RETURN_IF_ERROR(files_->write_atomic(in_output("best.json"), text));
        return true;
      },
      [this](const Result<bool>& written) {
        if (!written.is_ok()) say("warning: " + written.status().message());
      });
}

// At the end of an epoch of a phase: the mean loss of what workers trained since the last look.
void JobMaster::State::look_at_training(uint32_t section) {
  const BlockId id = plan_.schedule.section(pass_, section);
  const WorkerReport sum = sum_reports();
  const uint64_t examples = sum.examples - std::min(sum.examples, looked_.examples);
  const double loss = sum.loss_sum - looked_.loss_sum;
  looked_ = sum;
  const StopOptions& stop = plan_.stop;
  if (!stop.converges() || stop.on != "train" || examples == 0) return;
  if (!stop.phase.empty() && plan_.phases[id.phase] != stop.phase) return;
  Decision look;
  look.kind = "look";
  look.term = term_;
  look.pass = pass_;
  look.value = loss / static_cast<double>(examples);
  stop_rule_.look(*look.value);
  log_decision(look);
}

}  // namespace flux
