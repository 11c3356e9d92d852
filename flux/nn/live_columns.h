// LiveColumns: which columns of a batch hold anything but zeros, and matrices without the others.
//
// Why: behind a relu a part of the units answers no example of a batch at all (12, 36 and 41 % of
// the three layers of DeepFM after a million examples). A product over such a column adds nothing,
// so FcProducts leaves it out, which is worth up to a third of a step; what is left is multiplied
// as ever. Whether it is done depends on the batch alone, so the same inputs give the same bits.
// Threads: one, like its Net. Ownership: only the list of columns; matrices are the caller's.
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
  // Finds the live columns of the first `rows` rows.
  void look(const Tensor& matrix, uint32_t rows);
  uint32_t width() const { return width_; }
  uint32_t count() const { return count_; }
  bool all() const { return count_ == width_; }
  bool has(uint32_t column) const { return (bits_[column / 32] >> (column % 32) & 1U) != 0; }

  // Elements from row to row of a matrix without dead columns.
  uint32_t stride() const { return (count_ + 31) / 32 * 32; }
  // Bytes that squeeze() may write for so many rows of any count.
  static size_t bytes(uint32_t width, uint32_t rows, DType type) {
    return static_cast<size_t>((width + 31) / 32 * 32) * rows * dtype_size(type) + 64;
  }
  // The first `rows` rows without dead columns, in `memory`; zeros up to the stride.
  Tensor squeeze(const Tensor& matrix, uint32_t rows, void* memory) const;
  // The way back; dead columns become 0.
  void spread(const Tensor& squeezed, uint32_t rows, const Tensor& to) const;
  const uint32_t* bits() const { return bits_.data(); }  // as column_kernels.h has them
 private:
  void count_live();
  uint32_t width_, worth_, count_;
  std::vector<uint32_t> bits_;
};

// Of a weight [rows][n]: the live rows (null: all), each with its live columns (null: all), one
// after the other; may write 64 bytes behind the last.
void squeeze_weight(const float* weight, uint32_t rows, uint32_t n, const LiveColumns* live_rows,
                    const LiveColumns* live_columns, float* to);
// The way back; all else becomes 0.
void spread_weight(const float* from, const LiveColumns& live_rows, const LiveColumns& live_columns,
                   float* weight);

}  // namespace flux
