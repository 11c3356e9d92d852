// Optimizer: one update rule over a vector of weights with its state beside it.
//
// A sparse row of `dim` weights and a dense shard of n fused weights are the same thing to a rule:
// a vector, its state, a gradient. State starts as init_state() says and is stored, replicated and
// saved next to the weights by whoever owns them.
// Threads: rules are immutable; any thread may call any method on its own rows.
// Bits: the result depends on the inputs alone, never on the CPU's vector width (no implicit FMA,
// element-wise operations and sums in a fixed order only), so replicas and resumed runs agree bit
// for bit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "flux/base/status.h"

namespace flux {

// A setting that is not given has the default of its rule. One that the rule does not use is
// refused if it is given: optimizer/settings.h says which rule uses which, with ranges.
struct OptimizerOptions {
  std::string rule = "adagrad";                // one of optimizer_rules()
  float lr = 0.05F;                            // learning rate, > 0; sum and summary have none
  std::optional<float> initial_accumulator{};  // where the sum of squares starts
  std::optional<float> epsilon{};              // added to the root
  std::optional<float> beta{};                 // ftrl: smooths the first steps
  std::optional<float> beta1{};                // adam: decay of the mean
  std::optional<float> beta2{};                // adam: decay of the square
  std::optional<float> momentum{};             // what is left of the step before
  std::optional<bool> nesterov{};              // momentum: looks one step ahead
  std::optional<float> decay{};                // rmsprop, summary: what is left of the past
  std::optional<float> weight_decay{};         // adamw: w shrinks by lr * weight_decay
  std::optional<float> l1{};                   // gradient term l1 * sign(w); ftrl has its own
  std::optional<float> l2{};                   // gradient term l2 * w; ftrl has its own
  std::optional<float> clip{};                 // bound of each element of the gradient
  std::optional<float> clip_norm{};            // bound of the norm of the vector's gradient
  std::optional<float> weight_min{};           // weights are kept within these after each step
  std::optional<float> weight_max{};
  bool operator==(const OptimizerOptions&) const = default;
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  // Floats of state for a vector of `dim` weights.
  virtual size_t state_size(size_t dim) const = 0;
  virtual void init_state(float* state, size_t dim) const = 0;
  // One step on one vector. The learning rate of this step is lr * lr_scale, rounded to a float; a
  // scale of 1 changes no bit. A rule without a learning rate ignores it.
  virtual void update(float* weights, float* state, const float* gradient, size_t dim,
                      float lr_scale = 1) const = 0;
  // One step on each of n rows; row i is weights[i] (dim floats, its state right behind them) and
  // gradients + i * dim. Equal to n calls of update(); exists so that the call is paid once.
  virtual void update_rows(float* const* rows, const float* gradients, size_t n, size_t dim,
                           float lr_scale = 1) const = 0;
};

// Rules known to make_optimizer, for messages and schemas.
const std::vector<std::string>& optimizer_rules();
// Names what is wrong, what is allowed and, for a setting that the rule does not use, who does.
Status check_optimizer_options(const OptimizerOptions& options);
Result<std::unique_ptr<const Optimizer>> make_optimizer(const OptimizerOptions& options);

}  // namespace flux
