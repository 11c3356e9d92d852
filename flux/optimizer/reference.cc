#include "flux/optimizer/reference.h"

#include <cmath>

#include "flux/base/check.h"

namespace flux {
namespace {

class Reference : public Optimizer {
 public:
  explicit Reference(const OptimizerOptions& options) : o_(options) {}

  void update_rows(float* const* rows, const float* gradients, size_t n, size_t dim,
                   float lr_scale) const override {
    for (size_t r = 0; r < n; ++r)
      update(rows[r], rows[r] + dim, gradients + r * dim, dim, lr_scale);
  }

 protected:
  const OptimizerOptions o_;
};

class ReferenceSgd : public Reference {
 public:
  using Reference::Reference;
  size_t state_size(size_t /*dim*/) const override { return 0; }
  void init_state(float* /*state*/, size_t /*dim*/) const override {}
  void update(float* weights, float* /*state*/, const float* gradient, size_t dim,
              float lr_scale) const override {
    const float lr = o_.lr * lr_scale;
    for (size_t i = 0; i < dim; ++i) weights[i] = weights[i] - lr * gradient[i];
  }
};

class ReferenceAdagrad : public Reference {
 public:
  using Reference::Reference;
  size_t state_size(size_t dim) const override { return dim; }
  void init_state(float* state, size_t dim) const override {
    for (size_t i = 0; i < dim; ++i) state[i] = o_.initial_accumulator;
  }
  void update(float* weights, float* state, const float* gradient, size_t dim,
              float lr_scale) const override {
    const float lr = o_.lr * lr_scale;
    for (size_t i = 0; i < dim; ++i) {
      state[i] = state[i] + gradient[i] * gradient[i];
      weights[i] = weights[i] - lr * gradient[i] / (std::sqrt(state[i]) + o_.epsilon);
    }
  }
};

class ReferenceAdam : public Reference {
 public:
  using Reference::Reference;
  size_t state_size(size_t dim) const override { return 2 * dim + 2; }
  void init_state(float* state, size_t dim) const override {
    for (size_t i = 0; i < 2 * dim; ++i) state[i] = 0.0F;
    state[2 * dim] = 1.0F;
    state[2 * dim + 1] = 1.0F;
  }
  void update(float* weights, float* state, const float* gradient, size_t dim,
              float lr_scale) const override {
    const float lr = o_.lr * lr_scale;
    float* m = state;
    float* v = state + dim;
    float* power = state + 2 * dim;
    power[0] = power[0] * o_.beta1;
    power[1] = power[1] * o_.beta2;
    const double c = std::sqrt(1.0 - static_cast<double>(power[1]));
    const auto step =
        static_cast<float>(static_cast<double>(lr) * c / (1.0 - static_cast<double>(power[0])));
    const auto epsilon = static_cast<float>(static_cast<double>(o_.epsilon) * c);
    for (size_t i = 0; i < dim; ++i) {
      const float g = gradient[i];
      m[i] = o_.beta1 * m[i] + (1.0F - o_.beta1) * g;
      v[i] = o_.beta2 * v[i] + (1.0F - o_.beta2) * (g * g);
      weights[i] = weights[i] - step * m[i] / (std::sqrt(v[i]) + epsilon);
    }
  }
};

}  // namespace

std::unique_ptr<const Optimizer> make_reference_optimizer(const OptimizerOptions& options) {
  if (options.rule == "sgd") return std::make_unique<const ReferenceSgd>(options);
  if (options.rule == "adagrad") return std::make_unique<const ReferenceAdagrad>(options);
  FLUX_CHECK(options.rule == "adam", "no reference for the rule '{}'", options.rule);
  return std::make_unique<const ReferenceAdam>(options);
}

}  // namespace flux
