// log1p: log(1 + max(x, 0)) of a number.
#include "flux/data/log1p.h"

#include "flux/data/features/feature.h"

namespace flux {
namespace {

class Log1pKernel final : public FeatureKernel {
 public:
  void make_numbers(const FeatureInput& in, NumberColumn* out) const override {
    *out = *in.numbers[0];
    log1p_relu(*out);
  }
};

}  // namespace

FeatureDef feature_log1p() {
  FeatureDef def;
  def.name = "log1p";
  def.doc = "log(1 + max(x, 0)) of a number.";
  def.reads_numbers = def.makes_numbers = true;
  def.problem = [](const FeatureOptions&) -> std::optional<FeatureProblem> { return std::nullopt; };
  def.make = [](const FeatureOptions&) -> std::unique_ptr<const FeatureKernel> {
    return std::make_unique<Log1pKernel>();
  };
  return def;
}

}  // namespace flux
