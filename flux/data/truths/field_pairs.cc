// field_pairs: six slots; a key has another hidden vector for each slot that it meets, as
// field-aware factorization machines suppose: logit = sum over pairs of slots of v_ij . v_ji. One
// vector per key is too few for it.
#include "flux/data/truths/truths.h"

namespace flux {
namespace {

constexpr size_t kSlots = 6;
constexpr size_t kIds = 40;
constexpr size_t kDim = 2;

class FieldPairsTruth final : public MadeTruth {
 public:
  FieldPairsTruth(uint64_t seed, const TruthMoment& moment)
      : keys_(seed, moment, kSlots, kIds), vectors_(keys_.numbers(11, kSlots * kDim, 0.6)) {}
  std::vector<std::string> labels() const override { return {"label"}; }
  std::string yaml() const override { return numbered_slots_yaml(kSlots); }
  void draw(Random* random, MadeExample* out) const override {
    size_t rows[kSlots];
    for (uint32_t s = 0; s < kSlots; ++s) {
      const auto [row, key] = keys_.pick(random, s, random->below(kIds));
      rows[s] = row;
      put_numbered(&out->features, s, key);
    }
    double logit = 0;
    for (uint32_t i = 0; i < kSlots; ++i)
      for (uint32_t j = i + 1; j < kSlots; ++j)
        for (uint32_t d = 0; d < kDim; ++d)
          logit += vectors_[at(rows[i], j) + d] * vectors_[at(rows[j], i) + d];
    out->logits = {logit};
  }

 private:
  // The vector of a row for the slot that it meets.
  static size_t at(size_t row, uint32_t slot) { return (row * kSlots + slot) * kDim; }

  HiddenRows keys_;
  std::vector<double> vectors_;
};

}  // namespace

std::unique_ptr<const MadeTruth> field_pairs_truth(uint64_t seed, const TruthMoment& moment) {
  return std::make_unique<FieldPairsTruth>(seed, moment);
}

}  // namespace flux
