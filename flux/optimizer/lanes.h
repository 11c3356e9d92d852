// Lanes: a few floats handled as one value, so that an update rule is written once for any width.
//
// for_lanes(n, body) covers elements 0..n-1 by calls body(part, i), where `part` loads, stores and
// broadcasts as many floats as it stands for. A body loads from an array before it stores to it.
// Every operation is element-wise IEEE (no FMA, no approximate root or quotient), so all
// widths give the same bits. smaller(a, b) and larger(a, b) give b unless a is strictly smaller or
// larger: a NaN in b stays. if_positive(x, y) is y where x > 0, else 0.
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
  friend F1 smaller(F1 a, F1 b) { return {a.v < b.v ? a.v : b.v}; }
  friend F1 larger(F1 a, F1 b) { return {a.v > b.v ? a.v : b.v}; }
  friend F1 if_positive(F1 x, F1 y) { return {x.v > 0.0F ? y.v : 0.0F}; }
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
  friend F8 smaller(F8 a, F8 b) { return {_mm256_min_ps(a.v, b.v)}; }
  friend F8 larger(F8 a, F8 b) { return {_mm256_max_ps(a.v, b.v)}; }
  friend F8 if_positive(F8 x, F8 y) {
    return {_mm256_and_ps(_mm256_cmp_ps(x.v, _mm256_setzero_ps(), _CMP_GT_OQ), y.v)};
  }
};
struct Whole8 {
  static constexpr size_t kWidth = 8;
  F8 load(const float* p) const { return {_mm256_loadu_ps(p)}; }
  void store(float* p, F8 x) const { _mm256_storeu_ps(p, x.v); }
  F8 all(float x) const { return {_mm256_set1_ps(x)}; }
};

struct F4 {
  __m128 v;
  friend F4 operator+(F4 a, F4 b) { return {_mm_add_ps(a.v, b.v)}; }
  friend F4 operator-(F4 a, F4 b) { return {_mm_sub_ps(a.v, b.v)}; }
  friend F4 operator*(F4 a, F4 b) { return {_mm_mul_ps(a.v, b.v)}; }
  friend F4 operator/(F4 a, F4 b) { return {_mm_div_ps(a.v, b.v)}; }
  friend F4 root(F4 a) { return {_mm_sqrt_ps(a.v)}; }
  friend F4 smaller(F4 a, F4 b) { return {_mm_min_ps(a.v, b.v)}; }
  friend F4 larger(F4 a, F4 b) { return {_mm_max_ps(a.v, b.v)}; }
  friend F4 if_positive(F4 x, F4 y) {
    return {_mm_and_ps(_mm_cmp_ps(x.v, _mm_setzero_ps(), _CMP_GT_OQ), y.v)};
  }
};
struct Whole4 {
  static constexpr size_t kWidth = 4;
  F4 load(const float* p) const { return {_mm_loadu_ps(p)}; }
  void store(float* p, F4 x) const { _mm_storeu_ps(p, x.v); }
  F4 all(float x) const { return {_mm_set1_ps(x)}; }
};

// Two vectors that overlap, for w < n < 2 w floats: the first w and the last w of them. Both are
// loaded before either is stored, so the shared lanes are computed twice from the same inputs and
// stored twice with the same result. (Masked stores would do the same at twice the cost.)
template <typename V>
struct Two {
  V a, b;
  friend Two operator+(Two x, Two y) { return {x.a + y.a, x.b + y.b}; }
  friend Two operator-(Two x, Two y) { return {x.a - y.a, x.b - y.b}; }
  friend Two operator*(Two x, Two y) { return {x.a * y.a, x.b * y.b}; }
  friend Two operator/(Two x, Two y) { return {x.a / y.a, x.b / y.b}; }
  friend Two root(Two x) { return {root(x.a), root(x.b)}; }
  friend Two smaller(Two x, Two y) { return {smaller(x.a, y.a), smaller(x.b, y.b)}; }
  friend Two larger(Two x, Two y) { return {larger(x.a, y.a), larger(x.b, y.b)}; }
  friend Two if_positive(Two x, Two y) { return {if_positive(x.a, y.a), if_positive(x.b, y.b)}; }
};
template <typename V>
Two(V, V) -> Two<V>;  // clang 14 does not deduce it

template <typename Whole>
struct Overlap {
  size_t shift;  // of the second vector
  explicit Overlap(size_t n) : shift(n - Whole::kWidth) {}
  auto load(const float* p) const { return Two{Whole{}.load(p), Whole{}.load(p + shift)}; }
  template <typename V>
  void store(float* p, Two<V> x) const {
    Whole{}.store(p, x.a);
    Whole{}.store(p + shift, x.b);
  }
  auto all(float x) const { return Two{Whole{}.all(x), Whole{}.all(x)}; }
};

// The last n < 16 floats, from i on.
template <typename Body>
[[gnu::always_inline]] inline void for_tail(size_t n, size_t i, const Body& body) {
  if (n > 8) {
    body(Overlap<Whole8>(n), i);
  } else if (n == 8) {
    body(Whole8{}, i);
  } else if (n > 4) {
    body(Overlap<Whole4>(n), i);
  } else if (n == 4) {
    body(Whole4{}, i);
  } else {
    for (size_t end = i + n; i < end; ++i) body(Single{}, i);
  }
}

struct Narrow {
  template <typename Body>
  [[gnu::always_inline]] static inline void for_lanes(size_t n, const Body& body) {
    size_t i = 0;
    for (; i + 16 <= n; i += 8) body(Whole8{}, i);
    for_tail(n - i, i, body);
  }
};

#ifdef __AVX512VL__

struct F16 {
  __m512 v;
  friend F16 operator+(F16 a, F16 b) { return {_mm512_add_ps(a.v, b.v)}; }
  friend F16 operator-(F16 a, F16 b) { return {_mm512_sub_ps(a.v, b.v)}; }
  friend F16 operator*(F16 a, F16 b) { return {_mm512_mul_ps(a.v, b.v)}; }
  friend F16 operator/(F16 a, F16 b) { return {_mm512_div_ps(a.v, b.v)}; }
  // The forms with a mask: the plain ones look uninitialised to GCC 12.
  friend F16 root(F16 a) { return {_mm512_maskz_sqrt_ps(0xffff, a.v)}; }
  friend F16 smaller(F16 a, F16 b) { return {_mm512_maskz_min_ps(0xffff, a.v, b.v)}; }
  friend F16 larger(F16 a, F16 b) { return {_mm512_maskz_max_ps(0xffff, a.v, b.v)}; }
};
struct Whole16 {
  F16 load(const float* p) const { return {_mm512_loadu_ps(p)}; }
  void store(float* p, F16 x) const { _mm512_storeu_ps(p, x.v); }
  F16 all(float x) const { return {_mm512_set1_ps(x)}; }
};

struct Wide {
  template <typename Body>
  [[gnu::always_inline]] static inline void for_lanes(size_t n, const Body& body) {
    size_t i = 0;
    for (; i + 16 <= n; i += 16) body(Whole16{}, i);
    for_tail(n - i, i, body);
  }
};

#endif

}  // namespace
}  // namespace flux
