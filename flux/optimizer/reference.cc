#include "flux/optimizer/reference.h"

#include <cmath>
#include <vector>

#include "flux/optimizer/reference_rules.h"

namespace flux {
namespace {

double norm_of(const std::vector<float>& x) {
  return std::sqrt(reference_sum_of_squares(x.data(), x.size()));
}

// What flux/optimizer/shaping.h says, element by element.
class Reference : public Optimizer {
 public:
  explicit Reference(const OptimizerOptions& options)
      : rule_(reference_rule(options.rule)),
        terms_(find_rule(options.rule)->shaping == Shaping::kAll),
        params_(resolve_params(options)) {}

  size_t state_size(size_t dim) const override { return rule_.state_size(dim); }
  void init_state(float* state, size_t dim) const override {
    rule_.init_state(params_, state, dim);
  }
  void update(float* weights, float* state, const float* gradient, size_t dim,
              float lr_scale) const override {
    std::vector<float> g(gradient, gradient + dim);
    const RuleParams& p = params_;
    for (float& x : g) {
      if (x < -p.clip) x = -p.clip;
      if (x > p.clip) x = p.clip;
    }
    if (const double norm = norm_of(g); norm > static_cast<double>(p.clip_norm)) {
      const auto factor = static_cast<float>(static_cast<double>(p.clip_norm) / norm);
      for (float& x : g) x = x * factor;
    }
    for (size_t i = 0; terms_ && (p.l1 > 0.0F || p.l2 > 0.0F) && i < dim; ++i) {
      const float w = weights[i];
      const float sign = w > 0.0F ? p.l1 : w < 0.0F ? -p.l1 : 0.0F;
      g[i] = g[i] + (p.l2 * w + sign);
    }
    RuleParams scaled = params_;
    scaled.lr = params_.lr * lr_scale;
    rule_.step(scaled, weights, state, g.data(), dim);
    for (size_t i = 0; i < dim; ++i) {
      if (weights[i] < p.weight_min) weights[i] = p.weight_min;
      if (weights[i] > p.weight_max) weights[i] = p.weight_max;
    }
  }
  void update_rows(float* const* rows, const float* gradients, size_t n, size_t dim,
                   float lr_scale) const override {
    for (size_t r = 0; r < n; ++r)
      update(rows[r], rows[r] + dim, gradients + r * dim, dim, lr_scale);
  }

 private:
  const ReferenceRule rule_;
  const bool terms_;
  const RuleParams params_;
};

}  // namespace

std::unique_ptr<const Optimizer> make_reference_optimizer(const OptimizerOptions& options) {
  return std::make_unique<const Reference>(options);
}

}  // namespace flux
