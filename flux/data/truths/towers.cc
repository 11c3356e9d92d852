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
  TowersTruth(uint64_t seed, const TruthMoment& moment)
      : seed_(seed),
        user_keys_(seed, moment, 1, kUsers),
        item_keys_(seed, moment, 1, kItems),
        users_(user_keys_.numbers(8, kDim, 0.3)),
        items_(item_keys_.numbers(9, kDim, 1)) {
    for (size_t row = 0; row < user_keys_.size(); ++row)
      for (uint32_t d = 0; d < kDim; ++d)
        users_[row * kDim + d] +=
            0.8 * hidden_normal(seed, moment, 7, group_of(user_keys_.lasting(row)) * kDim + d);
  }
  std::vector<std::string> labels() const override { return {"label"}; }
  std::string yaml() const override {
    return "data:\n  format: feasign\n  slots:\n    - {name: user}\n    - {name: group}\n"
           "    - {name: item}\n  group: user\n";
  }
  void draw(Random* random, MadeExample* out) const override {
    const HiddenRows::Key user = user_keys_.pick(random, 0, random->below(kUsers));
    const HiddenRows::Key item = item_keys_.pick(random, 0, skewed(random, kItems));
    double product = 0;
    for (uint32_t d = 0; d < kDim; ++d)
      product += users_[user.row * kDim + d] * items_[item.row * kDim + d];
    put_feature(&out->features, "user", user.key);
    put_feature(&out->features, "group", group_of(user.key));
    put_feature(&out->features, "item", item.key);
    out->logits = {-0.7 + product};
  }

 private:
  uint64_t group_of(uint64_t user) const { return hash_pair(seed_, user) % kGroups; }
  uint64_t seed_;
  HiddenRows user_keys_, item_keys_;
  std::vector<double> users_, items_;
};

}  // namespace

std::unique_ptr<const MadeTruth> towers_truth(uint64_t seed, const TruthMoment& moment) {
  return std::make_unique<TowersTruth>(seed, moment);
}

}  // namespace flux
