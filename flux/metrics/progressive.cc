#include "flux/metrics/progressive.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

namespace flux {
namespace {

constexpr uint32_t kUnitBits = 20;
enum Flags : uint8_t { kWeighted = 1, kNoClasses = 2, kNoProbabilities = 4, kClassNumbers = 8 };

// A batch's sum is rounded by itself, so totals are the same in whatever order batches come.
void add_finite(double sum, ExactSum* to) {
  if (std::isfinite(sum)) to->add(sum);
}

// The log loss of classes with a weight of 1: the logarithm of a product instead of each one's, as
// a logarithm costs as much as the rest of an example's metrics.
class LogLossSum {
 public:
  void add(double label, double prediction) {
    const double p = never_certain(prediction);
    product_ *= label == 1 ? p : 1 - p;
    if (product_ < kLeast) take();
  }
  double value() {
    take();
    return sum_;
  }

 private:
  static constexpr double kLeast = 1e-280;  // times the smallest factor it is no denormal number
  void take() {
    sum_ -= std::log(product_);
    product_ = 1;
  }
  double sum_ = 0, product_ = 1;
};

// Small numbers in few bytes: seven bits each, the last without the high one.
void put_small(ByteWriter* out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out->put(static_cast<uint8_t>(value | 0x80));
  out->put(static_cast<uint8_t>(value));
}

uint64_t get_small(ByteReader* in) {
  uint64_t value = 0;
  for (uint32_t shift = 0; shift < 64; shift += 7) {
    const auto byte = in->get<uint8_t>();
    value |= static_cast<uint64_t>(byte & 0x7F) << shift;
    if ((byte & 0x80) == 0) break;
  }
  return value;
}

}  // namespace

void BinaryMetrics::make_room() {
  if (!positive_.empty()) return;
  positive_.resize(buckets_);
  negative_.resize(buckets_);
}

void BinaryMetrics::weigh() {
  if (std::exchange(weighted_, true)) return;
  for (uint64_t& count : positive_) count <<= kUnitBits;
  for (uint64_t& count : negative_) count <<= kUnitBits;
}

void BinaryMetrics::add(const ScoredBatch& batch) {
  make_room();
  if (std::any_of(batch.weights.begin(), batch.weights.end(), [](float w) { return w != 1; }))
    weigh();
  sums_.class_numbers = sums_.class_numbers || batch.class_numbers;
  const auto shift = static_cast<uint32_t>(std::countr_zero(kScoreBuckets / buckets_));
  double weight = 0, label = 0, prediction = 0, loss = 0, absolute = 0, squared = 0, right = 0;
  LogLossSum plain;
  // Where an example counts is fetched well before it is counted: it is in no cache.
  constexpr size_t kAhead = 32;
  const auto counter_of = [&](size_t i) {
    std::vector<uint64_t>& counts = batch.labels[i] > 0.5F ? positive_ : negative_;
    return counts.data() + (score_bucket(batch.predictions[i]) >> shift);
  };
  const size_t n = batch.predictions.size();
  for (size_t i = 0; i < std::min(n, kAhead); ++i) __builtin_prefetch(counter_of(i), 1);
  for (size_t i = 0; i < n; ++i) {
    if (i + kAhead < n) __builtin_prefetch(counter_of(i + kAhead), 1);
    const double w = batch.weight(i), y = batch.labels[i], p = batch.predictions[i];
    *counter_of(i) += weighted_ ? static_cast<uint64_t>(std::llround(std::ldexp(w, kUnitBits))) : 1;
    sums_.look_at(y, p);
    weight += w;
    label += w * y;
    prediction += w * p;
    absolute += w * std::fabs(p - y);
    squared += w * (p - y) * (p - y);
    right += p == y ? w : 0;
    if (!sums_.costs()) continue;
    if (w == 1)
      plain.add(y, p);
    else
      loss += w * log_loss_of(y, p);
  }
  loss += plain.value();
  sums_.examples += n;
  const double of_batch[] = {weight, label, prediction, loss, absolute, squared, right};
  const double* next = of_batch;
  for (ExactSum* sum : sums_.all()) add_finite(*next++, sum);
}

void BinaryMetrics::merge(const BinaryMetrics& other) {
  if (other.positive_.empty()) return;
  make_room();
  if (other.weighted_) weigh();
  const uint32_t shift = weighted_ && !other.weighted_ ? kUnitBits : 0;
  for (uint32_t i = 0; i < buckets_; ++i) {
    positive_[i] += other.positive_[i] << shift;
    negative_[i] += other.negative_[i] << shift;
  }
  sums_.merge(other.sums_);
}

std::optional<double> BinaryMetrics::auc() const {
  if (!sums_.costs()) return std::nullopt;
  AucSum sum;
  for (size_t i = 0; i < positive_.size(); ++i)
    sum.add(static_cast<double>(positive_[i]), static_cast<double>(negative_[i]));
  if (!sum.both_classes()) return std::nullopt;
  return sum.value();
}

MetricValues BinaryMetrics::values() const {
  MetricValues out = sums_.values();
  out.exact = false;
  if (out.weight > 0) out.auc = auc();
  return out;
}

void BinaryMetrics::put(ByteWriter* out) const {
  out->put(buckets_);
  out->put(sums_.examples);
  out->put(static_cast<uint8_t>((weighted_ ? kWeighted : 0) | (sums_.classes ? 0 : kNoClasses) |
                                (sums_.probabilities ? 0 : kNoProbabilities) |
                                (sums_.class_numbers ? kClassNumbers : 0)));
  // Once it has no meaning it depends on the order how much was summed before.
  const ExactSum none;
  for (const ExactSum* sum : sums_.all())
    (sum == &sums_.loss && !sums_.costs() ? &none : sum)->put(out);
  uint32_t filled = 0;
  for (size_t i = 0; i < positive_.size(); ++i)
    filled += (positive_[i] | negative_[i]) != 0 ? 1 : 0;
  out->put(filled);
  uint32_t next = 0;  // after the last one told
  for (uint32_t i = 0; i < positive_.size(); ++i) {
    if ((positive_[i] | negative_[i]) == 0) continue;
    put_small(out, i - next);
    put_small(out, positive_[i]);
    put_small(out, negative_[i]);
    next = i + 1;
  }
}

bool BinaryMetrics::get(ByteReader* in) {
  buckets_ = in->get<uint32_t>();
  sums_.examples = in->get<uint64_t>();
  const auto flags = in->get<uint8_t>();
  weighted_ = (flags & kWeighted) != 0;
  sums_.classes = (flags & kNoClasses) == 0;
  sums_.probabilities = (flags & kNoProbabilities) == 0;
  sums_.class_numbers = (flags & kClassNumbers) != 0;
  for (ExactSum* sum : sums_.all())
    if (!sum->get(in)) return false;
  const auto filled = in->get<uint32_t>();
  if (!in->ok() || !std::has_single_bit(buckets_) || buckets_ > kScoreBuckets || filled > buckets_)
    return false;
  positive_.clear();
  negative_.clear();
  make_room();
  uint64_t at = 0;
  for (uint32_t n = 0; n < filled; ++n, ++at) {
    const uint64_t step = get_small(in);
    if (!in->ok() || step >= buckets_ || at + step >= buckets_) return false;
    at += step;
    positive_[at] = get_small(in);
    negative_[at] = get_small(in);
  }
  return in->ok();
}

}  // namespace flux
