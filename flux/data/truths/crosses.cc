// crosses: six slots in two groups of three; each key has a hidden vector, and those of a group are
// multiplied three at a time, element by element: logit = sum over groups and elements of x y z and
// a little of x y. Models of single keys see nothing of it, models of pairs the little.
#include "flux/data/truths/truths.h"

namespace flux {
namespace {

constexpr size_t kGroups = 2;
constexpr size_t kInGroup = 3;
constexpr size_t kSlots = kGroups * kInGroup;
constexpr size_t kIds = 30;
constexpr size_t kDim = 3;

class CrossesTruth final : public MadeTruth {
 public:
  CrossesTruth(uint64_t seed, const TruthMoment& moment)
      : keys_(seed, moment, kSlots, kIds), vectors_(keys_.numbers(10, kDim, 1.0)) {}
  std::vector<std::string> labels() const override { return {"label"}; }
  std::string yaml() const override { return numbered_slots_yaml(kSlots); }
  void draw(Random* random, MadeExample* out) const override {
    double logit = 0;
    for (uint32_t g = 0; g < kGroups; ++g) {
      const double* of[kInGroup];
      for (uint32_t i = 0; i < kInGroup; ++i) {
        const uint32_t slot = g * kInGroup + i;
        const auto [row, key] = keys_.pick(random, slot, random->below(kIds));
        of[i] = vectors_.data() + row * kDim;
        put_numbered(&out->features, slot, key);
      }
      for (uint32_t d = 0; d < kDim; ++d) {
        const double x = of[0][d], y = of[1][d], z = of[2][d];
        logit += 0.9 * x * y * z + 0.3 * (x * y + y * z);
      }
    }
    out->logits = {logit};
  }

 private:
  HiddenRows keys_;
  std::vector<double> vectors_;
};

}  // namespace

std::unique_ptr<const MadeTruth> crosses_truth(uint64_t seed, const TruthMoment& moment) {
  return std::make_unique<CrossesTruth>(seed, moment);
}

}  // namespace flux
