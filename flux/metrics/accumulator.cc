#include "flux/metrics/accumulator.h"

#include <cmath>

namespace flux {

void MetricAccumulator::take_sums(const ScoredBatch& batch) {
  sums_.examples += batch.predictions.size();
  sums_.class_numbers = sums_.class_numbers || batch.class_numbers;
  for (size_t i = 0; i < batch.predictions.size(); ++i) {
    const double label = batch.labels[i], prediction = batch.predictions[i];
    const double weight = batch.weight(i);
    const double off = prediction - label;
    sums_.look_at(label, prediction);
    sums_.weight.add(weight);
    sums_.label.add(weight * label);
    sums_.prediction.add(weight * prediction);
    sums_.absolute.add(weight * std::fabs(off));
    sums_.squared.add(weight * off * off);
    if (sums_.costs()) sums_.loss.add(weight * log_loss_of(label, prediction));
    if (batch.class_numbers && off == 0) sums_.right.add(weight);
  }
}

void MetricAccumulator::add(const ScoredBatch& batch) {
  take_sums(batch);
  if (exact_) {
    records_.append(batch);
  } else {
    buckets_.add(batch);
  }
}

void MetricAccumulator::drop_records() {
  if (!exact_) return;
  exact_ = false;
  buckets_.add(records_.view());
  records_.clear();
}

void MetricAccumulator::merge(const MetricAccumulator& other) {
  sums_.merge(other.sums_);
  if (!other.exact_) drop_records();
  if (exact_) return records_.append(other.records_.view());
  buckets_.add(other.records_.view());
  buckets_.merge(other.buckets_);
}

MetricValues MetricAccumulator::values(const MetricOptions& options) const {
  MetricValues out = sums_.values();
  out.exact = exact_;
  if (out.weight > 0 && sums_.classes && !sums_.class_numbers) rank(options, &out);
  return out;
}

void MetricAccumulator::rank(const MetricOptions& options, MetricValues* out) const {
  if (exact_ || sums_.probabilities) {
    const std::vector<ScoreRun> runs = exact_ ? runs_of(records_.view()) : buckets_.runs();
    const AucSum auc = auc_of(runs);
    if (auc.both_classes()) out->auc = auc.value();
    if (sums_.probabilities) {
      out->bucket_error = bucket_error(runs);
      out->calibration = calibration(runs, options.calibration_bins);
      out->calibration_error = calibration_error(out->calibration);
    }
  }
  if (!exact_ || !records_.has_groups()) return;
  GroupValues groups = group_values(records_.view(), options.at);
  out->groups = groups.groups;
  out->gauc = groups.gauc;
  out->uauc = groups.uauc;
  out->at = std::move(groups.at);
}

}  // namespace flux
