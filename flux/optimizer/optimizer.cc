#include "flux/optimizer/optimizer.h"

#include "flux/base/cpu.h"
#include "flux/base/text.h"
#include "flux/optimizer/rules.h"
#include "flux/optimizer/settings.h"
#include "flux/optimizer/shaping.h"

namespace flux {
namespace {

class RuleOptimizer : public Optimizer {
 public:
  RuleOptimizer(const Rule& rule, const RuleParams& params, bool wide)
      : rule_(rule), kernels_(wide ? *rule.wide : rule.narrow), params_(params) {}

  size_t state_size(size_t dim) const override { return rule_.state_size(dim); }
  void init_state(float* state, size_t dim) const override {
    rule_.init_state(params_, state, dim);
  }
  void update(float* weights, float* state, const float* gradient, size_t dim,
              float lr_scale) const override {
    if (dim > 0) kernels_.update(scaled(lr_scale), weights, state, gradient, dim);
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

// "> 0", "in [0, 1)", ">= 0", "from -1 to 1"
std::string range_text(const OptimizerSetting& s) {
  if (s.min == 0 && s.max > 1) return s.min_open ? "> 0" : ">= 0";
  return fmt::format("in {}{}, {}{}", s.min_open ? '(' : '[', s.min, s.max, s.max_open ? ')' : ']');
}

Status check_number(const OptimizerSetting& s, float given) {
  const double x = given;
  const bool above = s.min_open ? x > s.min : x >= s.min;
  const bool below = s.max_open ? x < s.max : x <= s.max;
  if (above && below) return Status::ok();
  return invalid("optimizer.{} is {}; it must be a number {}", s.name, given, range_text(s));
}

Status refuse_unused(const OptimizerSetting& setting, const std::string& rule) {
  return invalid("optimizer.{} is not used by the rule {}; it is a setting of {}", setting.name,
                 rule, join(setting.rules(), ", "));
}

Status check_setting(const OptimizerSetting& setting, const OptimizerOptions& o) {
  const bool used = uses_setting(o.rule, setting);
  if (setting.flag != nullptr) {
    return !used && (o.*setting.flag).has_value() ? refuse_unused(setting, o.rule) : Status::ok();
  }
  if (setting.number == nullptr) return used ? check_number(setting, o.lr) : Status::ok();
  const std::optional<float>& given = o.*setting.number;
  if (!given) return Status::ok();
  return used ? check_number(setting, *given) : refuse_unused(setting, o.rule);
}

}  // namespace

const std::vector<std::string>& optimizer_rules() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const Rule* rule : all_rules()) all.emplace_back(rule->name);
    return all;
  }();
  return names;
}

Status check_optimizer_options(const OptimizerOptions& o) {
  const Rule* rule = find_rule(o.rule);
  if (rule == nullptr) {
    return invalid("optimizer.rule '{}' is not known; choose one of {}{}", o.rule,
                   join(optimizer_rules(), ", "), did_you_mean(o.rule, optimizer_rules()));
  }
  for (const OptimizerSetting& setting : optimizer_settings())
    FLUX_RETURN_IF_ERROR(check_setting(setting, o));
  const RuleParams p = resolve_params(o);
  if (rule->divides_by_accumulator && p.initial_accumulator == 0.0F) {
    return invalid("optimizer.initial_accumulator is 0; {} divides by it and needs it above 0",
                   o.rule);
  }
  if (p.weight_min > p.weight_max) {
    return invalid("optimizer.weight_min {} is above optimizer.weight_max {}", p.weight_min,
                   p.weight_max);
  }
  return Status::ok();
}

Result<std::unique_ptr<const Optimizer>> make_optimizer_of_width(const OptimizerOptions& options,
                                                                 KernelWidth width) {
  FLUX_RETURN_IF_ERROR(check_optimizer_options(options));
  const bool wide = width == KernelWidth::kBest ? cpu_has_avx512() : width == KernelWidth::kWide;
  FLUX_CHECK(!wide || cpu_has_avx512(), "AVX-512 kernels asked for on a CPU without AVX-512");
  const Rule& rule = *find_rule(options.rule);
  const RuleParams params = resolve_params(options);
  std::unique_ptr<const Optimizer> made = std::make_unique<const RuleOptimizer>(rule, params, wide);
  if (wants_shaping(params, rule.shaping))
    made = shape_optimizer(std::move(made), params, rule.shaping);
  return {std::move(made)};
}

Result<std::unique_ptr<const Optimizer>> make_optimizer(const OptimizerOptions& options) {
  return make_optimizer_of_width(options, KernelWidth::kBest);
}

}  // namespace flux
