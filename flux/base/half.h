// Half-size floats: fp16 (IEEE binary16) and bf16 (the upper half of a float) to float and back.
//
// Rounding is to nearest, ties to even. fp16 reaches 65504: larger finite values become that, so
// that a large gradient does not turn into an infinity on its way; infinities and NaN stay. bf16
// has the range of float; a value that would round beyond it becomes infinite, as in hardware.
// Pure; the *_scalar ones are the plain reference that the vector kernels equal bit for bit.
// Memory need not be aligned; input and output do not overlap.
#pragma once

#include <cstddef>
#include <cstdint>

namespace flux {

void floats_to_fp16(const float* in, uint16_t* out, size_t n);
void fp16_to_floats(const uint16_t* in, float* out, size_t n);
void floats_to_bf16(const float* in, uint16_t* out, size_t n);
void bf16_to_floats(const uint16_t* in, float* out, size_t n);

uint16_t fp16_scalar(float value);
float float_of_fp16_scalar(uint16_t value);
uint16_t bf16_scalar(float value);
float float_of_bf16_scalar(uint16_t value);

}  // namespace flux
