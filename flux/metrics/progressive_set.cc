#include "flux/metrics/progressive_set.h"

#include <algorithm>
#include <vector>

namespace flux {
namespace {

constexpr uint8_t kVersion = 2;
constexpr size_t kNameMax = 256;

}  // namespace

void ProgressiveSet::add(const MetricKey& key, HeadPlace place, const ScoredBatch& batch) {
  by_key_[key].add(batch);
  heads_.try_emplace(place, key);
}

void ProgressiveSet::add_slices(MetricKey key, const ScoredBatch& batch,
                                std::span<const Slice> slices) {
  std::vector<float> labels, predictions, weights;
  for (const Slice& slice : slices) {
    labels.clear();
    predictions.clear();
    weights.clear();
    for (const uint32_t i : slice.examples) {
      labels.push_back(batch.labels[i]);
      predictions.push_back(batch.predictions[i]);
      if (!batch.weights.empty()) weights.push_back(batch.weights[i]);
    }
    key.slice = slice.name;
    by_key_.try_emplace(key, kSliceBuckets)
        .first->second.add({predictions, labels, weights, {}, batch.class_numbers});
  }
  keep_smallest(slice_values_, &by_key_);
}

void ProgressiveSet::merge(const ProgressiveSet& other) {
  slice_values_ = std::max(slice_values_, other.slice_values_);
  for (const auto& [key, metrics] : other.by_key_) {
    const auto [at, is_new] = by_key_.try_emplace(key, metrics);
    if (!is_new) at->second.merge(metrics);
  }
  heads_.insert(other.heads_.begin(), other.heads_.end());
  keep_smallest(slice_values_, &by_key_);
}

std::optional<double> ProgressiveSet::auc(uint32_t phase) const {
  const auto first = heads_.lower_bound({phase, 0});
  if (first == heads_.end() || first->first.phase != phase) return std::nullopt;
  return by_key_.at(first->second).auc();
}

MetricReport ProgressiveSet::report(uint64_t examples, double loss_sum) const {
  MetricReport out;
  out.examples = examples;
  out.loss = examples > 0 ? loss_sum / static_cast<double>(examples) : 0;
  for (const auto& [place, head] : heads_)
    for (auto at = by_key_.find(head); at != by_key_.end(); ++at)
      if (at->first.head == head.head && at->first.phase == head.phase)
        out.rows.push_back({at->first, at->second.values()});
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
  out.put(static_cast<uint32_t>(heads_.size()));
  for (const auto& [place, key] : heads_) {
    out.put(place.phase);
    out.put(place.head);
    out.text(key.head);
    out.text(key.phase);
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
  const auto heads = in.get<uint32_t>();
  if (!in.ok() || heads > keys) return invalid("progressive metrics of {} heads", heads);
  for (uint32_t i = 0; i < heads; ++i) {
    HeadPlace place{in.get<uint32_t>(), 0};
    place.head = in.get<uint32_t>();
    MetricKey key{in.text(kNameMax), ""};
    key.phase = in.text(kNameMax);
    if (!in.ok() || !out.by_key_.contains(key))
      return invalid("progressive metrics of a head that is not there");
    out.heads_.insert_or_assign(place, std::move(key));
  }
  if (in.left() != 0) return invalid("progressive metrics with {} bytes too many", in.left());
  return out;
}

}  // namespace flux
