#include "flux/metrics/metric_set.h"

#include <algorithm>
#include <cmath>

#include "flux/metrics/slices.h"

namespace flux {
namespace {

Status check_batch(uint32_t examples, double loss_sum, std::span<const KeyedBatch> batches) {
  if (!std::isfinite(loss_sum)) return invalid("an evaluated batch with a loss of {}", loss_sum);
  if (examples > kScoredExamplesMax)
    return invalid("an evaluated batch of {} examples, at most {}", examples, kScoredExamplesMax);
  for (const KeyedBatch& one : batches) {
    if (one.batch.predictions.size() > examples)
      return invalid("{} predictions of head '{}' for a batch of {} examples",
                     one.batch.predictions.size(), one.key.head, examples);
    FLUX_RETURN_IF_ERROR(check_scored(one.batch));
  }
  return Status::ok();
}

}  // namespace

Status MetricSet::add(uint32_t examples, double loss_sum, std::span<const KeyedBatch> batches) {
  FLUX_RETURN_IF_ERROR(check_batch(examples, loss_sum, batches));
  size_t keys = by_key_.size();
  for (const KeyedBatch& one : batches) keys += by_key_.contains(one.key) ? 0 : 1;
  if (keys > kScoredKeysMax)
    return invalid("metrics of {} heads and slices, at most {}", keys, kScoredKeysMax);
  for (const KeyedBatch& one : batches) {
    know_head(one.key.head);
    by_key_[one.key].add(one.batch);
    records_ += one.batch.predictions.size();
  }
  examples_ += examples;
  loss_.add(loss_sum);
  keep_smallest(options_.slice_values, &by_key_);
  keep_bound();
  return Status::ok();
}

void MetricSet::merge(const MetricSet& other) {
  for (const auto& [key, accumulator] : other.by_key_) by_key_[key].merge(accumulator);
  for (const std::string& head : other.heads_) know_head(head);
  examples_ += other.examples_;
  records_ += other.records_;
  loss_.merge(other.loss_);
  keep_smallest(options_.slice_values, &by_key_);
  keep_bound();
}

void MetricSet::know_head(const std::string& head) {
  if (std::find(heads_.begin(), heads_.end(), head) == heads_.end()) heads_.push_back(head);
}

void MetricSet::keep_bound() {
  if (records_ <= options_.records_max) return;
  for (auto& [key, accumulator] : by_key_) accumulator.drop_records();
}

MetricReport MetricSet::report() const {
  MetricReport out;
  out.examples = examples_;
  out.loss = examples_ > 0 ? loss_.value() / static_cast<double>(examples_) : 0;
  for (const std::string& head : heads_)
    for (const auto& [key, accumulator] : by_key_)
      if (key.head == head) out.rows.push_back({key, accumulator.values(options_)});
  return out;
}

}  // namespace flux
