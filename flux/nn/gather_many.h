// Rows of chosen slots into activations, where a slot may have any number of keys, and the
// gradients back. The general way beside gather.h, which is for one key in every slot.
//
// A slot without keys gives zeros. As a sequence, a slot gives its first or last `length` rows one
// after the other, and zeros behind them. Where keys have values, each row is multiplied by that of
// its key, and the mean is over the sum of their magnitudes: sum(v row) / sum(|v|), 0 if that is 0.
// Pure functions over caller's memory; any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "flux/nn/net.h"
#include "flux/nn/tensor.h"

namespace flux {

enum class Pool : unsigned char { kSum, kMean, kMax, kFirst };

struct ManyShape {
  uint32_t all_slots = 0;       // of an example
  std::vector<uint32_t> slots;  // those that are wanted
  uint32_t dim = 0;
  Pool pool = Pool::kSum;  // of the rows of one slot
  bool add_slots = false;  // one sum instead of slots side by side
  uint32_t length = 0;     // not 0: the one slot as a sequence
  bool keep_last = false;  // of a sequence that is too long: its last ones
};

// Where the occurrences of a slot of an example begin and end.
struct KeyRange {
  uint32_t begin = 0, end = 0;
};
inline KeyRange key_range(const uint32_t* begin, uint32_t all_slots, uint32_t example,
                          uint32_t slot) {
  const uint32_t place = example * all_slots + slot;
  return begin == nullptr ? KeyRange{place, place + 1} : KeyRange{begin[place], begin[place + 1]};
}
// The part of it that a sequence of this length shows.
inline KeyRange shown(KeyRange keys, uint32_t length, bool keep_last) {
  if (keys.end - keys.begin <= length) return keys;
  return keep_last ? KeyRange{keys.end - length, keys.end}
                   : KeyRange{keys.begin, keys.begin + length};
}

// The keys of a batch: as in NetInput.
struct BatchKeys {
  const uint32_t* begin = nullptr;
  const float* values = nullptr;
  uint32_t first = 0, end = 0;  // the examples that are wanted
};

// `line`: dim floats of scratch. `winners` (for Pool::kMax): per example, slot and column the
// occurrence that was largest.
void gather_many(const ManyShape& shape, const TableInput& in, const BatchKeys& keys,
                 const Tensor& out, float* line, uint32_t* winners);
// gradient[index] += what reached that row, for rows [first_row, end_row) of the table.
void scatter_many(const ManyShape& shape, const TableInput& in, const BatchKeys& keys,
                  const Tensor& out_gradient, float* line, const uint32_t* winners,
                  uint32_t first_row, uint32_t end_row, float* gradient);

}  // namespace flux
