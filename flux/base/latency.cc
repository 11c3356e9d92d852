#include "flux/base/latency.h"

#include <algorithm>
#include <bit>
#include <numeric>

namespace flux {
namespace {

constexpr uint32_t kFirstBit = 13;  // 2^13 ns are 8 us
constexpr uint32_t kPartBits = 3;   // each power of two has eight buckets

size_t bucket_of(uint64_t ns) {
  if (ns < (1ULL << kFirstBit)) return 0;
  const auto bit = static_cast<uint32_t>(std::bit_width(ns)) - 1;
  const uint64_t part = (ns >> (bit - kPartBits)) & ((1U << kPartBits) - 1);
  const size_t at = ((bit - kFirstBit) << kPartBits) + part;
  return std::min(at, LatencyHistogram::kBuckets - 1);
}

// Nanoseconds where a bucket begins, which is where the one before it ends.
double begin_of(size_t bucket) {
  if (bucket == 0) return 0;
  const uint64_t whole = 1ULL << (kFirstBit + (bucket >> kPartBits));
  const uint64_t part = bucket & ((1U << kPartBits) - 1);
  return static_cast<double>(whole + ((whole >> kPartBits) * part));
}

}  // namespace

void LatencyHistogram::add(TimeNs took) {
  took = std::max<TimeNs>(0, took);
  ++buckets_[bucket_of(static_cast<uint64_t>(took))];
  max_ = std::max(max_, took);
}

void LatencyHistogram::merge(const LatencyHistogram& other) {
  for (size_t i = 0; i < kBuckets; ++i) buckets_[i] += other.buckets_[i];
  max_ = std::max(max_, other.max_);
}

void LatencyHistogram::subtract(const LatencyHistogram& earlier) {
  for (size_t i = 0; i < kBuckets; ++i) buckets_[i] -= std::min(buckets_[i], earlier.buckets_[i]);
}

uint64_t LatencyHistogram::count() const {
  return std::accumulate(buckets_.begin(), buckets_.end(), uint64_t{0});
}

double LatencyHistogram::quantile_ms(double share) const {
  const double wanted = share * static_cast<double>(count());
  double below = 0;
  for (size_t i = 0; i < kBuckets; ++i) {
    const auto here = static_cast<double>(buckets_[i]);
    if (here > 0 && below + here >= wanted) {
      const double end = i + 1 < kBuckets ? begin_of(i + 1) : static_cast<double>(max_);
      const double at = begin_of(i) + (end - begin_of(i)) * (wanted - below) / here;
      return std::min(at, static_cast<double>(max_)) * 1e-6;
    }
    below += here;
  }
  return 0;
}

std::vector<uint64_t> LatencyHistogram::counts() const {
  size_t end = kBuckets;
  while (end > 0 && buckets_[end - 1] == 0) --end;
  return {buckets_.begin(), buckets_.begin() + static_cast<std::ptrdiff_t>(end)};
}

LatencyHistogram LatencyHistogram::of(std::span<const uint64_t> counts, TimeNs max) {
  LatencyHistogram out;
  std::copy_n(counts.begin(), std::min(counts.size(), kBuckets), out.buckets_.begin());
  out.max_ = std::max<TimeNs>(0, max);
  return out;
}

}  // namespace flux
