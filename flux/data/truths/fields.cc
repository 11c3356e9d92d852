// fields: eight slots whose hidden vectors meet in pairs, as factorization machines suppose:
// logit = bias + sum of w + sum over pairs of slots of v_i . v_j.
#include "flux/data/truths/truths.h"

namespace flux {
namespace {

constexpr size_t kSlots = 8;
constexpr size_t kIds = 300;
constexpr size_t kDim = 4;

class FieldsTruth final : public MadeTruth {
 public:
  FieldsTruth(uint64_t seed, const TruthMoment& moment)
      : keys_(seed, moment, kSlots, kIds),
        weights_(keys_.numbers(1, 1, 0.25)),
        vectors_(keys_.numbers(2, kDim, 0.35)) {}
  std::vector<std::string> labels() const override { return {"label"}; }
  std::string yaml() const override { return numbered_slots_yaml(kSlots); }
  void draw(Random* random, MadeExample* out) const override {
    double logit = -1;
    double sum[kDim] = {};
    double squares = 0;
    for (uint32_t s = 0; s < kSlots; ++s) {
      const auto [row, key] = keys_.pick(random, s, skewed(random, kIds));
      logit += weights_[row];
      for (uint32_t d = 0; d < kDim; ++d) {
        const double v = vectors_[row * kDim + d];
        sum[d] += v;
        squares += v * v;
      }
      put_numbered(&out->features, s, key);
    }
    double pairs = -squares;
    for (const double x : sum) pairs += x * x;
    out->logits = {logit + 0.5 * pairs};
  }

 private:
  HiddenRows keys_;
  std::vector<double> weights_, vectors_;
};

}  // namespace

std::unique_ptr<const MadeTruth> fields_truth(uint64_t seed, const TruthMoment& moment) {
  return std::make_unique<FieldsTruth>(seed, moment);
}

}  // namespace flux
