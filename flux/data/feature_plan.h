// FeaturePlan: from what the lines of a batch hold to what a model sees: computes the features of
// the job, column by column, leaves out what is hidden, and transforms the numbers.
//
// Slots of the model: those of the lines, then the features that make keys, in the order of the job
// file, without the hidden ones. Numbers: those of the lines, then the features that make numbers.
// Threads: immutable; apply() may run in several at once. Failure: none, the options were checked.
#pragma once

#include <memory>
#include <vector>

#include "flux/data/features/feature.h"

namespace flux {

class FeaturePlan {
 public:
  explicit FeaturePlan(const DataOptions& options);
  // In place. `batch` has the slots and numbers of the lines, the numbers as they are.
  void apply(Batch* batch) const;

 private:
  struct Step {
    std::unique_ptr<const FeatureKernel> kernel;
    bool reads_numbers, makes_numbers;
    std::vector<uint32_t> sources;  // columns
    uint32_t target;                // column
  };
  struct Columns {
    std::vector<KeyColumn> keys;
    std::vector<NumberColumn> numbers;
  };
  void take_columns(const Batch& batch, Columns* columns) const;
  void put_keys(const Columns& columns, Batch* batch) const;
  void put_numbers(const Columns& columns, Batch* batch) const;
  void put_one_key_each(const Columns& columns, Batch* batch) const;

  bool nothing_to_do_ = false;
  bool log1p_;
  bool values_;     // the model's keys have values
  bool many_keys_;  // the model's slots have any number of keys
  uint32_t raw_slots_, raw_numbers_;
  uint32_t key_columns_, number_columns_;
  std::vector<uint32_t> wanted_slots_, wanted_numbers_;  // of the lines, that anything needs
  std::vector<uint32_t> shown_;                          // key columns that the model sees
  std::vector<Step> steps_;
};

}  // namespace flux
