// column_kernels.h for numbers of 4 and of 2 bytes. Includes nothing that defines shared inline
// functions.
#include <immintrin.h>

#include "flux/nn/column_kernels.h"

namespace flux {
namespace {

struct Words {  // fp32
  using Element = uint32_t;
  using Mask = __mmask16;
  static constexpr uint32_t kLanes = 16;
  static Mask bits(const uint32_t* live, uint32_t v) {
    return static_cast<Mask>(live[v / 2] >> (v % 2 * 16));
  }
  static Mask nonzero(__m512i x) {  // -0 counts as 0
    return _mm512_test_epi32_mask(x, _mm512_set1_epi32(0x7fffffff));
  }
  static __m512i squeeze(Mask m, __m512i x) { return _mm512_maskz_compress_epi32(m, x); }
  static __m512i spread(Mask m, __m512i x) { return _mm512_maskz_expand_epi32(m, x); }
  static __m512i load(Mask m, const void* from) { return _mm512_maskz_loadu_epi32(m, from); }
  static void store(void* to, Mask m, __m512i x) { _mm512_mask_storeu_epi32(to, m, x); }
};

struct Halves {  // bf16
  using Element = uint16_t;
  using Mask = __mmask32;
  static constexpr uint32_t kLanes = 32;
  static Mask bits(const uint32_t* live, uint32_t v) { return live[v]; }
  static Mask nonzero(__m512i x) { return _mm512_test_epi16_mask(x, _mm512_set1_epi16(0x7fff)); }
  static __m512i squeeze(Mask m, __m512i x) { return _mm512_maskz_compress_epi16(m, x); }
  static __m512i spread(Mask m, __m512i x) { return _mm512_maskz_expand_epi16(m, x); }
  static __m512i load(Mask m, const void* from) { return _mm512_maskz_loadu_epi16(m, from); }
  static void store(void* to, Mask m, __m512i x) { _mm512_mask_storeu_epi16(to, m, x); }
};

template <typename T>
typename T::Mask first_lanes(uint32_t n) {
  const uint32_t all = T::kLanes == 32 ? 0xffffffffU : 0xffffU;
  return static_cast<typename T::Mask>(n >= T::kLanes ? all : (1U << n) - 1U);
}

constexpr uint32_t kAtOnce = 8;  // vectors of a row whose marks are held in registers

template <typename T>
void mark(const void* from, size_t stride, uint32_t rows, uint32_t width, uint32_t* live) {
  const uint32_t vectors = (width + T::kLanes - 1) / T::kLanes;
  for (uint32_t begin = 0; begin < vectors; begin += kAtOnce) {
    const uint32_t n = vectors - begin < kAtOnce ? vectors - begin : kAtOnce;
    __m512i seen[kAtOnce];
    for (__m512i& one : seen) one = _mm512_setzero_si512();
    const auto* row = static_cast<const typename T::Element*>(from) + begin * T::kLanes;
    for (uint32_t r = 0; r < rows; ++r, row += stride) {
#pragma GCC unroll 8
      for (uint32_t v = 0; v < kAtOnce; ++v)
        if (v < n) seen[v] = _mm512_or_si512(seen[v], _mm512_loadu_si512(row + v * T::kLanes));
    }
#pragma GCC unroll 8
    for (uint32_t v = 0; v < kAtOnce; ++v) {
      if (v >= n) break;
      const uint32_t at = begin + v;
      const uint32_t bits = T::nonzero(seen[v]) & first_lanes<T>(width - at * T::kLanes);
      live[at * T::kLanes / 32] |= bits << (at * T::kLanes % 32);
    }
  }
}

template <typename T>
void squeeze(const void* from, size_t stride, uint32_t rows, uint32_t width, const uint32_t* live,
             void* to, size_t to_stride) {
  const auto* source = static_cast<const typename T::Element*>(from);
  auto* target = static_cast<typename T::Element*>(to);
  const uint32_t vectors = (width + T::kLanes - 1) / T::kLanes;
  for (uint32_t r = 0; r < rows; ++r, source += stride, target += to_stride) {
    // What is written too much lands in the next row, which is written after; the last one has
    // none.
    const bool last = r + 1 == rows;
    size_t at = 0;
    const auto put = [&](__m512i x) {
      if (last) {
        const size_t left = to_stride - at;
        T::store(target + at,
                 first_lanes<T>(left < T::kLanes ? static_cast<uint32_t>(left) : T::kLanes), x);
      } else {
        _mm512_storeu_si512(target + at, x);
      }
    };
    for (uint32_t v = 0; v < vectors; ++v) {
      const typename T::Mask m = T::bits(live, v);
      put(T::squeeze(m, T::load(m, source + v * T::kLanes)));
      at += _mm_popcnt_u32(m);
    }
    put(_mm512_setzero_si512());
  }
}

template <typename T>
void spread(const void* from, size_t stride, uint32_t rows, uint32_t width, const uint32_t* live,
            void* to, size_t to_stride) {
  const auto* source = static_cast<const typename T::Element*>(from);
  auto* target = static_cast<typename T::Element*>(to);
  const uint32_t vectors = (width + T::kLanes - 1) / T::kLanes;
  for (uint32_t r = 0; r < rows; ++r, source += stride, target += to_stride) {
    const auto* at = source;
    for (uint32_t v = 0; v < vectors; ++v) {
      const typename T::Mask m = T::bits(live, v);
      T::store(target + v * T::kLanes, first_lanes<T>(width - v * T::kLanes),
               T::spread(m, _mm512_loadu_si512(at)));
      at += _mm_popcnt_u32(m);
    }
  }
}

}  // namespace

const ColumnKernels& column_kernels_f32() {
  static constexpr ColumnKernels kKernels = {mark<Words>, squeeze<Words>, spread<Words>};
  return kKernels;
}
const ColumnKernels& column_kernels_bf16() {
  static constexpr ColumnKernels kKernels = {mark<Halves>, squeeze<Halves>, spread<Halves>};
  return kKernels;
}

}  // namespace flux
