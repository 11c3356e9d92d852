// The kernels of skip_gram_kernels.h for every CPU that runs flux.
#include <immintrin.h>

#include "flux/nn/skip_gram_kernels.h"

namespace flux {
namespace {

using Vec = __m256;
constexpr uint32_t kLanes = 8;

inline Vec zero() {
  return _mm256_setzero_ps();
}
inline Vec all(float x) {
  return _mm256_set1_ps(x);
}
inline Vec load(const float* from) {
  return _mm256_loadu_ps(from);
}
inline void store(float* to, Vec value) {
  _mm256_storeu_ps(to, value);
}
inline Vec fma(Vec a, Vec b, Vec sum) {
  return _mm256_fmadd_ps(a, b, sum);
}
inline __m128 sum4(Vec a, Vec b, Vec c, Vec d) {
  const __m256 sums = _mm256_hadd_ps(_mm256_hadd_ps(a, b), _mm256_hadd_ps(c, d));
  return _mm_add_ps(_mm256_castps256_ps128(sums), _mm256_extractf128_ps(sums, 1));
}

#include "flux/nn/skip_gram_kernels.inc"

}  // namespace

const SkipGramKernels& skip_gram_kernels_avx2() {
  static constexpr SkipGramKernels kKernels = {dots, combine};
  return kKernels;
}

}  // namespace flux
