// DataStats: what is in a dataset, feature by feature: how many examples have it, how many keys,
// how many different ones, ranges of numbers, rates of labels.
//
// Batches are added in any order; two may be merged. Not thread-safe: one for each thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "flux/data/batch.h"
#include "flux/data/blocks/record_schema.h"
#include "flux/data/tools/key_sketch.h"

namespace flux {

struct SlotStats {
  uint64_t examples = 0;  // that have a key of it
  uint64_t keys = 0;
  uint32_t keys_most = 0;  // in one example
  KeySketch different;
};

struct NumberStats {
  uint64_t not_zero = 0;
  uint64_t not_finite = 0;
  double sum = 0;
  float least = 0, most = 0;  // of those that are finite
  bool any = false;
  void add(float value);
  void merge(const NumberStats& other);
};

class DataStats {
 public:
  explicit DataStats(RecordSchema schema);
  void add(const Batch& batch);
  void merge(const DataStats& other);
  // A table with bars, `width` characters wide at most.
  std::string text(uint32_t width = 100) const;
  std::string json() const;

  const RecordSchema& schema() const { return schema_; }
  uint64_t examples() const { return examples_; }
  const std::vector<SlotStats>& slots() const { return slots_; }
  const std::vector<NumberStats>& labels() const { return labels_; }
  const std::vector<NumberStats>& dense() const { return dense_; }

 private:
  void add_keys(const Batch& batch);

  const RecordSchema schema_;
  uint64_t examples_ = 0;
  std::vector<SlotStats> slots_;
  std::vector<NumberStats> labels_, dense_;
};

}  // namespace flux
