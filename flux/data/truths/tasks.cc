// tasks: a click and a purchase, both decided by the same four hidden sums of the slots f3 to f5,
// but the slots f0 to f2 say how much each of them counts, and where one counts for the click
// another does for the purchase: weights are softmax(c) for the click, softmax(-c) for the
// purchase. That is experts, and a gate over them for each task. One network below both tasks has
// to multiply what it can only add and bend, and a linear one sees the mean of the sums.
#include <array>
#include <cmath>

#include "flux/data/truths/truths.h"

namespace flux {
namespace {

constexpr size_t kContexts = 3;
constexpr size_t kSlots = 6;
constexpr size_t kIds = 50;
constexpr size_t kSums = 4;
using Sums = std::array<double, kSums>;

// The mean of the sums, weighted by softmax(sign * context).
double gated(const Sums& context, double sign, const Sums& sums) {
  double total = 0, mean = 0;
  for (size_t k = 0; k < kSums; ++k) {
    const double weight = std::exp(sign * context[k]);
    total += weight;
    mean += weight * sums[k];
  }
  return mean / total;
}

class TasksTruth final : public MadeTruth {
 public:
  TasksTruth(uint64_t seed, const TruthMoment& moment)
      : keys_(seed, moment, kSlots, kIds), hidden_(keys_.numbers(5, kSums, 1)) {}
  std::vector<std::string> labels() const override { return {"click", "buy"}; }
  std::string yaml() const override {
    return numbered_slots_yaml(kSlots, "  labels: [click, buy]\n");
  }
  void draw(Random* random, MadeExample* out) const override {
    Sums context{}, sums{};
    for (uint32_t s = 0; s < kSlots; ++s) {
      const auto [row, key] = keys_.pick(random, s, skewed(random, kIds));
      for (size_t k = 0; k < kSums; ++k)
        (s < kContexts ? context : sums)[k] += hidden_[row * kSums + k];
      put_numbered(&out->features, s, key);
    }
    for (double& c : context) c *= kSharpness;
    out->logits = {-0.5 + gated(context, 1, sums), -1.0 + gated(context, -1, sums)};
  }

 private:
  static constexpr double kSharpness = 2;

  HiddenRows keys_;
  std::vector<double> hidden_;
};

}  // namespace

std::unique_ptr<const MadeTruth> tasks_truth(uint64_t seed, const TruthMoment& moment) {
  return std::make_unique<TasksTruth>(seed, moment);
}

}  // namespace flux
