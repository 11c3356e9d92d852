// The kernels of skip_gram_kernels.h for AVX-512. Includes nothing that defines shared inline
// functions.
#include <immintrin.h>

#include "flux/nn/skip_gram_kernels.h"

namespace flux {
namespace {

using Vec = __m512;
constexpr uint32_t kLanes = 16;

inline Vec zero() {
  return _mm512_setzero_ps();
}
inline Vec all(float x) {
  return _mm512_set1_ps(x);
}
inline Vec load(const float* from) {
  return _mm512_loadu_ps(from);
}
inline void store(float* to, Vec value) {
  _mm512_storeu_ps(to, value);
}
inline Vec fma(Vec a, Vec b, Vec sum) {
  return _mm512_fmadd_ps(a, b, sum);
}
inline __m256 halves(Vec a) {
  return _mm256_add_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
}
inline __m128 sum4(Vec a, Vec b, Vec c, Vec d) {
  const __m256 sums =
      _mm256_hadd_ps(_mm256_hadd_ps(halves(a), halves(b)), _mm256_hadd_ps(halves(c), halves(d)));
  return _mm_add_ps(_mm256_castps256_ps128(sums), _mm256_extractf128_ps(sums, 1));
}

#include "flux/nn/skip_gram_kernels.inc"

}  // namespace

const SkipGramKernels& skip_gram_kernels_avx512() {
  static constexpr SkipGramKernels kKernels = {dots, combine};
  return kKernels;
}

}  // namespace flux
