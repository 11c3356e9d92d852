// HiddenRows: the keys of some slots of a made truth at a moment, and the hidden numbers of each.
//
// A row belongs to a place (slot, id) and, where ids are renewed, to one of the two that share the
// place now: first those of the older id of each place, then those of its successor. The keys of a
// slot's n ids are 0 .. n - 1 in their first life, n .. 2 n - 1 in their second, and so on.
// Immutable; internal to data/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "flux/base/random.h"
#include "flux/data/truth_moment.h"

namespace flux {

// A number of about the standard normal distribution that belongs to (seed, a, b) for ever.
inline double hidden_normal(uint64_t seed, uint64_t a, uint64_t b) {
  double sum = -6;  // of 12 uniforms
  for (uint64_t i = 0; i < 12; ++i)
    sum += static_cast<double>(hash_uniform(hash_pair(a, b), seed, i));
  return sum;
}
// What has become of it.
inline double hidden_normal(uint64_t seed, const TruthMoment& moment, uint64_t a, uint64_t b) {
  return moment.turned(seed, [&](uint64_t of) { return hidden_normal(of, a, b); });
}

class HiddenRows {
 public:
  HiddenRows(uint64_t seed, const TruthMoment& moment, size_t slots, size_t ids)
      : seed_(seed), moment_(moment), ids_(ids), places_(slots * ids) {
    for (size_t place = 0; place < places_; ++place)
      holders_.push_back(moment.holder(seed, place / ids, place % ids));
  }

  struct Key {
    size_t row;
    uint64_t key;  // as the lines have it
  };
  // One of those who hold the place of an id.
  Key pick(Random* random, size_t slot, uint64_t id) const {
    const size_t place = slot * ids_ + id;
    const bool newer = moment_.lives && random->chance(holders_[place].handed);
    return {place + (newer ? places_ : 0), id + ids_ * (holders_[place].old + (newer ? 1 : 0))};
  }
  size_t size() const { return moment_.lives ? 2 * places_ : places_; }
  // The number of a row among those of all lives.
  uint64_t lasting(size_t row) const {
    const size_t place = row % places_;
    return place + places_ * (holders_[place].old + row / places_);
  }
  // `dim` hidden numbers for each row, of one purpose, times `scale`.
  std::vector<double> numbers(uint64_t purpose, size_t dim, double scale) const {
    std::vector<double> all(size() * dim);
    for (size_t i = 0; i < all.size(); ++i)
      all[i] = scale * hidden_normal(seed_, moment_, purpose, lasting(i / dim) * dim + i % dim);
    return all;
  }

 private:
  uint64_t seed_;
  TruthMoment moment_;
  size_t ids_, places_;
  std::vector<TruthMoment::Holder> holders_;
};

}  // namespace flux
