// sequence: an item is liked if its hidden category is among those of the user's history: what
// attention over a history can see, and a plain mean of it only in part. Where the truth drifts, an
// item moves to another category once in a quarter turn, each at its own moment.
#include <algorithm>
#include <numbers>

#include "flux/data/truths/truths.h"

namespace flux {
namespace {

constexpr uint64_t kItems = 1000;
constexpr uint64_t kCategories = 40;
constexpr uint64_t kUsers = 2000;

class SequenceTruth final : public MadeTruth {
 public:
  SequenceTruth(uint64_t seed, const TruthMoment& moment)
      : users_(seed, moment, 1, kUsers),
        items_(seed, moment, 1, kItems),
        appeal_(items_.numbers(4, 1, 0.3)) {
    for (size_t row = 0; row < items_.size(); ++row)
      category_.push_back(category_at(seed, moment.angle, items_.lasting(row)));
  }
  std::vector<std::string> labels() const override { return {"label"}; }
  std::string yaml() const override {
    return "data:\n  format: feasign\n  slots:\n    - {name: user}\n    - {name: item}\n"
           "    - {name: history, keys: item}\n  group: user\n";
  }
  void draw(Random* random, MadeExample* out) const override {
    const HiddenRows::Key user = users_.pick(random, 0, skewed(random, kUsers));
    const HiddenRows::Key item = any_item(random);
    put_feature(&out->features, "user", user.key);
    put_feature(&out->features, "item", item.key);
    const uint64_t length = 5 + random->below(16);
    // Half of the histories touch the item's category; the others may by chance.
    const bool related = random->chance(0.5);
    uint64_t alike = 0;
    for (uint64_t t = 0; t < length; ++t) {
      HiddenRows::Key seen = any_item(random);
      if (related && random->chance(0.25)) seen = same_category(random, item, seen);
      alike += category_[seen.row] == category_[item.row] ? 1 : 0;
      put_feature(&out->features, "history", seen.key);
    }
    out->logits = {-1.8 + 1.6 * static_cast<double>(std::min<uint64_t>(alike, 3)) +
                   appeal_[item.row]};
  }

 private:
  static uint64_t category_at(uint64_t seed, double angle, uint64_t item) {
    const uint64_t first = hash_pair(hash_pair(seed, 3), item);
    const auto moves = static_cast<uint64_t>(angle / (std::numbers::pi / 2) +
                                             static_cast<double>(hash_uniform(item, seed, 3)));
    return (moves == 0 ? first : hash_pair(first, moves)) % kCategories;
  }
  HiddenRows::Key any_item(Random* random) const {
    return items_.pick(random, 0, random->below(kItems));
  }
  HiddenRows::Key same_category(Random* random, const HiddenRows::Key& item,
                                const HiddenRows::Key& otherwise) const {
    for (uint64_t tries = 0; tries < 400; ++tries) {
      const HiddenRows::Key other = any_item(random);
      if (category_[other.row] == category_[item.row]) return other;
    }
    return otherwise;
  }

  HiddenRows users_, items_;
  std::vector<double> appeal_;
  std::vector<uint64_t> category_;
};

}  // namespace

std::unique_ptr<const MadeTruth> sequence_truth(uint64_t seed, const TruthMoment& moment) {
  return std::make_unique<SequenceTruth>(seed, moment);
}

}  // namespace flux
