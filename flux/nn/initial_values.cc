#include "flux/nn/initial_values.h"

#include <algorithm>
#include <cmath>

#include "flux/base/hash.h"

namespace flux {
namespace {

void fill_uniform(uint64_t key, uint64_t seed, float bound, std::span<float> out) {
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = (2.0F * hash_uniform(key, seed, i) - 1.0F) * bound;
}

// Twelve uniform numbers add up to a deviation of 1. Their sum is exact, where a logarithm would
// differ between machines.
void fill_normal(uint64_t key, uint64_t seed, float deviation, std::span<float> out) {
  constexpr size_t kTerms = 12;
  for (size_t i = 0; i < out.size(); ++i) {
    double sum = -6.0;
    for (size_t k = 0; k < kTerms; ++k) sum += hash_uniform(key, seed, i * kTerms + k);
    out[i] = static_cast<float>(sum * deviation);
  }
}

}  // namespace

void fill_initial(const Parameter& p, uint64_t seed, std::span<float> out) {
  const uint64_t key = hash_bytes(p.name);
  // Rows feed, columns are fed; a vector is one row.
  const auto fan_out = static_cast<double>(p.shape.empty() ? 1 : p.shape.back());
  const double fan_in = static_cast<double>(p.size) / fan_out;
  const float value = p.init.value;
  switch (p.init.kind) {
    case InitKind::kUniform:
      return fill_uniform(key, seed, value, out);
    case InitKind::kNormal:
      return fill_normal(key, seed, value, out);
    case InitKind::kConstant:
      return std::fill(out.begin(), out.end(), value);
    case InitKind::kXavier:
      return fill_uniform(key, seed, static_cast<float>(value * std::sqrt(6 / (fan_in + fan_out))),
                          out);
    case InitKind::kHe:
      return fill_normal(key, seed, static_cast<float>(value * std::sqrt(2 / fan_in)), out);
  }
}

}  // namespace flux
