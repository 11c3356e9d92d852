#include "flux/metrics/progressive.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace flux {
namespace {

constexpr double kUnit = 1.0 / (1 << 30);

// A batch's sum is rounded by itself, so totals are the same in whatever order batches come.
int64_t to_units(double sum) {
  constexpr double kMax = 1e18;
  return std::llround(std::clamp(sum / kUnit, -kMax, kMax));
}

// Small numbers in few bytes: seven bits each, the last without the high one.
void put_small(ByteWriter* out, uint32_t value) {
  for (; value >= 0x80; value >>= 7) out->put(static_cast<uint8_t>(value | 0x80));
  out->put(static_cast<uint8_t>(value));
}

uint32_t get_small(ByteReader* in) {
  uint64_t value = 0;
  for (uint32_t shift = 0; shift < 35; shift += 7) {
    const auto byte = in->get<uint8_t>();
    value |= static_cast<uint64_t>(byte & 0x7F) << shift;
    if ((byte & 0x80) == 0) break;
  }
  return static_cast<uint32_t>(value);
}

}  // namespace

void BinaryMetrics::make_room() {
  if (!positive_.empty()) return;
  positive_.resize(buckets_);
  negative_.resize(buckets_);
}

void BinaryMetrics::add(const float* labels, const float* predictions, uint32_t n,
                        double loss_sum) {
  make_room();
  uint64_t positives = 0;
  double predicted = 0;
  const auto shift = static_cast<uint32_t>(std::countr_zero(kScoreBuckets / buckets_));
  for (uint32_t i = 0; i < n; ++i) {
    const uint32_t bucket = score_bucket(predictions[i]) >> shift;
    const bool positive = labels[i] > 0.5F;
    ++(positive ? positive_ : negative_)[bucket];
    positives += positive ? 1 : 0;
    predicted += static_cast<double>(predictions[i]);
  }
  positives_ += positives;
  negatives_ += n - positives;
  loss_ += to_units(loss_sum);
  predicted_ += std::isfinite(predicted) ? to_units(predicted) : 0;
}

void BinaryMetrics::merge(const BinaryMetrics& other) {
  if (other.positive_.empty()) return;
  make_room();
  for (uint32_t i = 0; i < buckets_; ++i) {
    positive_[i] += other.positive_[i];
    negative_[i] += other.negative_[i];
  }
  positives_ += other.positives_;
  negatives_ += other.negatives_;
  loss_ += other.loss_;
  predicted_ += other.predicted_;
}

void BinaryMetrics::clear() {
  *this = BinaryMetrics(buckets_);
}

double BinaryMetrics::auc() const {
  AucSum sum;
  for (size_t i = 0; i < positive_.size(); ++i) sum.add(positive_[i], negative_[i]);
  return sum.value();
}

double BinaryMetrics::log_loss() const {
  return examples() == 0 ? 0 : static_cast<double>(loss_) * kUnit / static_cast<double>(examples());
}

double BinaryMetrics::ctr() const {
  return examples() == 0 ? 0 : static_cast<double>(positives_) / static_cast<double>(examples());
}

MetricValues BinaryMetrics::values() const {
  MetricValues out;
  out.examples = examples();
  out.weight = static_cast<double>(examples());
  out.exact = false;
  if (examples() == 0) return out;
  if (positives_ > 0 && negatives_ > 0) out.auc = auc();
  out.log_loss = log_loss();
  out.label_mean = ctr();
  out.prediction_mean = static_cast<double>(predicted_) * kUnit / static_cast<double>(examples());
  if (*out.prediction_mean > 0) out.copc = *out.label_mean / *out.prediction_mean;
  return out;
}

void BinaryMetrics::put(ByteWriter* out) const {
  out->put(buckets_);
  out->put(positives_);
  out->put(negatives_);
  out->put(loss_);
  out->put(predicted_);
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
  positives_ = in->get<uint64_t>();
  negatives_ = in->get<uint64_t>();
  loss_ = in->get<int64_t>();
  predicted_ = in->get<int64_t>();
  const auto filled = in->get<uint32_t>();
  if (!in->ok() || !std::has_single_bit(buckets_) || buckets_ > kScoreBuckets || filled > buckets_)
    return false;
  positive_.clear();
  negative_.clear();
  make_room();
  uint64_t at = 0;
  for (uint32_t n = 0; n < filled; ++n, ++at) {
    at += get_small(in);
    if (!in->ok() || at >= buckets_) return false;
    positive_[at] = get_small(in);
    negative_[at] = get_small(in);
  }
  return in->ok();
}

}  // namespace flux
