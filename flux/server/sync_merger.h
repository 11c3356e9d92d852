// SyncMerger: the weighted sum of several members' gradients of one shard.
//
// Rows are merged by key, counts added up; everything in the order of the add() calls, in fp32 with
// one rounding per term (fused multiply-add), so that the same members give the same bits always.
// Memory is kept from sum to sum. Threads: none inside.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "flux/base/flat_range.h"
#include "flux/base/key.h"

namespace flux {

class SyncMerger {
 public:
  explicit SyncMerger(size_t tables) : tables_(tables) {}

  // Begins a sum over at most `keys_max` rows. `dims`: floats per row, by table; 0: it has none.
  // They must stay until the next sum begins.
  void begin_rows(size_t keys_max, std::span<const uint32_t> dims);
  std::span<const uint32_t> dims() const { return dims_; }
  // Adds weight x gradients: row i of table t lies at rows[t] + i * dim.
  void add_rows(std::span<const Key> keys, const uint32_t* counts,
                std::span<const float* const> rows, float weight);
  std::span<const Key> keys() const { return keys_; }
  const uint32_t* counts() const { return counts_.data(); }
  const float* table(size_t t) const { return tables_[t].data(); }

  void begin_dense(size_t size) { dense_.assign(size, 0.0F); }
  // The gradient of the dense shard that begins at `first` of the flat vector. In the ranges `sums`
  // it is a sum over examples and is added as it is.
  void add_dense(const float* gradient, float weight, uint64_t first = 0,
                 std::span<const FlatRange> sums = {});
  const float* dense() const { return dense_.data(); }

  // Of keys, counts and gradients, as of a single push.
  uint64_t rows_hash() const;
  uint64_t dense_hash() const;

 private:
  // Position of a key in keys_; a new one is put at the end.
  uint32_t find_or_add(Key key, bool* added);

  std::span<const uint32_t> dims_;
  std::vector<Key> keys_;
  std::vector<uint32_t> counts_;
  std::vector<std::vector<float>> tables_;  // rows beyond keys_ are old
  std::vector<uint32_t> slots_;             // open addressing: position in keys_ + 1; 0: free
  std::vector<float> dense_;
};

}  // namespace flux
