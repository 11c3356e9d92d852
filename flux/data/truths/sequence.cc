// sequence: an item is liked if its hidden category is among those of the user's history: what
// attention over a history can see, and a plain mean of it only in part.
#include <algorithm>

#include "flux/data/truths/truths.h"

namespace flux {
namespace {

constexpr uint64_t kItems = 1000;
constexpr uint64_t kCategories = 40;
constexpr uint64_t kUsers = 2000;

class SequenceTruth final : public MadeTruth {
 public:
  explicit SequenceTruth(uint64_t seed) : category_(kItems), appeal_(kItems) {
    for (uint64_t i = 0; i < kItems; ++i) {
      category_[i] = hash_pair(hash_pair(seed, 3), i) % kCategories;
      appeal_[i] = 0.3 * hidden_normal(seed, 4, i);
    }
  }
  std::vector<std::string> labels() const override { return {"label"}; }
  std::string yaml() const override {
    return "data:\n  format: feasign\n  slots:\n    - {name: user}\n    - {name: item}\n"
           "    - {name: history, keys: item}\n  group: user\n";
  }
  void draw(Random* random, MadeExample* out) const override {
    const uint64_t user = skewed(random, kUsers);
    const uint64_t item = random->below(kItems);
    put_feature(&out->features, "user", user);
    put_feature(&out->features, "item", item);
    const uint64_t length = 5 + random->below(16);
    // Half of the histories touch the item's category; the others may by chance.
    const bool related = random->chance(0.5);
    uint64_t alike = 0;
    for (uint64_t t = 0; t < length; ++t) {
      uint64_t seen = random->below(kItems);
      if (related && random->chance(0.25)) seen = same_category(random, item, seen);
      alike += category_[seen] == category_[item] ? 1 : 0;
      put_feature(&out->features, "history", seen);
    }
    out->logits = {-1.8 + 1.6 * static_cast<double>(std::min<uint64_t>(alike, 3)) + appeal_[item]};
  }

 private:
  uint64_t same_category(Random* random, uint64_t item, uint64_t otherwise) const {
    for (uint64_t tries = 0; tries < 400; ++tries) {
      const uint64_t other = random->below(kItems);
      if (category_[other] == category_[item]) return other;
    }
    return otherwise;
  }
  std::vector<uint64_t> category_;
  std::vector<double> appeal_;
};

}  // namespace

std::unique_ptr<const MadeTruth> sequence_truth(uint64_t seed) {
  return std::make_unique<SequenceTruth>(seed);
}

}  // namespace flux
