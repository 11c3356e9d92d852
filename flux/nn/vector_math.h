// exp, sigmoid, tanh and softplus in float, branch-free, so that loops over them vectorise;
// relative error about 1e-6 (against double: vector_math_test). Pure; same bits on every CPU.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace flux {

// exp(x) for x <= 0 (what the functions below need); flushes to about 1e-38 below -87.
inline float exp_negative(float x) {
  const float limited = x < -87.0F ? -87.0F : x;
  constexpr float kRound = 12582912.0F;  // 1.5 * 2^23: adding it rounds to an integer
  const float shifted = limited * 1.44269504F + kRound;
  const float n = shifted - kRound;
  const float r = (limited - n * 0.693359375F) - n * -2.12194440e-4F;
  float p = 1.0F / 5040.0F;
  p = p * r + 1.0F / 720.0F;
  p = p * r + 1.0F / 120.0F;
  p = p * r + 1.0F / 24.0F;
  p = p * r + 1.0F / 6.0F;
  p = p * r + 0.5F;
  p = p * r + 1.0F;
  p = p * r + 1.0F;
  const auto exponent = std::bit_cast<uint32_t>(shifted) - std::bit_cast<uint32_t>(kRound);
  return std::bit_cast<float>(std::bit_cast<uint32_t>(p) + (exponent << 23));
}

// log(1 + u) for u in [0, 1], by 2 atanh(u / (2 + u)).
inline float log1p_unit(float u) {
  const float s = u / (2.0F + u);
  const float q = s * s;
  float p = 1.0F / 13.0F;
  p = p * q + 1.0F / 11.0F;
  p = p * q + 1.0F / 9.0F;
  p = p * q + 1.0F / 7.0F;
  p = p * q + 1.0F / 5.0F;
  p = p * q + 1.0F / 3.0F;
  p = p * q + 1.0F;
  return 2.0F * s * p;
}

inline float sigmoid(float x) {
  const float u = exp_negative(-std::fabs(x));
  const float small = u / (1.0F + u);
  return x >= 0 ? 1.0F - small : small;
}

inline float tanh_of(float x) {
  const float a = std::fabs(x);
  const float u = exp_negative(-2.0F * a);
  const float far = (1.0F - u) / (1.0F + u);
  const float q = x * x;
  // Near zero the quotient cancels; the series is exact enough there.
  const float near = a * (1.0F + q * (-1.0F / 3.0F + q * (2.0F / 15.0F - q * (17.0F / 315.0F))));
  return std::copysign(a < 0.2F ? near : far, x);
}

// log(1 + exp(x)).
inline float softplus_of(float x) {
  return (x > 0 ? x : 0.0F) + log1p_unit(exp_negative(-std::fabs(x)));
}

// In double by the library, for references.
inline double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}
inline double softplus_of(double x) {
  return (x > 0 ? x : 0) + std::log1p(std::exp(-std::fabs(x)));
}

// Loss of logit z against label y: log(1 + exp(z)) - y z, never overflowing.
inline float logistic_loss_of(float z, float y) {
  const float u = exp_negative(-std::fabs(z));
  return (z > 0 ? z : 0.0F) - z * y + log1p_unit(u);
}

}  // namespace flux
