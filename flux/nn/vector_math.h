// exp, log, sigmoid, tanh, softplus and the normal distribution in float, branch-free, so that
// loops over them vectorise; relative error about 1e-6 (against double: vector_math_test), of
// normal_below 2e-7 absolute. The overloads in double are the library's, for references. Pure; same
// bits on every CPU.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace flux {

// exp(x); x below -87 counts as -87, above 88 as 88.
inline float exp_of(float x) {
  const float above = x < -87.0F ? -87.0F : x;
  const float limited = above > 88.0F ? 88.0F : above;
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

// log(x) for normal x > 0: exponent and mantissa apart, the latter in [0.75, 1.5) by 2 atanh.
inline float log_of(float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  const auto exponent = static_cast<int32_t>(bits - 0x3f400000U) >> 23;
  const float m = std::bit_cast<float>(bits - (static_cast<uint32_t>(exponent) << 23));
  const float n = static_cast<float>(exponent);
  const float s = (m - 1.0F) / (m + 1.0F);
  const float q = s * s;
  float p = 1.0F / 11.0F;
  p = p * q + 1.0F / 9.0F;
  p = p * q + 1.0F / 7.0F;
  p = p * q + 1.0F / 5.0F;
  p = p * q + 1.0F / 3.0F;
  return n * 0.693359375F + (2.0F * s + (2.0F * s * q * p + n * -2.12194440e-4F));
}

// The probability of a standard normal number below x: half the complementary error function by
// Abramowitz and Stegun 7.1.26, whose error is below 1.5e-7.
inline float normal_below(float x) {
  const float a = std::fabs(x) * 0.70710678F;
  const float t = 1.0F / (1.0F + 0.3275911F * a);
  float p = 1.061405429F;
  p = p * t - 1.453152027F;
  p = p * t + 1.421413741F;
  p = p * t - 0.284496736F;
  p = p * t + 0.254829592F;
  const float tail = 0.5F * p * t * exp_of(-a * a);
  return x < 0 ? tail : 1.0F - tail;
}

inline float sigmoid(float x) {
  const float u = exp_of(-std::fabs(x));
  const float small = u / (1.0F + u);
  return x >= 0 ? 1.0F - small : small;
}

inline float tanh_of(float x) {
  const float a = std::fabs(x);
  const float u = exp_of(-2.0F * a);
  const float far = (1.0F - u) / (1.0F + u);
  const float q = x * x;
  // Near zero the quotient cancels; the series is exact enough there.
  const float near = a * (1.0F + q * (-1.0F / 3.0F + q * (2.0F / 15.0F - q * (17.0F / 315.0F))));
  return std::copysign(a < 0.2F ? near : far, x);
}

// log(1 + exp(x)).
inline float softplus_of(float x) {
  return (x > 0 ? x : 0.0F) + log1p_unit(exp_of(-std::fabs(x)));
}

// In double by the library, for references.
inline double exp_of(double x) {
  return std::exp(x);
}
inline double log_of(double x) {
  return std::log(x);
}
inline double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}
inline double softplus_of(double x) {
  return (x > 0 ? x : 0) + std::log1p(std::exp(-std::fabs(x)));
}

// Loss of logit z against label y: log(1 + exp(z)) - y z, never overflowing.
inline float logistic_loss_of(float z, float y) {
  const float u = exp_of(-std::fabs(z));
  return (z > 0 ? z : 0.0F) - z * y + log1p_unit(u);
}

}  // namespace flux
