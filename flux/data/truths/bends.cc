// bends: six slots; each key moves two hidden sums up or down, and the label depends on how far
// each sum is from zero, whatever its sign: logit = |a| - |b| and a little of the keys themselves.
// A linear model sees only the latter; pairs of keys see a blurred square.
#include <cmath>

#include "flux/data/truths/truths.h"

namespace flux {
namespace {

constexpr size_t kSlots = 6;
constexpr size_t kIds = 60;

class BendsTruth final : public MadeTruth {
 public:
  BendsTruth(uint64_t seed, const TruthMoment& moment)
      : keys_(seed, moment, kSlots, kIds),
        weights_(keys_.numbers(7, 1, 0.15)),
        first_(keys_.numbers(8, 1, 1)),
        second_(keys_.numbers(9, 1, 1)) {}
  std::vector<std::string> labels() const override { return {"label"}; }
  std::string yaml() const override { return numbered_slots_yaml(kSlots); }
  void draw(Random* random, MadeExample* out) const override {
    double linear = 0, a = 0, b = 0;
    for (uint32_t s = 0; s < kSlots; ++s) {
      const auto [row, key] = keys_.pick(random, s, skewed(random, kIds));
      linear += weights_[row];
      a += first_[row];
      b += second_[row];
      put_numbered(&out->features, s, key);
    }
    out->logits = {linear + std::fabs(a) - std::fabs(b)};
  }

 private:
  HiddenRows keys_;
  std::vector<double> weights_, first_, second_;
};

}  // namespace

std::unique_ptr<const MadeTruth> bends_truth(uint64_t seed, const TruthMoment& moment) {
  return std::make_unique<BendsTruth>(seed, moment);
}

}  // namespace flux
