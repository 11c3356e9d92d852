// LatencyHistogram: how long something took, each time, in a bounded number of buckets.
//
// Buckets are an eighth of a power of two wide, from 8 us to about 4 minutes (what is outside lands
// in the first or the last), so a quantile is right within an eighth of itself. The sum of two
// histograms is that of all their times, so those of several threads and processes add up.
// Threads: one owner. Failure: none.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "flux/base/executor.h"

namespace flux {

class LatencyHistogram {
 public:
  static constexpr size_t kBuckets = 200;

  void add(TimeNs took);
  void merge(const LatencyHistogram& other);
  // Takes away what an earlier state of this one had; the maximum stays.
  void subtract(const LatencyHistogram& earlier);

  uint64_t count() const;
  // Such that this share of all times is below; 0 if there is none.
  double quantile_ms(double share) const;
  double max_ms() const { return static_cast<double>(max_) * 1e-6; }

  // For the wire: counts up to the last bucket that has any, and the maximum.
  std::vector<uint64_t> counts() const;
  TimeNs max_ns() const { return max_; }
  // What is beyond kBuckets is left out.
  static LatencyHistogram of(std::span<const uint64_t> counts, TimeNs max);
  bool operator==(const LatencyHistogram&) const = default;

 private:
  std::array<uint64_t, kBuckets> buckets_{};
  TimeNs max_ = 0;
};

}  // namespace flux
