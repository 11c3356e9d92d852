// Tensor: a view of [rows][width] numbers, fp32 or bf16, with a row stride; the values and the
// gradients that operators hand to each other. Rows start on no special boundary, because a tensor
// may be a slice of another (an input of concat); the columns between the width of a whole
// (unsliced) tensor and its stride are always zero, so that kernels may read them.
// Owns nothing. Pure functions beside it.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace flux {

enum class DType : unsigned char { kF32, kBf16 };

inline size_t dtype_size(DType type) {
  return type == DType::kF32 ? 4 : 2;
}

inline float bf16_to_float(uint16_t value) {
  return std::bit_cast<float>(static_cast<uint32_t>(value) << 16);
}
// Nearest, ties to even; NaN stays NaN.
inline uint16_t float_to_bf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t rounded = (bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16;
  const uint32_t quiet = (bits >> 16) | 0x40U;
  return static_cast<uint16_t>((bits & 0x7fffffffU) > 0x7f800000U ? quiet : rounded);
}

struct Tensor {
  void* data = nullptr;
  uint32_t width = 0;
  uint32_t stride = 0;  // elements from row to row
  DType type = DType::kF32;

  explicit operator bool() const { return data != nullptr; }
  void* row(size_t r) const { return static_cast<char*>(data) + r * stride * dtype_size(type); }
  float* f32(size_t r) const { return static_cast<float*>(row(r)); }
  uint16_t* bf16(size_t r) const { return static_cast<uint16_t*>(row(r)); }
};

// Columns [begin, begin + width) of a tensor.
inline Tensor slice(const Tensor& t, uint32_t begin, uint32_t width) {
  return {static_cast<char*>(t.data) + begin * dtype_size(t.type), width, t.stride, t.type};
}

// The rows of a tensor from `first` on.
inline Tensor rows_from(const Tensor& t, size_t first) {
  return {t.data == nullptr ? nullptr : t.row(first), t.width, t.stride, t.type};
}

// Row r as floats: the row itself if it is fp32, else converted into `scratch` (width floats).
const float* read_row(const Tensor& t, size_t r, float* scratch);
// Stores (or adds) `width` floats to row r, rounding where the tensor is bf16.
void write_row(const Tensor& t, size_t r, const float* values, bool add);

}  // namespace flux
