// LogHistogram: how often values of each size came, in a bounded number of buckets.
//
// Buckets are an eighth of a power of two wide and begin at 2^kFirstBit; what is outside lands in
// the first or the last. So a quantile is right within an eighth of itself. The sum of two
// histograms is that of all their values, so those of several threads and processes add up.
// Threads: one owner. Failure: none.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

namespace flux {

template <uint32_t kFirstBit>
class LogHistogram {
 public:
  static constexpr size_t kBuckets = 200;

  void add(uint64_t value) {
    ++buckets_[bucket_of(value)];
    max_ = std::max(max_, value);
  }
  void merge(const LogHistogram& other) {
    for (size_t i = 0; i < kBuckets; ++i) buckets_[i] += other.buckets_[i];
    max_ = std::max(max_, other.max_);
  }
  // Takes away what an earlier state of this one had; the maximum stays.
  void subtract(const LogHistogram& earlier) {
    for (size_t i = 0; i < kBuckets; ++i) buckets_[i] -= std::min(buckets_[i], earlier.buckets_[i]);
  }

  uint64_t count() const { return std::accumulate(buckets_.begin(), buckets_.end(), uint64_t{0}); }
  uint64_t max() const { return max_; }
  // Such that this share of all values is below; 0 if there is none.
  double quantile(double share) const {
    const double wanted = share * static_cast<double>(count());
    double below = 0;
    for (size_t i = 0; i < kBuckets; ++i) {
      const auto here = static_cast<double>(buckets_[i]);
      if (here > 0 && below + here >= wanted) {
        const double end = i + 1 < kBuckets ? begin_of(i + 1) : static_cast<double>(max_);
        const double at = begin_of(i) + (end - begin_of(i)) * (wanted - below) / here;
        return std::min(at, static_cast<double>(max_));
      }
      below += here;
    }
    return 0;
  }

  // For the wire: counts up to the last bucket that has any.
  std::vector<uint64_t> counts() const {
    size_t end = kBuckets;
    while (end > 0 && buckets_[end - 1] == 0) --end;
    return {buckets_.begin(), buckets_.begin() + static_cast<std::ptrdiff_t>(end)};
  }
  // What is beyond kBuckets is left out.
  static LogHistogram of(std::span<const uint64_t> counts, uint64_t max) {
    LogHistogram out;
    std::copy_n(counts.begin(), std::min(counts.size(), kBuckets), out.buckets_.begin());
    out.max_ = max;
    return out;
  }
  bool operator==(const LogHistogram&) const = default;

 private:
  static constexpr uint32_t kPartBits = 3;  // each power of two has eight buckets

  static size_t bucket_of(uint64_t value) {
    if (value < (1ULL << kFirstBit)) return 0;
    const auto bit = static_cast<uint32_t>(std::bit_width(value)) - 1;
    const uint64_t part = ((value << kPartBits) >> bit) & ((1U << kPartBits) - 1);
    const size_t at = ((bit - kFirstBit) << kPartBits) + part;
    return std::min(at, kBuckets - 1);
  }
  // Where a bucket begins, which is where the one before it ends.
  static double begin_of(size_t bucket) {
    if (bucket == 0) return 0;
    const auto whole = static_cast<double>(1ULL << (kFirstBit + (bucket >> kPartBits)));
    const auto part = static_cast<double>(bucket & ((1U << kPartBits) - 1));
    return whole + whole / (1U << kPartBits) * part;
  }

  std::array<uint64_t, kBuckets> buckets_{};
  uint64_t max_ = 0;
};

}  // namespace flux
