#include "flux/optimizer/shaping.h"

#include <cmath>
#include <utility>
#include <vector>

#include "flux/optimizer/lanes.h"
#include "flux/optimizer/row_sums.h"
#include "flux/optimizer/rules.h"

namespace flux {
namespace {

bool has_terms(const RuleParams& p, Shaping shaping) {
  return shaping == Shaping::kAll && (p.l1 > 0.0F || p.l2 > 0.0F);
}
bool changes_gradient(const RuleParams& p, Shaping shaping) {
  return std::isfinite(p.clip) || std::isfinite(p.clip_norm) || has_terms(p, shaping);
}
bool has_bounds(const RuleParams& p) {
  return std::isfinite(p.weight_min) || std::isfinite(p.weight_max);
}

void clip_values(float bound, const float* gradient, float* out, size_t dim) {
  Narrow::for_lanes(dim, [=](auto part, size_t i) {
    const auto above = larger(part.all(-bound), part.load(gradient + i));
    part.store(out + i, smaller(part.all(bound), above));
  });
}

void clip_to_norm(float bound, float* gradient, size_t dim) {
  const double norm = root_of(sum_of_squares(gradient, dim));
  if (!(norm > static_cast<double>(bound))) return;
  const auto factor = static_cast<float>(static_cast<double>(bound) / norm);
  Narrow::for_lanes(dim, [=](auto part, size_t i) {
    part.store(gradient + i, part.load(gradient + i) * part.all(factor));
  });
}

void add_terms(float l1, float l2, const float* weights, float* gradient, size_t dim) {
  Narrow::for_lanes(dim, [=](auto part, size_t i) {
    const auto w = part.load(weights + i);
    const auto sign = if_positive(w, part.all(l1)) - if_positive(part.all(0.0F) - w, part.all(l1));
    part.store(gradient + i, part.load(gradient + i) + (part.all(l2) * w + sign));
  });
}

void bound_weights(float low, float high, float* weights, size_t dim) {
  Narrow::for_lanes(dim, [=](auto part, size_t i) {
    const auto above = larger(part.all(low), part.load(weights + i));
    part.store(weights + i, smaller(part.all(high), above));
  });
}

class ShapedOptimizer : public Optimizer {
 public:
  ShapedOptimizer(std::unique_ptr<const Optimizer> rule, const RuleParams& params, Shaping shaping)
      : rule_(std::move(rule)),
        params_(params),
        prepares_(changes_gradient(params, shaping)),
        terms_(has_terms(params, shaping)),
        bounds_(has_bounds(params)) {}

  size_t state_size(size_t dim) const override { return rule_->state_size(dim); }
  void init_state(float* state, size_t dim) const override { rule_->init_state(state, dim); }

  void update(float* weights, float* state, const float* gradient, size_t dim,
              float lr_scale) const override {
    rule_->update(weights, state, prepared(weights, gradient, dim), dim, lr_scale);
    if (bounds_) bound_weights(params_.weight_min, params_.weight_max, weights, dim);
  }
  // Row by row, because a repeated row must see what its first update did.
  void update_rows(float* const* rows, const float* gradients, size_t n, size_t dim,
                   float lr_scale) const override {
    for (size_t r = 0; r < n; ++r)
      update(rows[r], rows[r] + dim, gradients + r * dim, dim, lr_scale);
  }

 private:
  const float* prepared(const float* weights, const float* gradient, size_t dim) const {
    if (!prepares_) return gradient;
    thread_local std::vector<float> buffer;
    if (buffer.size() < dim) buffer.resize(dim);
    clip_values(params_.clip, gradient, buffer.data(), dim);
    if (std::isfinite(params_.clip_norm)) clip_to_norm(params_.clip_norm, buffer.data(), dim);
    if (terms_) add_terms(params_.l1, params_.l2, weights, buffer.data(), dim);
    return buffer.data();
  }

  const std::unique_ptr<const Optimizer> rule_;
  const RuleParams params_;
  const bool prepares_;
  const bool terms_;
  const bool bounds_;
};

}  // namespace

bool wants_shaping(const RuleParams& params, Shaping shaping) {
  return changes_gradient(params, shaping) || has_bounds(params);
}

std::unique_ptr<const Optimizer> shape_optimizer(std::unique_ptr<const Optimizer> rule,
                                                 const RuleParams& params, Shaping shaping) {
  return std::make_unique<const ShapedOptimizer>(std::move(rule), params, shaping);
}

}  // namespace flux
