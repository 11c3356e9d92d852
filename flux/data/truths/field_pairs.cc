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
  explicit FieldPairsTruth(uint64_t seed)
      : vectors_(hidden_normals(seed, 11, kSlots * kIds * kSlots * kDim, 0.6)) {}
  std::vector<std::string> labels() const override { return {"label"}; }
  std::string yaml() const override { return numbered_slots_yaml(kSlots); }
  void draw(Random* random, MadeExample* out) const override {
    uint64_t ids[kSlots];
    for (uint32_t s = 0; s < kSlots; ++s) {
      ids[s] = random->below(kIds);
      put_numbered(&out->features, s, ids[s]);
    }
    double logit = 0;
    for (uint32_t i = 0; i < kSlots; ++i)
      for (uint32_t j = i + 1; j < kSlots; ++j)
        for (uint32_t d = 0; d < kDim; ++d)
          logit += vectors_[at(i, ids[i], j) + d] * vectors_[at(j, ids[j], i) + d];
    out->logits = {logit};
  }

 private:
  // The vector of slot i's key for slot j.
  static size_t at(uint32_t i, uint64_t id, uint32_t j) {
    return ((i * kIds + id) * kSlots + j) * kDim;
  }

  std::vector<double> vectors_;
};

}  // namespace

std::unique_ptr<const MadeTruth> field_pairs_truth(uint64_t seed) {
  return std::make_unique<FieldPairsTruth>(seed);
}

}  // namespace flux
