// What workers measured of their training, and tests, shown to the guard; its warnings, told.
#include "flux/coordinator/job_state.h"

namespace flux {

// A model with a key per example counts, and learns nothing that a guard could judge.
void JobMaster::State::take_health(Worker* worker, const std::vector<HealthPiece>& pieces) {
  if (plan_.key_per_example) return;
  for (const HealthPiece& piece : pieces) {
    if (!worker->health.contains(piece.lane) && worker->health.size() >= kHealthLanesMax) continue;
    uint64_t& seen = worker->health[piece.lane];
    if (piece.number <= seen) continue;
    seen = piece.number;
    for (const TrainingWarning& warning : guard_.take(piece)) events_->warned(warning);
  }
}

void JobMaster::State::judge_test(const MetricReport& report) {
  if (plan_.key_per_example) return;
  std::vector<TestedHead> heads;
  for (const MetricReport::Row& row : report.rows) {
    if (!row.key.slice.empty()) continue;
    const MetricValues& values = row.values;
    heads.push_back({row.key.phase, row.key.head, static_cast<double>(values.examples), values.auc,
                     values.log_loss, values.label_mean});
  }
  for (const TrainingWarning& warning : guard_.tested(heads)) events_->warned(warning);
}

void JobMaster::State::status_of_health(JobStatus* s) const {
  s->quality = guard_.suspect() ? "suspect" : "ok";
  s->warnings = guard_.warnings();
}

}  // namespace flux
