// tasks: a click and a purchase that want opposite things of the same features, so that one shared
// network serves neither as well as experts with a gate for each.
#include "flux/data/truths/truths.h"

namespace flux {
namespace {

constexpr size_t kSlots = 6;
constexpr size_t kIds = 200;

class TasksTruth final : public MadeTruth {
 public:
  TasksTruth(uint64_t seed, const TruthMoment& moment)
      : keys_(seed, moment, kSlots, kIds),
        first_(keys_.numbers(5, 1, 0.6)),
        second_(keys_.numbers(6, 1, 0.6)) {}
  std::vector<std::string> labels() const override { return {"click", "buy"}; }
  std::string yaml() const override {
    return numbered_slots_yaml(kSlots, "  labels: [click, buy]\n");
  }
  void draw(Random* random, MadeExample* out) const override {
    double a = 0, b = 0;
    for (uint32_t s = 0; s < kSlots; ++s) {
      const auto [row, key] = keys_.pick(random, s, skewed(random, kIds));
      a += first_[row];
      b += second_[row];
      put_numbered(&out->features, s, key);
    }
    out->logits = {-0.5 + a + 0.5 * a * b, -1.5 - 0.7 * a + b};
  }

 private:
  HiddenRows keys_;
  std::vector<double> first_, second_;
};

}  // namespace

std::unique_ptr<const MadeTruth> tasks_truth(uint64_t seed, const TruthMoment& moment) {
  return std::make_unique<TasksTruth>(seed, moment);
}

}  // namespace flux
