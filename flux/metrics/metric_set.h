// MetricSet: the metrics of an evaluation, by head and slice; and the bytes in which a worker tells
// those of one batch.
//
// add() and merge() in any order, on any split, give the same report() to the last bit; that holds
// across the bound, too, since it looks at the total only. One bound for memory serves all keys.
// Bytes: encode_scored() at the worker, add_encoded() at the coordinator, which trusts nothing and
// takes a whole batch or none of it. Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "flux/base/status.h"
#include "flux/metrics/accumulator.h"

namespace flux {

// Bounds on what one batch may tell.
constexpr uint32_t kScoredExamplesMax = 1U << 20;
constexpr uint32_t kScoredKeysMax = 1024;
constexpr size_t kScoredNameMax = 128;

// One head and slice of one batch.
struct KeyedBatch {
  MetricKey key;
  ScoredBatch batch;
};

// What a batch of `examples` examples has to say, as bytes; `loss_sum` is the network's.
std::string encode_scored(uint32_t examples, double loss_sum, std::span<const KeyedBatch> batches);

class MetricSet {
 public:
  explicit MetricSet(MetricOptions options = {}) : options_(std::move(options)) {}

  // All of a batch, or kInvalid and nothing.
  Status add(uint32_t examples, double loss_sum, std::span<const KeyedBatch> batches);
  Status add_encoded(std::string_view bytes);
  void merge(const MetricSet& other);
  uint64_t examples() const { return examples_; }
  MetricReport report() const;  // may take a second: sorts what it kept

 private:
  void keep_bound();
  void know_head(const std::string& head);

  MetricOptions options_;
  uint64_t examples_ = 0;
  uint64_t records_ = 0;  // over all keys
  ExactSum loss_;
  std::map<MetricKey, MetricAccumulator> by_key_;
  std::vector<std::string> heads_;  // in the order in which every batch names them
};

}  // namespace flux
