// LatencyHistogram: how long something took, each time: a LogHistogram of nanoseconds from 8 us to
// about 4 minutes. Threads: one owner. Failure: none.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "flux/base/executor.h"
#include "flux/base/log_histogram.h"

namespace flux {

class LatencyHistogram {
 public:
  using Values = LogHistogram<13>;  // 2^13 ns are 8 us
  static constexpr size_t kBuckets = Values::kBuckets;

  void add(TimeNs took) { ns_.add(took < 0 ? 0 : static_cast<uint64_t>(took)); }
  void merge(const LatencyHistogram& other) { ns_.merge(other.ns_); }
  // Takes away what an earlier state of this one had; the maximum stays.
  void subtract(const LatencyHistogram& earlier) { ns_.subtract(earlier.ns_); }

  uint64_t count() const { return ns_.count(); }
  // Such that this share of all times is below; 0 if there is none.
  double quantile_ms(double share) const { return ns_.quantile(share) * 1e-6; }
  double max_ms() const { return static_cast<double>(ns_.max()) * 1e-6; }

  // For the wire: counts up to the last bucket that has any, and the maximum.
  std::vector<uint64_t> counts() const { return ns_.counts(); }
  TimeNs max_ns() const { return static_cast<TimeNs>(ns_.max()); }
  // What is beyond kBuckets is left out.
  static LatencyHistogram of(std::span<const uint64_t> counts, TimeNs max) {
    LatencyHistogram out;
    out.ns_ = Values::of(counts, max < 0 ? 0 : static_cast<uint64_t>(max));
    return out;
  }
  bool operator==(const LatencyHistogram&) const = default;

 private:
  Values ns_;
};

}  // namespace flux
