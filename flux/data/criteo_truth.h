// The hidden model behind made Criteo-like data: how often each id occurs and what it is worth.
//
// logit = bias + sum of one weight per id + a linear part over the dense values + products of
// short vectors for a few pairs of slots, which a linear model cannot learn. All of it is drawn
// from hashes of (truth seed, slot, id); the tables only save drawing it again. The mean of the id
// part is taken off the bias: a few frequent ids would otherwise move the click rate of one truth
// seed against another's (0.18 to 0.32).
//
// The truth may move (truth_moment.h): then the ids of the sixteen large slots are renewed, and
// their weights, of which a file of one hour meets few, are drawn when they are asked for.
//
// Threads: const functions from any; move_to() alone.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "flux/base/random.h"
#include "flux/data/truth_moment.h"

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
  static constexpr uint32_t kSmallSlots = 10;

  // A categorical value: its place in the slot, 0 the most frequent, and which of those who hold
  // the place in the course of time.
  struct Id {
    uint32_t place = 0;
    uint32_t life = 0;
  };
  using Ids = std::array<Id, kSlots>;

  explicit CriteoTruth(uint64_t seed, const TruthMoment& moment = {});
  void move_to(const TruthMoment& moment);

  void draw(Random* random, Ids* ids) const;
  // Inverse of the slot's Zipf distribution: a uniform 32-bit draw to a place.
  uint32_t sample(uint32_t slot, uint32_t draw) const {
    const Slot& s = slots_[slot];
    uint32_t id = s.guide[draw >> s.guide_shift];
    while (draw > s.last_draw[id]) ++id;
    return id;
  }
  // With the moment's lift.
  double logit(std::span<const double, kDense> dense, const Ids& ids) const;

  // The number that is printed for an id: a bijection, so no two (slot, place, life) share one.
  // `life` is below 256.
  static uint32_t token(uint32_t slot, uint32_t place, uint32_t life = 0);

 private:
  static constexpr uint32_t kRank = 4;
  struct Slot {
    std::vector<uint32_t> last_draw;  // per place: the largest draw that means it
    std::vector<uint32_t> guide;      // per leading bits of a draw: the first place they can mean
    uint32_t guide_shift = 0;
    std::vector<float> weight;                     // per place; empty: draw_weight()
    std::vector<std::array<float, kRank>> factor;  // per place; empty in slots without a partner
  };
  static void fill_distribution(uint32_t cardinality, Slot* slot);
  // A number of the standard normal distribution, as it has become.
  double draw_normal(uint64_t stream, uint64_t slot, uint64_t index) const;
  float draw_weight(uint32_t slot, const Id& id) const;
  float weight(uint32_t slot, const Id& id) const {
    const auto& known = slots_[slot].weight;
    return known.empty() ? draw_weight(slot, id) : known[id.place];
  }
  // The mean weight of those who hold a place.
  double place_weight(uint32_t slot, uint32_t place) const;
  double expected_id_part() const;

  const uint64_t seed_;
  TruthMoment moment_;
  std::array<Slot, kSlots> slots_;
  std::array<double, kDense> dense_weight_{};
  double bias_ = 0;
};

}  // namespace flux
