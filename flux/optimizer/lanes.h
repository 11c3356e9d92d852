// Lanes: a few floats handled as one value, so that an update rule is written once for any width.
//
// for_lanes(n, body) covers elements 0..n-1 by calls body(part, i), where `part` loads, stores and
// broadcasts as many floats as it stands for. AVX2 ends with single floats, AVX-512 with a masked
// vector. Every operation is element-wise IEEE (no FMA, no approximate root or quotient), so all
// widths give the same bits.
// Everything is in an unnamed namespace: each file compiles its own copy with its own flags.
#pragma once

#include <cstddef>

#include <immintrin.h>

namespace flux {
namespace {

struct F1 {
  float v;
  friend F1 operator+(F1 a, F1 b) { return {a.v + b.v}; }
  friend F1 operator-(F1 a, F1 b) { return {a.v - b.v}; }
  friend F1 operator*(F1 a, F1 b) { return {a.v * b.v}; }
  friend F1 operator/(F1 a, F1 b) { return {a.v / b.v}; }
  friend F1 root(F1 a) { return {_mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(a.v)))}; }
};
struct Single {
  F1 load(const float* p) const { return {*p}; }
  void store(float* p, F1 x) const { *p = x.v; }
  F1 all(float x) const { return {x}; }
};

struct F8 {
  __m256 v;
  friend F8 operator+(F8 a, F8 b) { return {_mm256_add_ps(a.v, b.v)}; }
  friend F8 operator-(F8 a, F8 b) { return {_mm256_sub_ps(a.v, b.v)}; }
  friend F8 operator*(F8 a, F8 b) { return {_mm256_mul_ps(a.v, b.v)}; }
  friend F8 operator/(F8 a, F8 b) { return {_mm256_div_ps(a.v, b.v)}; }
  friend F8 root(F8 a) { return {_mm256_sqrt_ps(a.v)}; }
};
struct Whole8 {
  F8 load(const float* p) const { return {_mm256_loadu_ps(p)}; }
  void store(float* p, F8 x) const { _mm256_storeu_ps(p, x.v); }
  F8 all(float x) const { return {_mm256_set1_ps(x)}; }
};

struct Narrow {
  template <typename Body>
  static void for_lanes(size_t n, const Body& body) {
    size_t i = 0;
    for (; i + 8 <= n; i += 8) body(Whole8{}, i);
    for (; i < n; ++i) body(Single{}, i);
  }
};

#ifdef __AVX512VL__

struct F16 {
  __m512 v;
  friend F16 operator+(F16 a, F16 b) { return {_mm512_add_ps(a.v, b.v)}; }
  friend F16 operator-(F16 a, F16 b) { return {_mm512_sub_ps(a.v, b.v)}; }
  friend F16 operator*(F16 a, F16 b) { return {_mm512_mul_ps(a.v, b.v)}; }
  friend F16 operator/(F16 a, F16 b) { return {_mm512_div_ps(a.v, b.v)}; }
  // The form with a mask: the plain one looks uninitialised to GCC 12.
  friend F16 root(F16 a) { return {_mm512_maskz_sqrt_ps(0xffff, a.v)}; }
};
struct Whole16 {
  F16 load(const float* p) const { return {_mm512_loadu_ps(p)}; }
  void store(float* p, F16 x) const { _mm512_storeu_ps(p, x.v); }
  F16 all(float x) const { return {_mm512_set1_ps(x)}; }
};
// Lanes outside the mask are loaded as 0 and not stored.
struct Part16 {
  __mmask16 mask;
  F16 load(const float* p) const { return {_mm512_maskz_loadu_ps(mask, p)}; }
  void store(float* p, F16 x) const { _mm512_mask_storeu_ps(p, mask, x.v); }
  F16 all(float x) const { return {_mm512_set1_ps(x)}; }
};
struct Part8 {
  __mmask8 mask;
  F8 load(const float* p) const { return {_mm256_maskz_loadu_ps(mask, p)}; }
  void store(float* p, F8 x) const { _mm256_mask_storeu_ps(p, mask, x.v); }
  F8 all(float x) const { return {_mm256_set1_ps(x)}; }
};

struct Wide {
  template <typename Body>
  static void for_lanes(size_t n, const Body& body) {
    size_t i = 0;
    for (; i + 16 <= n; i += 16) body(Whole16{}, i);
    const size_t left = n - i;
    if (left > 8) {
      body(Part16{static_cast<__mmask16>((1U << left) - 1)}, i);
    } else if (left == 8) {
      body(Whole8{}, i);
    } else if (left > 1) {
      body(Part8{static_cast<__mmask8>((1U << left) - 1)}, i);
    } else if (left == 1) {
      body(Single{}, i);
    }
  }
};

#endif

}  // namespace
}  // namespace flux
