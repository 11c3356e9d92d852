// RowSums: sums over the rows of a batch that come out the same to the last bit, however many
// threads add them up.
//
// Each 64 rows have a part of their own, which one thread fills in the order of the rows; the parts
// are then added as a fixed binary tree over their places. Part of a kernel: parts of different
// rows, and different columns of the total, may be worked on at the same time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "flux/nn/net_memory.h"

namespace flux {

constexpr uint32_t kSumRows = 64;

// Calls part(begin, end) for each run of rows of [first, end) that has a part of its own.
template <typename F>
void for_sum_rows(uint32_t first, uint32_t end, const F& part) {
  for (uint32_t next; first < end; first = next) {
    next = std::min(end, first - first % kSumRows + kSumRows);
    part(first, next);
  }
}

inline uint32_t row_parts(uint32_t rows) {
  return (rows + kSumRows - 1) / kSumRows;
}

// The tree: parts[0] becomes the sum of `count` parts, each `stride` behind the last.
template <typename T>
void add_parts(T* parts, uint32_t count, size_t stride, size_t n) {
  for (uint32_t step = 1; step < count; step *= 2)
    for (uint32_t i = 0; i + step < count; i += 2 * step) {
      T* __restrict to = parts + i * stride;
      const T* __restrict from = parts + (i + step) * stride;
      for (size_t c = 0; c < n; ++c) to[c] += from[c];
    }
}

class RowSums {
 public:
  RowSums() = default;
  RowSums(NetMemory* memory, uint32_t rows_max, size_t width)
      : width_(width),
        stride_((width + 15) / 16 * 16),
        parts_(memory->allocate_array<float>(row_parts(rows_max) * stride_)) {}
  size_t width() const { return width_; }
  // Of the rows that `row` belongs to; zeros.
  float* clear_part(uint32_t row) const {
    float* part = parts_ + row / kSumRows * stride_;
    std::fill_n(part, width_, 0.0F);
    return part;
  }
  // The work of adding up, cut into pieces of whole lines of memory.
  uint32_t pieces() const { return static_cast<uint32_t>((width_ + kPiece - 1) / kPiece); }
  // Columns of piece `piece` of the sum over `rows` rows, into `total` [width].
  void add_up(uint32_t rows, uint32_t piece, float* total) const {
    const size_t begin = piece * kPiece, n = std::min(width_ - begin, kPiece);
    add_parts(parts_ + begin, row_parts(rows), stride_, n);
    std::copy_n(parts_ + begin, n, total + begin);
  }

 private:
  static constexpr size_t kPiece = 4096;
  size_t width_ = 0, stride_ = 0;
  float* parts_ = nullptr;
};

}  // namespace flux
