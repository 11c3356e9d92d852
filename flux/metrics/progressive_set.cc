#include "flux/metrics/progressive_set.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace flux {
namespace {

constexpr uint8_t kVersion = 1;
constexpr size_t kNameMax = 256;

// -log of the probability given to what happened; nothing is given less than 1e-7.
double log_loss_of(float label, float prediction) {
  const double p = std::clamp(static_cast<double>(prediction), 1e-7, 1 - 1e-7);
  return -std::log(label > 0.5F ? p : 1 - p);
}

}  // namespace

void ProgressiveSet::add(const MetricKey& key, const float* labels, const float* predictions,
                         uint32_t n, double loss_sum) {
  by_key_[key].add(labels, predictions, n, loss_sum);
}

void ProgressiveSet::add_slices(MetricKey key, const float* labels, const float* predictions,
                                std::span<const Slice> slices) {
  std::vector<float> some_labels, some_predictions;
  for (const Slice& slice : slices) {
    some_labels.clear();
    some_predictions.clear();
    double loss = 0;
    for (const uint32_t i : slice.examples) {
      some_labels.push_back(labels[i]);
      some_predictions.push_back(predictions[i]);
      loss += log_loss_of(labels[i], predictions[i]);
    }
    key.slice = slice.name;
    by_key_.try_emplace(key, kSliceBuckets)
        .first->second.add(some_labels.data(), some_predictions.data(),
                           static_cast<uint32_t>(some_labels.size()), loss);
  }
  keep_smallest(slice_values_, &by_key_);
}

void ProgressiveSet::merge(const ProgressiveSet& other) {
  slice_values_ = std::max(slice_values_, other.slice_values_);
  for (const auto& [key, metrics] : other.by_key_) {
    const auto [at, is_new] = by_key_.try_emplace(key, metrics);
    if (!is_new) at->second.merge(metrics);
  }
  keep_smallest(slice_values_, &by_key_);
}

double ProgressiveSet::auc() const {
  return by_key_.empty() ? 0.5 : by_key_.begin()->second.auc();
}

MetricReport ProgressiveSet::report() const {
  MetricReport out;
  for (const auto& [key, metrics] : by_key_) {
    out.rows.push_back({key, metrics.values()});
    if (key.slice.empty()) out.examples += metrics.examples();
  }
  if (!out.rows.empty()) out.loss = out.rows[0].values.log_loss.value_or(0);
  return out;
}

std::string ProgressiveSet::encode() const {
  ByteWriter out;
  out.put(kVersion);
  out.put(slice_values_);
  out.put(static_cast<uint32_t>(by_key_.size()));
  for (const auto& [key, metrics] : by_key_) {
    out.text(key.head);
    out.text(key.slice);
    out.text(key.phase);
    metrics.put(&out);
  }
  return out.take();
}

Result<ProgressiveSet> ProgressiveSet::decode(std::string_view bytes) {
  ByteReader in(bytes);
  const auto version = in.get<uint8_t>();
  ProgressiveSet out(in.get<uint32_t>());
  const auto keys = in.get<uint32_t>();
  if (!in.ok() || version != kVersion || keys > kProgressiveKeysMax || out.slice_values_ > 1024)
    return invalid("progressive metrics of version {} with {} heads and slices", version, keys);
  for (uint32_t i = 0; i < keys; ++i) {
    MetricKey key;
    key.head = in.text(kNameMax);
    key.slice = in.text(kNameMax);
    key.phase = in.text(kNameMax);
    BinaryMetrics metrics;
    if (!in.ok() || !metrics.get(&in)) return invalid("progressive metrics that cannot be read");
    // Merging needs the same buckets under the same kind of key.
    if (metrics.buckets() != (key.slice.empty() ? kScoreBuckets : kSliceBuckets))
      return invalid("progressive metrics with {} buckets", metrics.buckets());
    out.by_key_.insert_or_assign(std::move(key), std::move(metrics));
  }
  if (in.left() != 0) return invalid("progressive metrics with {} bytes too many", in.left());
  return out;
}

}  // namespace flux
