// clip: a number no smaller than `min` and no larger than `max`.
#include <algorithm>

#include <fmt/format.h>

#include "flux/data/features/feature.h"

namespace flux {
namespace {

class ClipKernel final : public FeatureKernel {
 public:
  explicit ClipKernel(const FeatureOptions& options)
      : min_(static_cast<float>(options.min)), max_(static_cast<float>(options.max)) {}
  void make_numbers(const FeatureInput& in, NumberColumn* out) const override {
    *out = *in.numbers[0];
    for (float& x : *out) x = std::min(std::max(x, min_), max_);
  }

 private:
  float min_, max_;
};

std::optional<FeatureProblem> problem(const FeatureOptions& options) {
  if (options.min < options.max) return std::nullopt;
  return FeatureProblem{"min",
                        fmt::format("min ({}) must be below max ({})", options.min, options.max)};
}

}  // namespace

FeatureDef feature_clip() {
  FeatureDef def;
  def.name = "clip";
  def.doc = "A number kept between `min` and `max`.";
  def.reads_numbers = def.makes_numbers = true;
  def.settings = {"min", "max"};
  def.problem = problem;
  def.make = [](const FeatureOptions& options) -> std::unique_ptr<const FeatureKernel> {
    return std::make_unique<ClipKernel>(options);
  };
  return def;
}

}  // namespace flux
