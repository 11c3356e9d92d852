// Optimizer: one update rule over a vector of weights with its state beside it.
//
// A sparse row of `dim` weights and a dense shard of n fused weights are the same thing to a rule:
// a vector, its state, a gradient. State starts as init_state() says and is stored, replicated and
// saved next to the weights by whoever owns them.
// Threads: rules are immutable; any thread may call any method on its own rows.
// Bits: the result depends on the inputs alone, never on the CPU's vector width (no implicit FMA,
// element-wise operations only), so replicas and resumed runs agree bit for bit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "flux/base/status.h"

namespace flux {

struct OptimizerOptions {
  std::string rule = "adagrad";      // sgd | adagrad | adam
  float lr = 0.05F;                  // learning rate, > 0
  float initial_accumulator = 0.0F;  // adagrad: where the sum of squares starts, >= 0
  float epsilon = 1e-8F;             // adagrad, adam: added to the root, > 0
  float beta1 = 0.9F;                // adam: decay of the mean, [0, 1)
  float beta2 = 0.999F;              // adam: decay of the square, [0, 1)
  bool operator==(const OptimizerOptions&) const = default;
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  // Floats of state for a vector of `dim` weights.
  virtual size_t state_size(size_t dim) const = 0;
  virtual void init_state(float* state, size_t dim) const = 0;
  // One step on one vector. The learning rate of this step is lr * lr_scale, rounded to a float; a
  // scale of 1 changes no bit.
  virtual void update(float* weights, float* state, const float* gradient, size_t dim,
                      float lr_scale = 1) const = 0;
  // One step on each of n rows; row i is weights[i] (dim floats, its state right behind them) and
  // gradients + i * dim. Equal to n calls of update(); exists so that the call is paid once.
  virtual void update_rows(float* const* rows, const float* gradients, size_t n, size_t dim,
                           float lr_scale = 1) const = 0;
};

// Rules known to make_optimizer, for messages and schemas.
const std::vector<std::string>& optimizer_rules();
Result<std::unique_ptr<const Optimizer>> make_optimizer(const OptimizerOptions& options);

}  // namespace flux
