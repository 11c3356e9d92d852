#include "flux/nn/live_columns.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "flux/base/cpu.h"

namespace flux {
namespace {

constexpr uint32_t kFirstRows = 64;  // after so many most columns that are live have been seen

const ColumnKernels& kernels(DType type) {
  return type == DType::kBf16 ? column_kernels_bf16() : column_kernels_f32();
}

}  // namespace

bool LiveColumns::possible() {
  return cpu_has_avx512_vbmi2();
}

LiveColumns::LiveColumns(uint32_t width, uint32_t worth)
    : width_(width), worth_(worth), count_(width), bits_((width + 31) / 32) {
  set_all();
}

void LiveColumns::set_all() {
  std::fill(bits_.begin(), bits_.end(), ~0U);
  if (width_ % 32 != 0) bits_.back() = (1U << (width_ % 32)) - 1U;
  count_ = width_;
}

void LiveColumns::count_live() {
  count_ = 0;
  for (const uint32_t word : bits_) count_ += static_cast<uint32_t>(std::popcount(word));
  if ((width_ - count_) * worth_ < width_) set_all();
}

void LiveColumns::look(const Tensor& matrix, uint32_t rows) {
  std::fill(bits_.begin(), bits_.end(), 0U);
  const uint32_t first = std::min(rows, kFirstRows);
  const auto& mark = kernels(matrix.type).mark;
  mark(matrix.data, matrix.stride, first, width_, bits_.data());
  count_live();
  if (all() || first == rows) return;
  mark(matrix.row(first), matrix.stride, rows - first, width_, bits_.data());
  count_live();
}

Tensor LiveColumns::squeeze(const Tensor& matrix, uint32_t rows, void* memory) const {
  kernels(matrix.type)
      .squeeze(matrix.data, matrix.stride, rows, width_, bits_.data(), memory, stride());
  return {memory, count_, stride(), matrix.type};
}

void LiveColumns::spread(const Tensor& squeezed, uint32_t rows, const Tensor& to) const {
  kernels(to.type).spread(squeezed.data, squeezed.stride, rows, width_, bits_.data(), to.data,
                          to.stride);
}

void squeeze_weight(const float* weight, uint32_t rows, uint32_t n, const LiveColumns* live_rows,
                    const LiveColumns* live_columns, float* to) {
  const bool whole = live_columns == nullptr || live_columns->all();
  for (uint32_t row = 0; row < rows; ++row, weight += n) {
    if (live_rows != nullptr && !live_rows->has(row)) continue;
    if (whole) {
      std::memcpy(to, weight, n * sizeof(float));
    } else {
      column_kernels_f32().squeeze(weight, n, 1, n, live_columns->bits(), to, n);
    }
    to += whole ? n : live_columns->count();
  }
}

void spread_weight(const float* from, const LiveColumns& live_rows, const LiveColumns& live_columns,
                   float* weight) {
  const uint32_t n = live_columns.width();
  for (uint32_t row = 0; row < live_rows.width(); ++row, weight += n) {
    if (!live_rows.has(row)) {
      std::fill(weight, weight + n, 0.0F);
      continue;
    }
    column_kernels_f32().spread(from, n, 1, n, live_columns.bits(), weight, n);
    from += live_columns.count();
  }
}

}  // namespace flux
