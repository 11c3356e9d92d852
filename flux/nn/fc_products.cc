#include "flux/nn/fc_products.h"

#include <algorithm>
#include <cstring>

#include "flux/base/cpu.h"
#include "flux/nn/row_sums.h"

namespace flux {
namespace {

size_t round_up(size_t n, size_t unit) {
  return (n + unit - 1) / unit * unit;
}

// Batches of fewer rows than this are multiplied whole: packing weights anew would cost more.
constexpr uint32_t kRowsWorth = 256;

// Products in tile registers are so fast that squeezing pays later.
uint32_t worth(const GemmKernels& kernels) {
  return kernels.depth > 1 ? 4 : 8;
}

// Rows so many numbers apart (2 KB) share so few cache lines that a column is better packed first.
constexpr uint32_t kSameLines = 512;

GemmRows beside(const Tensor& t, uint32_t first) {
  return {t.data == nullptr ? nullptr : t.row(first), t.stride};
}

}  // namespace

FcProducts::FcProducts(const FcShape& shape, NetMemory& memory, const GemmKernels& kernels)
    : s_(shape),
      pair_(shape.x.type == DType::kBf16 ? 2 : 1),
      packs_dz_(pair_ > 1 || shape.dz.stride % kSameLines == 0),
      kernels_(kernels),
      memory_(memory),
      skip_x_(shape.skip_x && shape.batch_max >= kRowsWorth && LiveColumns::possible()),
      skip_dz_(shape.skip_dz && shape.batch_max >= kRowsWorth && LiveColumns::possible()),
      live_x_(shape.x.width, worth(kernels)),
      live_dz_(shape.y.width, worth(kernels)),
      x_(shape.x),
      dz_(shape.dz),
      dx_(shape.dx),
      sums_stride_(round_up(shape.y.width, 16)) {
  const size_t in = s_.x.width, n = s_.y.width, n16 = sums_stride_;
  const size_t parts = row_parts(s_.batch_max);
  bias_ = memory.allocate_array<float>(n16);
  sums_ = memory.allocate_array<float>(parts * n16);
  weight_ = memory.allocate_array<float>(depth(in) * n16);
  if (s_.dx) transposed_ = memory.allocate_array<float>(depth(n) * round_up(s_.dx.width, 16));
  if (skip_x_)
    squeezed_x_ = memory.allocate(LiveColumns::bytes(s_.x.width, s_.batch_max, s_.x.type));
  if (skip_x_ || skip_dz_) {
    small_ = memory.allocate_array<float>(in * n + 16);
    marks_x_ = memory.allocate_array<uint32_t>(parts * live_x_.words());
    marks_dz_ = memory.allocate_array<uint32_t>(parts * live_dz_.words());
  }
  const size_t bytes = place_scratch(nullptr);
  if (s_.alone)
    memory.reserve_scratch(bytes);
  else
    place_scratch(static_cast<char*>(memory.allocate(bytes)));
  find_panels();
}

// What lasts from keep() to backward_weights(), laid out from `base` on; returns its bytes.
size_t FcProducts::place_scratch(char* base) {
  size_t used = 0;
  const auto take = [&](size_t bytes) {
    char* const at = base == nullptr ? nullptr : base + used;
    used += round_up(bytes, 64);
    return at;
  };
  const size_t deep = depth(s_.batch_max) * sizeof(float);
  kept_x_ = reinterpret_cast<float*>(take(deep * round_up(s_.x.width, kernels_.a_rows)));
  if (packs_dz_) kept_dz_ = reinterpret_cast<float*>(take(deep * sums_stride_));
  if (skip_dz_) squeezed_dz_ = take(LiveColumns::bytes(s_.y.width, s_.batch_max, s_.dz.type));
  if (skip_x_ && s_.dx)
    squeezed_dx_ = take(LiveColumns::bytes(s_.x.width, s_.batch_max, s_.dx.type));
  return used;
}

size_t FcProducts::units(size_t elements) const {
  return round_up(elements, pair_) / pair_;
}
size_t FcProducts::depth(size_t elements) const {
  return round_up(units(elements), kernels_.depth);
}

void FcProducts::find_panels() {
  panels_.clear();
  for (uint32_t column = 0; column < dz_.width;) {
    const uint32_t columns = kernels_.panel_columns(dz_.width - column);
    panels_.push_back({column, std::min(columns, dz_.width - column)});
    column += columns;
  }
}

void FcProducts::set_parameters(const float* weight, const float* bias) {
  weight_given_ = weight;
  packed_ = transposed_packed_ = !skip_x_;  // by pack(), before anybody looks
  std::copy(bias, bias + s_.y.width, bias_);
}

uint32_t FcProducts::pack_parts() const {
  return skip_x_ ? 0 : kernels_.weight_strips(s_.x.width, s_.dx ? s_.dx.width : 0);
}

void FcProducts::pack(uint32_t part) {
  pack_strips(part, part + 1);
}

void FcProducts::pack_strips(uint32_t first, uint32_t last) {
  kernels_.pack_weight(weight_given_, s_.x.width, s_.y.width, weight_, s_.dx ? s_.dx.width : 0,
                       transposed_, first, last);
}

void FcProducts::set_all_parameters(const float* weight, const float* bias) {
  set_parameters(weight, bias);
  for (uint32_t part = 0; part < pack_parts(); ++part) pack(part);
}

Gemm FcProducts::into(const Tensor& c, uint32_t rows) const {
  Gemm g;
  g.m = rows;
  g.n = c.width;
  g.c = c.data;
  g.c_stride = c.stride;
  g.c_bf16 = c.type == DType::kBf16;
  return g;
}

void FcProducts::read_rows(const Tensor& a, Gemm* g) const {
  g->k = static_cast<uint32_t>(units(a.width));
  g->a = a.data;
  g->a_stride = a.stride / pair_;
}

void FcProducts::forward(uint32_t first, uint32_t end) {
  if (!live_x_.all()) live_x_.squeeze_rows(s_.x, first, end, x_);
  Gemm g = into(rows_from(s_.y, first), end - first);
  read_rows(rows_from(x_, first), &g);
  g.b = weight_;
  g.bias = bias_;
  g.relu = s_.relu;
  g.kept = beside(s_.kept, first);
  g.scale = beside(s_.scale, first);
  g.plus = beside(s_.plus, first);
  kernels_.gemm(g);
}

void FcProducts::forward_all(uint32_t batch) {
  if (skip_x_) {
    for_sum_rows(0, batch, [&](uint32_t first, uint32_t end) { look_x(first, end); });
    for (uint32_t p = 0, n = begin_narrow_forward(batch); p < n; ++p) narrow_forward(p);
  }
  forward(0, batch);
}

void FcProducts::keep(uint32_t first, uint32_t end, uint32_t batch) {
  if (s_.alone) place_scratch(static_cast<char*>(memory_.scratch()));
  if (!live_dz_.all()) live_dz_.squeeze_rows(s_.dz, first, end, dz_);
  kernels_.pack_a(x_.data, x_.stride, first, end, batch, x_.width, kept_x_);
  if (!packs_dz_) return;  // rows of dz are what the product reads
  for_sum_rows(first, end, [&](uint32_t begin, uint32_t stop) {
    kernels_.pack_b(dz_.data, dz_.stride, begin, stop, batch, dz_.width, kept_dz_,
                    sums_ + begin / kSumRows * sums_stride_);
  });
}

void FcProducts::backward_data(uint32_t first, uint32_t end) {
  Gemm g = into(rows_from(dx_, first), end - first);
  read_rows(rows_from(dz_, first), &g);
  g.b = transposed_;
  g.add = s_.dx_add;
  g.plus = beside(s_.dx_plus, first);
  if (s_.dx_mask) g.mask = beside(narrow_dx_ ? x_ : s_.x, first);
  kernels_.gemm(g);
  if (narrow_dx_) live_x_.spread(rows_from(dx_, first), end - first, rows_from(s_.dx, first));
}

// Several parts for each member, so that none waits long for the last ones.
uint32_t FcProducts::rows_per_part() const {
  constexpr uint32_t kRows = 48;
  if (s_.members == 1) return std::max(1U, x_.width);
  return static_cast<uint32_t>(
      round_up(live_x_.all() && live_dz_.all() ? kRows : kRows / 3, kernels_.a_rows));
}

uint32_t FcProducts::weight_parts() const {
  const uint32_t rows = (x_.width + rows_per_part() - 1) / rows_per_part();
  const bool whole = live_x_.all() && live_dz_.all();
  // All columns at once where what was left out is put back row by row.
  return std::max(1U, whole ? rows * static_cast<uint32_t>(panels_.size()) : rows);
}

void FcProducts::backward_weights(uint32_t batch, uint32_t part, float* dw, float* db) {
  if (live_x_.all() && live_dz_.all())
    weights_panel(batch, part, dw, db);
  else
    weights_rows(batch, part, dw, db);
}

// The operands from this panel of dz on.
void FcProducts::read_kept(uint32_t batch, uint32_t panel, Gemm* g) {
  const uint32_t column = panels_.empty() ? 0 : panels_[panel].column;
  g->k = static_cast<uint32_t>(units(batch));
  g->a_packed = true;
  if (!packs_dz_) {
    g->b = static_cast<const float*>(dz_.data) + column;
    g->b_stride = dz_.stride;
  } else {
    g->b = kept_dz_ + column * depth(batch);
  }
}

void FcProducts::weights_panel(uint32_t batch, uint32_t part, float* dw, float* db) {
  const auto count = static_cast<uint32_t>(panels_.size());
  const uint32_t n = dz_.width, rows = rows_per_part();
  const uint32_t panel = part % count, first = part / count * rows;
  const Panel& columns = panels_[panel];
  Gemm g = into(
      {dw + static_cast<size_t>(first) * n + columns.column, n - columns.column, n, DType::kF32},
      std::min(rows, x_.width - first));
  g.panels = 1;
  read_kept(batch, panel, &g);
  g.a = kept_x_ + first * depth(batch);
  const bool sums = first == 0;
  if (sums && !packs_dz_) g.b_sums = sums_ + columns.column;
  kernels_.gemm(g);
  if (sums) take_sums(batch, columns, db);
}

void FcProducts::take_sums(uint32_t batch, const Panel& panel, float* db) {
  float* sums = sums_ + panel.column;
  if (packs_dz_) add_parts(sums, row_parts(batch), sums_stride_, panel.columns);
  std::copy_n(sums, panel.columns, db + panel.column);
}

// Some rows of the gradient of few rows and columns, put where they belong; zeros before each of
// them where rows are dead, and after the last.
void FcProducts::weights_rows(uint32_t batch, uint32_t part, float* dw, float* db) {
  const uint32_t n = dz_.width, wide = s_.y.width, rows = rows_per_part();
  const uint32_t first = part * rows, end = std::min(first + rows, x_.width);
  if (n > 0 && end > first) {
    Gemm g = into({small_ + static_cast<size_t>(first) * n, n, n, DType::kF32}, end - first);
    read_kept(batch, 0, &g);
    g.a = kept_x_ + first * depth(batch);
    if (first == 0 && !packs_dz_) g.b_sums = sums_;
    kernels_.gemm(g);
  }
  const auto place = [&](uint32_t row) { return live_x_.all() ? row : live_x_.column(row); };
  uint32_t next = first == 0 ? 0 : place(first - 1) + 1;
  for (uint32_t r = first; r < end; ++r) {
    std::fill(dw + static_cast<size_t>(next) * wide, dw + static_cast<size_t>(place(r)) * wide,
              0.0F);
    next = place(r) + 1;
    live_dz_.spread({small_ + static_cast<size_t>(r) * n, n, n, DType::kF32}, 1,
                    {dw + static_cast<size_t>(place(r)) * wide, wide, wide, DType::kF32});
  }
  if (end == x_.width)
    std::fill(dw + static_cast<size_t>(next) * wide, dw + static_cast<size_t>(s_.x.width) * wide,
              0.0F);
  if (first > 0) return;
  if (packs_dz_) add_parts(sums_, row_parts(batch), sums_stride_, n);
  if (n == 0 || x_.width == 0) sum_dz(batch);
  live_dz_.spread({sums_, n, n, DType::kF32}, 1, {db, wide, wide, DType::kF32});
}

// Where no product has summed up the columns of dz.
void FcProducts::sum_dz(uint32_t batch) {
  if (packs_dz_) return;
  std::fill_n(sums_, dz_.width, 0.0F);
  for (uint32_t b = 0; b < batch; ++b)
    for (uint32_t c = 0; c < dz_.width; ++c) sums_[c] += dz_.f32(b)[c];
}

void FcProducts::backward_weights_all(uint32_t batch, float* dw, float* db) {
  if (looks_backward()) {
    for_sum_rows(0, batch, [&](uint32_t first, uint32_t end) { look_dz(first, end); });
    for (uint32_t p = 0, n = begin_narrow_backward(batch); p < n; ++p) narrow_backward(p);
  }
  keep(0, batch, batch);
  for (uint32_t part = 0; part < weight_parts(); ++part) backward_weights(batch, part, dw, db);
}

void FcProducts::look_x(uint32_t first, uint32_t end) {
  for_sum_rows(first, end, [&](uint32_t begin, uint32_t stop) {
    live_x_.mark(s_.x, begin, stop, marks_x_ + begin / kSumRows * live_x_.words());
  });
}

void FcProducts::look_dz(uint32_t first, uint32_t end) {
  if (!skip_dz_) return;
  for_sum_rows(first, end, [&](uint32_t begin, uint32_t stop) {
    live_dz_.mark(s_.dz, begin, stop, marks_dz_ + begin / kSumRows * live_dz_.words());
  });
}

uint32_t FcProducts::begin_narrow_forward(uint32_t batch) {
  if (batch < kRowsWorth)
    live_x_.set_all();
  else
    live_x_.take(marks_x_, row_parts(batch));
  x_ = live_x_.all() ? s_.x : Tensor{squeezed_x_, live_x_.count(), live_x_.stride(), s_.x.type};
  if (!live_x_.all()) {
    packed_ = false;
    return kernels_.weight_strips(x_.width, 0);
  }
  if (packed_) return 0;
  packed_ = transposed_packed_ = true;
  return kernels_.weight_strips(s_.x.width, s_.dx ? s_.dx.width : 0);
}

void FcProducts::narrow_forward(uint32_t part) {
  if (live_x_.all()) return pack_strips(part, part + 1);
  const uint32_t n = s_.y.width;
  const StripRows rows = kernels_.strip_rows(x_.width, 0, part);
  for (uint32_t r = rows.first; r < rows.end; ++r)
    std::memcpy(small_ + static_cast<size_t>(r) * n,
                weight_given_ + static_cast<size_t>(live_x_.column(r)) * n, n * sizeof(float));
  kernels_.pack_weight(small_, x_.width, n, weight_, 0, nullptr, part, part + 1);
}

uint32_t FcProducts::begin_narrow_backward(uint32_t batch) {
  if (s_.alone) place_scratch(static_cast<char*>(memory_.scratch()));
  if (!skip_dz_ || batch < kRowsWorth)
    live_dz_.set_all();
  else
    live_dz_.take(marks_dz_, row_parts(batch));
  dz_ = live_dz_.all() ? s_.dz
                       : Tensor{squeezed_dz_, live_dz_.count(), live_dz_.stride(), s_.dz.type};
  find_panels();
  // Where x is 0 so is dx, if it is masked: then those columns are left out of it, too.
  narrow_dx_ = !live_x_.all() && s_.dx_mask && !s_.dx_add && s_.dx.width == s_.x.width;
  dx_ = narrow_dx_ ? Tensor{squeezed_dx_, x_.width, live_x_.stride(), s_.dx.type} : s_.dx;
  if (!s_.dx) return 0;
  if (narrow_dx_ || !live_dz_.all()) {
    transposed_packed_ = false;
    return kernels_.weight_strips(dx_.width, dx_.width);
  }
  if (transposed_packed_) return 0;
  transposed_packed_ = true;
  return kernels_.weight_strips(s_.dx.width, s_.dx.width);
}

void FcProducts::narrow_backward(uint32_t part) {
  const uint32_t n = s_.y.width;
  if (!narrow_dx_ && live_dz_.all())
    return kernels_.pack_weight(weight_given_, s_.dx.width, n, nullptr, s_.dx.width, transposed_,
                                part, part + 1);
  const StripRows rows = kernels_.strip_rows(dx_.width, dx_.width, part);
  float* to = small_ + static_cast<size_t>(rows.first) * dz_.width;
  for (uint32_t r = rows.first; r < rows.end; ++r, to += dz_.width)
    live_dz_.squeeze_row(
        weight_given_ + static_cast<size_t>(narrow_dx_ ? live_x_.column(r) : r) * n, to);
  kernels_.pack_weight(small_, dx_.width, dz_.width, nullptr, dx_.width, transposed_, part,
                       part + 1);
}

std::unique_ptr<FcProducts> make_products_on(const GemmKernels* kernels, const FcShape& shape,
                                             NetMemory& memory) {
  if (kernels == nullptr) return nullptr;
  // Units of bf16 pairs are read as 4 aligned-enough bytes.
  const bool odd = shape.x.stride % 2 != 0 || shape.dz.stride % 2 != 0;
  if (shape.x.type == DType::kBf16 && odd) return nullptr;
  return std::make_unique<FcProducts>(shape, memory, *kernels);
}

const GemmKernels* best_gemm_kernels(const FcShape& shape) {
  if (shape.x.type == DType::kBf16) {
    if (cpu_has_amx_bf16()) return &gemm_kernels_amx();
    return cpu_has_avx512_bf16() ? &gemm_kernels_bf16() : nullptr;
  }
  return cpu_has_avx512() ? &gemm_kernels_avx512() : &gemm_kernels_avx2();
}

Result<std::unique_ptr<FcProducts>> make_products(const FcShape& shape, NetMemory& memory) {
  auto products = make_products_on(best_gemm_kernels(shape), shape, memory);
  if (products != nullptr) return products;
  return invalid("this CPU has no products for a layer [{}, {}]", shape.x.width, shape.y.width);
}

}  // namespace flux
