#include "flux/cluster/stop_rule.h"

namespace flux {
namespace {

constexpr StopMetric kMetrics[] = {
    {"auc", true},       {"gauc", true},          {"uauc", true},
    {"log_loss", false}, {"loss", false},         {"mae", false},
    {"rmse", false},     {"bucket_error", false}, {"calibration_error", false},
};

}  // namespace

std::span<const StopMetric> stop_metrics() {
  return kMetrics;
}

StopRule::StopRule(const StopOptions& options)
    : min_delta_(options.min_delta), patience_(options.patience) {
  for (const StopMetric& metric : kMetrics)
    if (options.metric == metric.name) higher_ = metric.higher;
}

bool StopRule::look(double value) {
  const bool better =
      !best_ || (higher_ ? value > *best_ + min_delta_ : value < *best_ - min_delta_);
  if (better) {
    best_ = value;
    waited_ = 0;
  } else {
    ++waited_;
  }
  return better;
}

}  // namespace flux
