// A small seeded generator (xoshiro256**) for tests, simulation and data generation. Its sequence
// is part of flux: the same seed gives the same numbers on every machine and version, which
// std::<random> distributions do not promise. Not thread-safe: one per thread.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

#include "flux/base/hash.h"

namespace flux {

class Random {
 public:
  explicit Random(uint64_t seed) {
    for (uint64_t i = 0; i < 4; ++i)
      s_[i] = mix64(seed + 0x9e3779b97f4a7c15ULL * (i + 1)) | (i == 0);
  }
  uint64_t next() {
    const uint64_t result = rotl(s_[1] * 5, 7) * 9;
    const uint64_t t = s_[1] << 17;
    s_[2] ^= s_[0];
    s_[3] ^= s_[1];
    s_[1] ^= s_[2];
    s_[0] ^= s_[3];
    s_[2] ^= t;
    s_[3] = rotl(s_[3], 45);
    return result;
  }
  // Uniform in [0, n); n must not be 0. (Multiply-shift: bias below 2^-32 for n below 2^32.)
  uint64_t below(uint64_t n) {
    return static_cast<uint64_t>((static_cast<unsigned __int128>(next()) * n) >> 64);
  }
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }  // [0, 1)
  bool chance(double p) { return uniform() < p; }
  double normal() {
    const double u = 1.0 - uniform();
    return std::sqrt(-2.0 * std::log(u)) * std::cos(2.0 * std::numbers::pi * uniform());
  }
  double exponential() { return -std::log(1.0 - uniform()); }

 private:
  static uint64_t rotl(uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }
  uint64_t s_[4];
};

}  // namespace flux
