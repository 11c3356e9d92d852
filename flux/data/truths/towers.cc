// towers: users and items with hidden vectors, liked by their product: what two towers learn.
#include "flux/data/truths/truths.h"

namespace flux {
namespace {

constexpr uint64_t kUsers = 1000;
constexpr uint64_t kItems = 500;
constexpr uint64_t kGroups = 20;  // of users, which share a taste
constexpr uint32_t kDim = 6;

class TowersTruth final : public MadeTruth {
 public:
  explicit TowersTruth(uint64_t seed) : seed_(seed), users_(kUsers * kDim), items_(kItems * kDim) {
    for (uint64_t u = 0; u < kUsers; ++u)
      for (uint32_t d = 0; d < kDim; ++d)
        users_[u * kDim + d] = 0.8 * hidden_normal(seed, 7, group_of(u) * kDim + d) +
                               0.3 * hidden_normal(seed, 8, u * kDim + d);
    for (size_t i = 0; i < items_.size(); ++i) items_[i] = hidden_normal(seed, 9, i);
  }
  std::vector<std::string> labels() const override { return {"label"}; }
  std::string yaml() const override {
    return "data:\n  format: feasign\n  slots:\n    - {name: user}\n    - {name: group}\n"
           "    - {name: item}\n  group: user\n";
  }
  void draw(Random* random, MadeExample* out) const override {
    const uint64_t user = random->below(kUsers);
    const uint64_t item = skewed(random, kItems);
    double product = 0;
    for (uint32_t d = 0; d < kDim; ++d)
      product += users_[user * kDim + d] * items_[item * kDim + d];
    put_feature(&out->features, "user", user);
    put_feature(&out->features, "group", group_of(user));
    put_feature(&out->features, "item", item);
    out->logits = {-0.7 + product};
  }

 private:
  uint64_t group_of(uint64_t user) const { return hash_pair(seed_, user) % kGroups; }
  uint64_t seed_;
  std::vector<double> users_, items_;
};

}  // namespace

std::unique_ptr<const MadeTruth> towers_truth(uint64_t seed) {
  return std::make_unique<TowersTruth>(seed);
}

}  // namespace flux
