// Embedding rows into activations and their gradients back: the memory-bound half of a CTR model.
// Chosen at run time among AVX2 and AVX-512 code; all give the same bits.
// Pure functions over caller's memory; any thread.
#pragma once

#include <cstdint>

#include "flux/nn/net.h"
#include "flux/nn/tensor.h"

namespace flux {

struct GatherShape {
  uint32_t slots = 0;
  uint32_t dim = 0;
  bool sum = false;  // sum over slots instead of side by side
};

// out[b] = the rows of example b.
void gather_rows(const GatherShape& shape, const TableInput& in, uint32_t batch, const Tensor& out);
// gradient[index] += the slice of out_gradient that came from that row, in order of occurrence.
void scatter_add_rows(const GatherShape& shape, const TableInput& in, uint32_t batch,
                      const Tensor& out_gradient, float* gradient);

// The same for rows [first_row, end_row) of the table alone: by TableInput::occurrences where they
// are given, else all occurrences are looked at. The same bits either way, and however rows are
// divided.
void collect_rows(const GatherShape& shape, const TableInput& in, uint32_t batch,
                  uint32_t first_row, uint32_t end_row, const Tensor& out_gradient,
                  float* gradient);

// The same in plain code: for CPUs without AVX-512, and what tests compare with.
void gather_rows_plain(const GatherShape& shape, const TableInput& in, uint32_t batch,
                       const Tensor& out);
void scatter_add_rows_plain(const GatherShape& shape, const TableInput& in, uint32_t batch,
                            const Tensor& out_gradient, float* gradient);
void collect_rows_plain(const GatherShape& shape, const TableInput& in, uint32_t batch,
                        uint32_t first_row, uint32_t end_row, const Tensor& out_gradient,
                        float* gradient);

}  // namespace flux
