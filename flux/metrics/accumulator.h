// MetricAccumulator: takes scored examples of one head and slice, in any order and on any number
// of threads and machines, and gives every metric.
//
// Merging is exact: means are ExactSums of values that each example has by itself; what needs a
// ranking is computed from the records, put into one order. So the result depends on the set of
// examples alone, to the last bit. Records cost 8 bytes (+4 with weights, +8 with groups); keep()
// says whether they are still kept, drop_records() goes over to integer counts in 2^17 buckets,
// and then AUC, bucket error and calibration are by buckets and group metrics are absent.
// Not thread-safe: one per thread, merged when read.
#pragma once

#include <cstdint>

#include "flux/base/status.h"
#include "flux/metrics/bucket_counts.h"
#include "flux/metrics/metric_values.h"
#include "flux/metrics/records.h"
#include "flux/metrics/score_sums.h"

namespace flux {

struct MetricOptions {
  // Examples of all heads and slices together that are kept one by one; beyond it everything is
  // by buckets. 2^24 need about 0.2 GB, and 0.6 GB for a moment when they are read.
  uint64_t records_max = 1U << 24;
  std::vector<uint32_t> at = {1, 5, 10};  // k of precision and recall
  uint32_t calibration_bins = 20;
  uint32_t slice_values = 16;  // of each slot; the rest is one slice, see metrics/slices.h
};

class MetricAccumulator {
 public:
  void add(const ScoredBatch& batch);  // that check_scored() found good
  void merge(const MetricAccumulator& other);
  void drop_records();
  uint64_t examples() const { return sums_.examples; }
  MetricValues values(const MetricOptions& options) const;

 private:
  void take_sums(const ScoredBatch& batch);
  void rank(const MetricOptions& options, MetricValues* out) const;

  bool exact_ = true;
  ScoreSums sums_;
  Records records_;       // while exact
  BucketCounts buckets_;  // afterwards
};

}  // namespace flux
