#include "flux/nn/tensor.h"

#include <cstring>

namespace flux {

const float* read_row(const Tensor& t, size_t r, float* scratch) {
  if (t.type == DType::kF32) return t.f32(r);
  const uint16_t* in = t.bf16(r);
  for (uint32_t c = 0; c < t.width; ++c) scratch[c] = bf16_to_float(in[c]);
  return scratch;
}

void write_row(const Tensor& t, size_t r, const float* values, bool add) {
  if (t.type == DType::kF32) {
    float* out = t.f32(r);
    if (add) {
      for (uint32_t c = 0; c < t.width; ++c) out[c] += values[c];
    } else {
      std::memcpy(out, values, t.width * sizeof(float));
    }
    return;
  }
  uint16_t* out = t.bf16(r);
  if (add) {
    for (uint32_t c = 0; c < t.width; ++c)
      out[c] = float_to_bf16(bf16_to_float(out[c]) + values[c]);
  } else {
    for (uint32_t c = 0; c < t.width; ++c) out[c] = float_to_bf16(values[c]);
  }
}

}  // namespace flux
