// TruthMoment: what has become of a hidden truth by some hour, for made data that drifts.
//
// Each hidden number is cos(angle) * a + sin(angle) * b, where a and b belong to it for ever: it
// wanders off and keeps its distribution, so data of any hour is as hard as that of the first. Each
// id has a life: the place of an id in its slot (how frequent it is) passes to a new id in the
// course of one life, a little more of it each hour, and in the next life to another one. Places
// change hands at their own moments. `lift` is added to every logit. The default is a truth that
// stands still. Pure values.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>

#include "flux/base/hash.h"

namespace flux {

struct TruthMoment {
  double angle = 0;             // radians that the hidden numbers have turned by
  std::optional<double> lives;  // that have passed since the start; none: ids stay for ever
  double lift = 0;              // of logits

  bool still() const { return angle == 0 && !lives; }

  // The seed of the second number, which the first turns to.
  static uint64_t second_seed(uint64_t seed) { return hash_pair(seed, 0xd21f7); }
  // A hidden number: `number(seed)` is the one that belongs to a seed.
  template <typename Number>
  double turned(uint64_t seed, const Number& number) const {
    const double first = number(seed);
    return angle == 0 ? first
                      : std::cos(angle) * first + std::sin(angle) * number(second_seed(seed));
  }

  // Who holds a place now: the id of life `old` with the chance 1 - `handed`, else its successor.
  struct Holder {
    uint32_t old = 0;
    double handed = 0;
  };
  Holder holder(uint64_t seed, uint64_t slot, uint64_t place) const {
    if (!lives) return {};
    const double at =
        *lives + static_cast<double>(hash_uniform(hash_pair(slot, place), seed, 0x11fe));
    return {static_cast<uint32_t>(at), at - std::floor(at)};
  }
};

}  // namespace flux
