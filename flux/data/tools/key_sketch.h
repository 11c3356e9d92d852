// KeySketch: about how many different keys there were, in 4 KiB.
//
// HyperLogLog with 4096 registers: off by about 1.6 %, and exact enough below a few thousand by
// counting the registers that stayed empty. Merging two gives what one would have seen.
// Not thread-safe.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

#include "flux/base/hash.h"

namespace flux {

class KeySketch {
 public:
  void add(uint64_t key) {
    const uint64_t hash = mix64(key + 0x9E3779B97F4A7C15ULL);
    uint8_t& at = ranks_[hash >> (64 - kBits)];
    const auto rank =
        static_cast<uint8_t>(std::countl_zero((hash << kBits) | (1ULL << (kBits - 1))) + 1);
    at = std::max(at, rank);
  }
  void merge(const KeySketch& other) {
    for (size_t i = 0; i < kRegisters; ++i) ranks_[i] = std::max(ranks_[i], other.ranks_[i]);
  }
  double count() const {
    double sum = 0;
    uint32_t empty = 0;
    for (const uint8_t rank : ranks_) {
      sum += std::ldexp(1.0, -rank);
      empty += rank == 0 ? 1 : 0;
    }
    const double n = kRegisters;
    const double estimate = 0.7213 / (1 + 1.079 / n) * n * n / sum;
    if (estimate <= 2.5 * n && empty > 0) return n * std::log(n / empty);
    return estimate;
  }

 private:
  static constexpr int kBits = 12;
  static constexpr size_t kRegisters = size_t{1} << kBits;
  std::array<uint8_t, kRegisters> ranks_{};
};

}  // namespace flux
