#include "flux/metrics/accumulator.h"

#include <cmath>

namespace flux {

void MetricAccumulator::take_sums(const ScoredBatch& batch) {
  for (size_t i = 0; i < batch.predictions.size(); ++i) {
    const double label = batch.labels[i], prediction = batch.predictions[i];
    const double weight = batch.weight(i);
    const double off = prediction - label;
    classes_ = classes_ && (label == 0 || label == 1);
    probabilities_ = probabilities_ && prediction >= 0 && prediction <= 1;
    weight_.add(weight);
    label_.add(weight * label);
    prediction_.add(weight * prediction);
    absolute_.add(weight * std::fabs(off));
    squared_.add(weight * off * off);
    if (classes_ && probabilities_) loss_.add(weight * log_loss_of(label, prediction));
  }
  examples_ += batch.predictions.size();
  class_numbers_ = class_numbers_ || batch.class_numbers;
  for (size_t i = 0; batch.class_numbers && i < batch.predictions.size(); ++i)
    if (batch.predictions[i] == batch.labels[i]) right_.add(batch.weight(i));
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
  examples_ += other.examples_;
  classes_ = classes_ && other.classes_;
  probabilities_ = probabilities_ && other.probabilities_;
  class_numbers_ = class_numbers_ || other.class_numbers_;
  right_.merge(other.right_);
  weight_.merge(other.weight_);
  label_.merge(other.label_);
  prediction_.merge(other.prediction_);
  loss_.merge(other.loss_);
  absolute_.merge(other.absolute_);
  squared_.merge(other.squared_);
  if (!other.exact_) drop_records();
  if (exact_) return records_.append(other.records_.view());
  buckets_.add(other.records_.view());
  buckets_.merge(other.buckets_);
}

MetricValues MetricAccumulator::values(const MetricOptions& options) const {
  MetricValues out;
  out.examples = examples_;
  out.weight = weight_.value();
  out.exact = exact_;
  if (!(out.weight > 0)) return out;
  if (class_numbers_) {
    out.accuracy = right_.value() / out.weight;
    return out;
  }
  out.label_mean = label_.value() / out.weight;
  out.prediction_mean = prediction_.value() / out.weight;
  out.mae = absolute_.value() / out.weight;
  out.rmse = std::sqrt(squared_.value() / out.weight);
  if (prediction_.value() > 0) out.copc = label_.value() / prediction_.value();
  if (classes_ && probabilities_) out.log_loss = loss_.value() / out.weight;
  if (classes_) rank(options, &out);
  return out;
}

void MetricAccumulator::rank(const MetricOptions& options, MetricValues* out) const {
  if (exact_ || probabilities_) {
    const std::vector<ScoreRun> runs = exact_ ? runs_of(records_.view()) : buckets_.runs();
    const AucSum auc = auc_of(runs);
    if (auc.both_classes()) out->auc = auc.value();
    if (probabilities_) {
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
