// LiveColumns: which columns of a batch hold anything but zeros, and matrices without the others.
//
// Why: behind a relu a part of the units answers no example of a batch at all (12, 36 and 41 % of
// the three layers of DeepFM after a million examples). A product over such a column adds nothing,
// so FcProducts leaves it out, which is worth up to a third of a step; what is left is multiplied
// as ever. Whether it is done depends on the batch alone, so the same inputs give the same bits.
// Threads: const functions at the same time; the others by one thread. Ownership: only the list of
// columns; matrices are the caller's.
#pragma once

#include <cstdint>
#include <vector>

#include "flux/nn/column_kernels.h"
#include "flux/nn/tensor.h"

namespace flux {

class LiveColumns {
 public:
  // False: this CPU has no kernels for it.
  static bool possible();
  // One column in `worth` must be dead: fewer do not pay for squeezing and count as none.
  LiveColumns(uint32_t width, uint32_t worth);

  void set_all();  // as if all were live
  // Looking, in parts: mark() the live columns of some rows in bits of their own, words() each, on
  // any thread; then take() those of all rows.
  uint32_t words() const { return (width_ + 31) / 32; }
  void mark(const Tensor& matrix, uint32_t first, uint32_t end, uint32_t* bits) const;
  void take(const uint32_t* bits, uint32_t parts);
  // The live column of this place among them.
  uint32_t column(uint32_t place) const { return columns_[place]; }
  uint32_t width() const { return width_; }
  uint32_t count() const { return count_; }
  bool all() const { return count_ == width_; }
  bool has(uint32_t column) const { return (bits_[column / 32] >> (column % 32) & 1U) != 0; }

  // Elements from row to row of a matrix without dead columns.
  uint32_t stride() const { return (count_ + 31) / 32 * 32; }
  // Room for so many squeezed rows, whatever the count.
  static size_t bytes(uint32_t width, uint32_t rows, DType type) {
    return static_cast<size_t>((width + 31) / 32 * 32) * rows * dtype_size(type) + 64;
  }
  // Rows [first, end) without dead columns, zeros behind them; writes nothing beside those rows.
  void squeeze_rows(const Tensor& matrix, uint32_t first, uint32_t end, const Tensor& to) const;
  // One row of a weight: count() numbers.
  void squeeze_row(const float* from, float* to) const;
  // The way back; dead columns become 0.
  void spread(const Tensor& squeezed, uint32_t rows, const Tensor& to) const;

 private:
  void count_live();
  uint32_t width_, worth_, count_;
  std::vector<uint32_t> bits_;
  std::vector<uint32_t> columns_;  // live ones, rising
};

}  // namespace flux
