#include "flux/nn/live_columns.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "flux/base/cpu.h"

namespace flux {
namespace {

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

void LiveColumns::mark(const Tensor& matrix, uint32_t first, uint32_t end, uint32_t* bits) const {
  std::fill_n(bits, words(), 0U);
  kernels(matrix.type).mark(matrix.row(first), matrix.stride, end - first, width_, bits);
}

void LiveColumns::take(const uint32_t* bits, uint32_t parts) {
  std::fill(bits_.begin(), bits_.end(), 0U);
  for (uint32_t p = 0; p < parts; ++p)
    for (uint32_t w = 0; w < words(); ++w) bits_[w] |= bits[p * words() + w];
  count_live();
  columns_.clear();
  for (uint32_t c = 0; c < width_; ++c)
    if (has(c)) columns_.push_back(c);
}

void LiveColumns::squeeze_rows(const Tensor& matrix, uint32_t first, uint32_t end,
                               const Tensor& to) const {
  kernels(matrix.type)
      .squeeze(matrix.row(first), matrix.stride, end - first, width_, bits_.data(), to.row(first),
               to.stride);
}

void LiveColumns::squeeze_row(const float* from, float* to) const {
  column_kernels_f32().squeeze(from, width_, 1, width_, bits_.data(), to, count_);
}

void LiveColumns::spread(const Tensor& squeezed, uint32_t rows, const Tensor& to) const {
  kernels(to.type).spread(squeezed.data, squeezed.stride, rows, width_, bits_.data(), to.data,
                          to.stride);
}

}  // namespace flux
