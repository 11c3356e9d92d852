// Sums over a vector that do not depend on the vector width: eight partial sums in double, one for
// each index modulo 8, added up in a fixed order. Products of floats are exact in double.
// In an unnamed namespace, as lanes.h says why. Pure.
#pragma once

#include <cstddef>

#include <immintrin.h>

namespace flux {
namespace {

struct ValueTerm {
  static __m256d of(__m256d x) { return x; }
  static double of(double x) { return x; }
};
struct SquareTerm {
  static __m256d of(__m256d x) { return _mm256_mul_pd(x, x); }
  static double of(double x) { return x * x; }
};

template <typename Term>
inline double ordered_sum(const float* x, size_t n) {
  __m256d low = _mm256_setzero_pd();
  __m256d high = _mm256_setzero_pd();
  size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    low = _mm256_add_pd(low, Term::of(_mm256_cvtps_pd(_mm_loadu_ps(x + i))));
    high = _mm256_add_pd(high, Term::of(_mm256_cvtps_pd(_mm_loadu_ps(x + i + 4))));
  }
  double part[8];
  _mm256_storeu_pd(part, low);
  _mm256_storeu_pd(part + 4, high);
  for (size_t lane = 0; i < n; ++i, ++lane) part[lane] += Term::of(static_cast<double>(x[i]));
  return ((part[0] + part[4]) + (part[2] + part[6])) + ((part[1] + part[5]) + (part[3] + part[7]));
}

inline double sum_of(const float* x, size_t n) {
  return ordered_sum<ValueTerm>(x, n);
}
inline double sum_of_squares(const float* x, size_t n) {
  return ordered_sum<SquareTerm>(x, n);
}
// Without <cmath>, whose functions would be compiled with the flags of wide_kernels.cc.
inline double root_of(double x) {
  const __m128d v = _mm_set_sd(x);
  return _mm_cvtsd_f64(_mm_sqrt_sd(v, v));
}

}  // namespace
}  // namespace flux
