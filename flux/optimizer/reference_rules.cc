#include "flux/optimizer/reference_rules.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "flux/base/check.h"

namespace flux {
namespace {

using P = RuleParams;

double sum_parts(std::array<double, 8> part) {
  return ((part[0] + part[4]) + (part[2] + part[6])) + ((part[1] + part[5]) + (part[3] + part[7]));
}

size_t none(size_t) {
  return 0;
}
size_t one_each(size_t dim) {
  return dim;
}
size_t two_each(size_t dim) {
  return 2 * dim;
}
size_t two_each_and_powers(size_t dim) {
  return 2 * dim + 2;
}
void start_nothing(const P&, float*, size_t) {}
void start_zero(const P&, float* state, size_t dim) {
  for (size_t i = 0; i < dim; ++i) state[i] = 0.0F;
}
void start_accumulators(const P& p, float* state, size_t dim) {
  for (size_t i = 0; i < dim; ++i) state[i] = p.initial_accumulator;
}
void start_adam(const P&, float* state, size_t dim) {
  for (size_t i = 0; i < 2 * dim; ++i) state[i] = 0.0F;
  state[2 * dim] = state[2 * dim + 1] = 1.0F;
}
void start_ftrl(const P& p, float* state, size_t dim) {
  for (size_t i = 0; i < dim; ++i) state[i] = 0.0F;
  for (size_t i = 0; i < dim; ++i) state[dim + i] = p.initial_accumulator;
}

void sgd(const P& p, float* w, float*, const float* g, size_t dim) {
  for (size_t i = 0; i < dim; ++i) w[i] = w[i] - p.lr * g[i];
}

void momentum(const P& p, float* w, float* v, const float* g, size_t dim) {
  for (size_t i = 0; i < dim; ++i) {
    v[i] = p.momentum * v[i] + g[i];
    w[i] = w[i] - p.lr * (p.nesterov ? g[i] + p.momentum * v[i] : v[i]);
  }
}

void adagrad(const P& p, float* w, float* sum, const float* g, size_t dim) {
  for (size_t i = 0; i < dim; ++i) {
    sum[i] = sum[i] + g[i] * g[i];
    w[i] = w[i] - p.lr * g[i] / (std::sqrt(sum[i]) + p.epsilon);
  }
}

void adagrad_shared(const P& p, float* w, float* sum, const float* g, size_t dim) {
  const double g0 = p.initial_accumulator;
  const auto rate = static_cast<float>(p.lr * std::sqrt(g0 / (g0 + *sum)));
  for (size_t i = 0; i < dim; ++i) w[i] = w[i] - rate * g[i];
  *sum = *sum + static_cast<float>(reference_sum_of_squares(g, dim) / static_cast<double>(dim));
}

struct Corrections {
  float step, epsilon;
};
Corrections advance(const P& p, float* powers) {
  powers[0] = powers[0] * p.beta1;
  powers[1] = powers[1] * p.beta2;
  const double c = std::sqrt(1.0 - static_cast<double>(powers[1]));
  return {static_cast<float>(p.lr * c / (1.0 - static_cast<double>(powers[0]))),
          static_cast<float>(p.epsilon * c)};
}

void adam(const P& p, float* w, float* state, const float* g, size_t dim) {
  float* m = state;
  float* v = state + dim;
  const Corrections c = advance(p, state + 2 * dim);
  for (size_t i = 0; i < dim; ++i) {
    m[i] = p.beta1 * m[i] + (1.0F - p.beta1) * g[i];
    v[i] = p.beta2 * v[i] + (1.0F - p.beta2) * (g[i] * g[i]);
    w[i] = w[i] - c.step * m[i] / (std::sqrt(v[i]) + c.epsilon);
  }
}

void adamw(const P& p, float* w, float* state, const float* g, size_t dim) {
  const float kept = 1.0F - p.lr * p.weight_decay;
  for (size_t i = 0; i < dim; ++i) w[i] = w[i] * kept;
  adam(p, w, state, g, dim);
}

void adam_shared(const P& p, float* w, float* state, const float* g, size_t dim) {
  const Corrections c = advance(p, state + 2);
  const float m = p.beta1 * state[0];
  const float v = p.beta2 * state[1];
  for (size_t i = 0; i < dim; ++i) {
    const float mean = m + (1.0F - p.beta1) * g[i];
    const float square = v + (1.0F - p.beta2) * (g[i] * g[i]);
    w[i] = w[i] - c.step * mean / (std::sqrt(square) + c.epsilon);
  }
  const auto n = static_cast<double>(dim);
  state[0] = m + (1.0F - p.beta1) * static_cast<float>(reference_sum(g, dim) / n);
  state[1] = v + (1.0F - p.beta2) * static_cast<float>(reference_sum_of_squares(g, dim) / n);
}

// Advances z and n of one element.
void advance_ftrl(const P& p, float w, float* z, float* n, float g) {
  const float before = *n;
  *n = before + g * g;
  const float sigma = (std::sqrt(*n) - std::sqrt(before)) / p.lr;
  *z = *z + (g - sigma * w);
}
float ftrl_below(const P& p, float n) {
  return (p.beta + std::sqrt(n)) / p.lr + p.l2;
}

void ftrl(const P& p, float* w, float* z, const float* g, size_t dim) {
  float* n = z + dim;
  for (size_t i = 0; i < dim; ++i) {
    advance_ftrl(p, w[i], &z[i], &n[i], g[i]);
    const float below = ftrl_below(p, n[i]);
    if (z[i] > p.l1) {
      w[i] = (p.l1 - z[i]) / below;
    } else if (z[i] < -p.l1) {
      w[i] = (-p.l1 - z[i]) / below;
    } else {
      w[i] = (z[i] - z[i]) / below;  // zero, unless z is no number
    }
  }
}

void group_ftrl(const P& p, float* w, float* z, const float* g, size_t dim) {
  float* n = z + dim;
  for (size_t i = 0; i < dim; ++i) advance_ftrl(p, w[i], &z[i], &n[i], g[i]);
  const double norm = std::sqrt(reference_sum_of_squares(z, dim));
  const double limit = static_cast<double>(p.l1) * std::sqrt(static_cast<double>(dim));
  const float kept = norm <= limit ? 0.0F : static_cast<float>(1.0 - limit / norm);
  for (size_t i = 0; i < dim; ++i) w[i] = (0.0F - z[i] * kept) / ftrl_below(p, n[i]);
}

void rmsprop(const P& p, float* w, float* v, const float* g, size_t dim) {
  for (size_t i = 0; i < dim; ++i) {
    v[i] = p.decay * v[i] + (1.0F - p.decay) * (g[i] * g[i]);
    w[i] = w[i] - p.lr * g[i] / (std::sqrt(v[i]) + p.epsilon);
  }
}

void sum(const P&, float* w, float*, const float* g, size_t dim) {
  for (size_t i = 0; i < dim; ++i) w[i] = w[i] + g[i];
}

void summary(const P& p, float* w, float*, const float* g, size_t dim) {
  for (size_t i = 0; i < dim; ++i) w[i] = p.decay * w[i] + g[i];
}

constexpr ReferenceRule kRules[] = {
    {"sgd", none, start_nothing, sgd},
    {"momentum", one_each, start_zero, momentum},
    {"adagrad", one_each, start_accumulators, adagrad},
    {"adagrad_shared", [](size_t) { return size_t{1}; },
     [](const P&, float* state, size_t) { *state = 0.0F; }, adagrad_shared},
    {"adam", two_each_and_powers, start_adam, adam},
    {"adam_shared", [](size_t) { return size_t{4}; },
     [](const P&, float* state, size_t) {
       state[0] = state[1] = 0.0F;
       state[2] = state[3] = 1.0F;
     },
     adam_shared},
    {"adamw", two_each_and_powers, start_adam, adamw},
    {"ftrl", two_each, start_ftrl, ftrl},
    {"group_ftrl", two_each, start_ftrl, group_ftrl},
    {"rmsprop", one_each, start_zero, rmsprop},
    {"sum", none, start_nothing, sum},
    {"summary", none, start_nothing, summary},
};

}  // namespace

double reference_sum(const float* x, size_t n) {
  std::array<double, 8> part{};
  for (size_t i = 0; i < n; ++i) part[i % 8] += static_cast<double>(x[i]);
  return sum_parts(part);
}

double reference_sum_of_squares(const float* x, size_t n) {
  std::array<double, 8> part{};
  for (size_t i = 0; i < n; ++i) part[i % 8] += static_cast<double>(x[i]) * x[i];
  return sum_parts(part);
}

const ReferenceRule& reference_rule(std::string_view name) {
  const auto* found = std::find_if(std::begin(kRules), std::end(kRules),
                                   [&](const ReferenceRule& rule) { return name == rule.name; });
  FLUX_CHECK(found != std::end(kRules), "no reference for the rule '{}'", name);
  return *found;
}

}  // namespace flux
