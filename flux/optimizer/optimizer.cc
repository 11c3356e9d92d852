#include "flux/optimizer/optimizer.h"

#include <array>
#include <cmath>

#include "flux/base/cpu.h"
#include "flux/base/text.h"
#include "flux/optimizer/rules.h"

namespace flux {
namespace {

constexpr std::array<const Rule*, 3> kRules = {&kSgdRule, &kAdagradRule, &kAdamRule};

const Rule* find_rule(const std::string& name) {
  for (const Rule* rule : kRules) {
    if (name == rule->name) return rule;
  }
  return nullptr;
}

class RuleOptimizer : public Optimizer {
 public:
  RuleOptimizer(const Rule& rule, const OptimizerOptions& o, bool wide)
      : rule_(rule),
        kernels_(wide ? *rule.wide : rule.narrow),
        params_{o.lr, o.initial_accumulator, o.epsilon, o.beta1, o.beta2} {}

  size_t state_size(size_t dim) const override { return rule_.state_size(dim); }
  void init_state(float* state, size_t dim) const override {
    rule_.init_state(params_, state, dim);
  }
  void update(float* weights, float* state, const float* gradient, size_t dim,
              float lr_scale) const override {
    kernels_.update(scaled(lr_scale), weights, state, gradient, dim);
  }
  void update_rows(float* const* rows, const float* gradients, size_t n, size_t dim,
                   float lr_scale) const override {
    kernels_.update_rows(scaled(lr_scale), rows, gradients, n, dim);
  }

 private:
  RuleParams scaled(float lr_scale) const {
    RuleParams p = params_;
    p.lr *= lr_scale;
    return p;
  }

  const Rule& rule_;
  const RuleKernels kernels_;
  const RuleParams params_;
};

Status refuse(const char* field, float value, const char* range) {
  return invalid("optimizer.{} is {}; it must be a number {}", field, value, range);
}

}  // namespace

const std::vector<std::string>& optimizer_rules() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const Rule* rule : kRules) all.emplace_back(rule->name);
    return all;
  }();
  return names;
}

Status check_optimizer_options(const OptimizerOptions& o) {
  if (find_rule(o.rule) == nullptr) {
    return invalid("optimizer.rule '{}' is not known; choose one of {}{}", o.rule,
                   join(optimizer_rules(), ", "), did_you_mean(o.rule, optimizer_rules()));
  }
  const auto in = [](float x, float low, float high) { return x >= low && x < high; };
  const float infinity = HUGE_VALF;
  if (!in(o.lr, 0.0F, infinity) || o.lr == 0.0F) return refuse("lr", o.lr, "> 0");
  if (!in(o.initial_accumulator, 0.0F, infinity)) {
    return refuse("initial_accumulator", o.initial_accumulator, ">= 0");
  }
  if (!in(o.epsilon, 0.0F, infinity) || o.epsilon == 0.0F) {
    return refuse("epsilon", o.epsilon, "> 0");
  }
  if (!in(o.beta1, 0.0F, 1.0F)) return refuse("beta1", o.beta1, "in [0, 1)");
  if (!in(o.beta2, 0.0F, 1.0F)) return refuse("beta2", o.beta2, "in [0, 1)");
  return Status::ok();
}

Result<std::unique_ptr<const Optimizer>> make_optimizer_of_width(const OptimizerOptions& options,
                                                                 KernelWidth width) {
  FLUX_RETURN_IF_ERROR(check_optimizer_options(options));
  const bool wide = width == KernelWidth::kBest ? cpu_has_avx512() : width == KernelWidth::kWide;
  FLUX_CHECK(!wide || cpu_has_avx512(), "AVX-512 kernels asked for on a CPU without AVX-512");
  return {std::make_unique<const RuleOptimizer>(*find_rule(options.rule), options, wide)};
}

Result<std::unique_ptr<const Optimizer>> make_optimizer(const OptimizerOptions& options) {
  return make_optimizer_of_width(options, KernelWidth::kBest);
}

}  // namespace flux
