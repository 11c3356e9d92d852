// normalise: (x - mean) / deviation of a number.
#include "flux/data/features/feature.h"

namespace flux {
namespace {

class NormaliseKernel final : public FeatureKernel {
 public:
  explicit NormaliseKernel(const FeatureOptions& options)
      : mean_(static_cast<float>(options.mean)),
        scale_(static_cast<float>(1 / options.deviation)) {}
  void make_numbers(const FeatureInput& in, NumberColumn* out) const override {
    *out = *in.numbers[0];
    for (float& x : *out) x = (x - mean_) * scale_;
  }

 private:
  float mean_, scale_;
};

}  // namespace

FeatureDef feature_normalise() {
  FeatureDef def;
  def.name = "normalise";
  def.doc = "(x - `mean`) / `deviation` of a number.";
  def.reads_numbers = def.makes_numbers = true;
  def.settings = {"mean", "deviation"};
  def.problem = [](const FeatureOptions&) -> std::optional<FeatureProblem> { return std::nullopt; };
  def.make = [](const FeatureOptions& options) -> std::unique_ptr<const FeatureKernel> {
    return std::make_unique<NormaliseKernel>(options);
  };
  return def;
}

}  // namespace flux
