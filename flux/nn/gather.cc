#include "flux/nn/gather.h"

#include <algorithm>
#include <cstring>

#include "flux/base/cpu.h"
#include "flux/nn/row_kernels.h"

namespace flux {
namespace {

constexpr uint32_t kAhead = 16;  // occurrences to prefetch ahead

// The rows of one example after another; the prefetch runs ahead across examples.
class Occurrences {
 public:
  Occurrences(const GatherShape& shape, const TableInput& in, uint32_t batch, const float* base)
      : index_(in.index),
        total_(static_cast<size_t>(shape.slots) * batch),
        dim_(shape.dim),
        base_(base) {}
  size_t offset(size_t i) const {
    const size_t ahead = index_[std::min(i + kAhead, total_ - 1)] * dim_;
    __builtin_prefetch(base_ + ahead);
    __builtin_prefetch(base_ + ahead + dim_ - 1);
    return index_[i] * dim_;
  }

 private:
  const uint32_t* index_;
  size_t total_;
  size_t dim_;
  const float* base_;
};

void gather_scalars(const GatherShape& shape, const TableInput& in, uint32_t batch,
                    const Tensor& out) {
  const uint32_t* index = in.index;
  for (uint32_t b = 0; b < batch; ++b, index += shape.slots) {
    float even = 0, odd = 0;
    uint32_t s = 0;
    for (; s + 2 <= shape.slots; s += 2) {
      even += in.rows[index[s]];
      odd += in.rows[index[s + 1]];
    }
    if (s < shape.slots) even += in.rows[index[s]];
    const float sum = even + odd;
    write_row(out, b, &sum, false);
  }
}

void gather_sum(const GatherShape& shape, const TableInput& in, uint32_t batch, const Tensor& out) {
  const Occurrences rows(shape, in, batch, in.rows);
  constexpr uint32_t kChunk = 256;
  float sum[kChunk];
  for (uint32_t begin = 0; begin < shape.dim; begin += kChunk) {
    const uint32_t width = std::min(kChunk, shape.dim - begin);
    size_t i = 0;
    for (uint32_t b = 0; b < batch; ++b) {
      std::fill(sum, sum + width, 0.0F);
      for (uint32_t s = 0; s < shape.slots; ++s, ++i) {
        const float* row = in.rows + rows.offset(i) + begin;
        for (uint32_t d = 0; d < width; ++d) sum[d] += row[d];
      }
      write_row(slice(out, begin, width), b, sum, false);
    }
  }
}

void gather_concat(const GatherShape& shape, const TableInput& in, uint32_t batch,
                   const Tensor& out) {
  const Occurrences rows(shape, in, batch, in.rows);
  size_t i = 0;
  for (uint32_t b = 0; b < batch; ++b) {
    for (uint32_t s = 0; s < shape.slots; ++s, ++i) {
      const float* row = in.rows + rows.offset(i);
      if (out.type == DType::kF32) {
        std::memcpy(out.f32(b) + s * shape.dim, row, shape.dim * sizeof(float));
      } else {
        uint16_t* to = out.bf16(b) + s * shape.dim;
        for (uint32_t d = 0; d < shape.dim; ++d) to[d] = float_to_bf16(row[d]);
      }
    }
  }
}

void scatter_scalars(const GatherShape& shape, const TableInput& in, uint32_t batch,
                     const Tensor& from, float* gradient) {
  const uint32_t* index = in.index;
  for (uint32_t b = 0; b < batch; ++b, index += shape.slots) {
    float scratch;
    const float g = *read_row(from, b, &scratch);
    for (uint32_t s = 0; s < shape.slots; ++s) gradient[index[s]] += g;
  }
}

// Adds the slice of an example's gradient that came from one of its slots to a row.
void add_slice(const GatherShape& shape, const Tensor& from, uint32_t b, uint32_t s, float* to) {
  const size_t begin = shape.sum ? 0 : static_cast<size_t>(s) * shape.dim;
  if (from.type == DType::kF32) {
    const float* g = from.f32(b) + begin;
    for (uint32_t d = 0; d < shape.dim; ++d) to[d] += g[d];
  } else {
    const uint16_t* g = from.bf16(b) + begin;
    for (uint32_t d = 0; d < shape.dim; ++d) to[d] += bf16_to_float(g[d]);
  }
}

void scatter_plain(const GatherShape& shape, const TableInput& in, uint32_t batch,
                   const Tensor& from, float* gradient) {
  const Occurrences rows(shape, in, batch, gradient);
  size_t i = 0;
  for (uint32_t b = 0; b < batch; ++b) {
    for (uint32_t s = 0; s < shape.slots; ++s, ++i) {
      add_slice(shape, from, b, s, gradient + rows.offset(i));
    }
  }
}

// Without the way back: every occurrence is looked at.
void search_rows(const GatherShape& shape, const TableInput& in, uint32_t batch, uint32_t first_row,
                 uint32_t end_row, const Tensor& from, float* gradient) {
  const uint32_t* index = in.index;
  for (uint32_t b = 0; b < batch; ++b, index += shape.slots)
    for (uint32_t s = 0; s < shape.slots; ++s)
      if (index[s] - first_row < end_row - first_row)
        add_slice(shape, from, b, s, gradient + static_cast<size_t>(index[s]) * shape.dim);
}

bool has_kernels(DType type) {
  return type == DType::kBf16 ? cpu_has_avx512_bf16() : cpu_has_avx512();
}

RowMoves moves_of(const GatherShape& shape, const TableInput& in, uint32_t batch, const Tensor& t) {
  return {in.index, batch, shape.slots, shape.dim, t.data, t.stride};
}

}  // namespace

void gather_rows_plain(const GatherShape& shape, const TableInput& in, uint32_t batch,
                       const Tensor& out) {
  if (batch == 0) return;
  if (!shape.sum) return gather_concat(shape, in, batch, out);
  if (shape.dim == 1) return gather_scalars(shape, in, batch, out);
  gather_sum(shape, in, batch, out);
}

void scatter_add_rows_plain(const GatherShape& shape, const TableInput& in, uint32_t batch,
                            const Tensor& out_gradient, float* gradient) {
  if (batch == 0) return;
  if (shape.sum && shape.dim == 1) return scatter_scalars(shape, in, batch, out_gradient, gradient);
  scatter_plain(shape, in, batch, out_gradient, gradient);
}

void gather_rows(const GatherShape& shape, const TableInput& in, uint32_t batch,
                 const Tensor& out) {
  if (shape.sum || batch == 0 || !has_kernels(out.type))
    return gather_rows_plain(shape, in, batch, out);
  const RowMoves moves = moves_of(shape, in, batch, out);
  return out.type == DType::kF32 ? gather_f32(moves, in.rows) : gather_bf16(moves, in.rows);
}

void scatter_add_rows(const GatherShape& shape, const TableInput& in, uint32_t batch,
                      const Tensor& out_gradient, float* gradient) {
  if (shape.sum || batch == 0 || !has_kernels(out_gradient.type))
    return scatter_add_rows_plain(shape, in, batch, out_gradient, gradient);
  const RowMoves moves = moves_of(shape, in, batch, out_gradient);
  return out_gradient.type == DType::kF32 ? scatter_f32(moves, gradient)
                                          : scatter_bf16(moves, gradient);
}

void collect_rows_plain(const GatherShape& shape, const TableInput& in, uint32_t batch,
                        uint32_t first_row, uint32_t end_row, const Tensor& out_gradient,
                        float* gradient) {
  if (in.row_begin == nullptr)
    return search_rows(shape, in, batch, first_row, end_row, out_gradient, gradient);
  for (uint32_t r = first_row; r < end_row; ++r)
    for (uint32_t i = in.row_begin[r]; i < in.row_begin[r + 1]; ++i) {
      const uint32_t place = in.occurrences[i];
      add_slice(shape, out_gradient, place / shape.slots, place % shape.slots,
                gradient + static_cast<size_t>(r) * shape.dim);
    }
}

void collect_rows(const GatherShape& shape, const TableInput& in, uint32_t batch,
                  uint32_t first_row, uint32_t end_row, const Tensor& out_gradient,
                  float* gradient) {
  if (in.row_begin == nullptr && first_row == in.first_row && end_row == in.row_count)
    return scatter_add_rows(shape, in, batch, out_gradient, gradient);
  if (in.row_begin == nullptr || !has_kernels(out_gradient.type))
    return collect_rows_plain(shape, in, batch, first_row, end_row, out_gradient, gradient);
  const RowCollection rows{in.row_begin, in.occurrences,    first_row,
                           end_row,      shape.slots,       shape.dim,
                           shape.sum,    out_gradient.data, out_gradient.stride};
  return out_gradient.type == DType::kF32 ? collect_f32(rows, gradient)
                                          : collect_bf16(rows, gradient);
}

}  // namespace flux
