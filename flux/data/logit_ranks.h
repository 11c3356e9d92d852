// LogitRanks: logits of made examples by class, and from them the probability that a positive ranks
// above a negative: the AUC that a model which knows the truth would reach.
// Exact (all logits are kept and sorted) or from a histogram; 0.5 when there is one class only.
// Not thread-safe: one per thread, then merged.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace flux {

class LogitRanks {
 public:
  // Examples up to which a generator keeps and sorts all logits.
  static constexpr uint64_t kExactMax = 5'000'000;

  explicit LogitRanks(bool exact);
  void add(double logit, bool label);
  void merge(const LogitRanks& other);
  double auc();

 private:
  double sorted_auc();
  double histogram_auc() const;

  bool exact_;
  std::array<std::vector<double>, 2> logits_;
  std::array<std::vector<uint64_t>, 2> histogram_;
};

}  // namespace flux
