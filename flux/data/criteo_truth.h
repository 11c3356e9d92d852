// The hidden model behind made Criteo-like data: how often each id occurs and what it is worth.
//
// logit = bias + sum of one weight per id + a linear part over the dense values + products of
// short vectors for a few pairs of slots, which a linear model cannot learn. All of it is drawn
// from hashes of (truth seed, slot, id); the tables only save drawing it again. The mean of the id
// part is taken off the bias: a few frequent ids would otherwise move the click rate of one truth
// seed against another's (0.18 to 0.32).
// Threads: immutable after construction.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace flux {

class CriteoTruth {
 public:
  static constexpr uint32_t kDense = 13;
  static constexpr uint32_t kSlots = 26;
  // Ids per slot: ten small slots, then sixteen large ones.
  static constexpr std::array<uint32_t, kSlots> kCardinality = {
      10,    20,     30,     50,     100,    150,    250,    400,    700,
      1000,  300000, 200000, 200000, 150000, 100000, 100000, 100000, 80000,
      60000, 50000,  40000,  30000,  20000,  10000,  5000,   3000};

  explicit CriteoTruth(uint64_t seed);

  // Inverse of the slot's Zipf distribution: a uniform 32-bit draw to an id, 0 the most frequent.
  uint32_t sample(uint32_t slot, uint32_t draw) const {
    const Slot& s = slots_[slot];
    uint32_t id = s.guide[draw >> s.guide_shift];
    while (draw > s.last_draw[id]) ++id;
    return id;
  }
  double logit(std::span<const double, kDense> dense, std::span<const uint32_t, kSlots> ids) const;

  // The number that is printed for an id: a bijection, so no two (slot, id) share one.
  static uint32_t token(uint32_t slot, uint32_t id);

 private:
  static constexpr uint32_t kRank = 4;
  struct Slot {
    std::vector<uint32_t> last_draw;  // per id: the largest draw that means it
    std::vector<uint32_t> guide;      // per leading bits of a draw: the first id they can mean
    uint32_t guide_shift = 0;
    std::vector<float> weight;                     // per id
    std::vector<std::array<float, kRank>> factor;  // per id; empty in slots without a partner
  };
  static void fill_distribution(uint32_t cardinality, Slot* slot);
  double expected_id_part() const;

  std::array<Slot, kSlots> slots_;
  std::array<double, kDense> dense_weight_{};
  double bias_ = 0;
};

}  // namespace flux
