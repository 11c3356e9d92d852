// The wide kernels against the plain ones; on CPUs without AVX-512 both are the plain ones.
#include "flux/nn/row_kernels.h"

#include <cmath>
#include <cstring>

#include <gtest/gtest.h>

#include "flux/base/cpu.h"
#include "flux/base/random.h"
#include "flux/nn/dot_kernels.h"
#include "flux/nn/gather.h"

namespace flux {
namespace {

constexpr uint32_t kBatch = 21;

struct Matrix {
  Matrix(uint32_t width, DType type, Random& random) {
    tensor.width = width;
    tensor.stride = (width + 31) / 32 * 32;
    tensor.type = type;
    bytes = tensor.stride * kBatch * dtype_size(type);
    tensor.data = memory.allocate(bytes);
    std::vector<float> row(width);
    for (uint32_t b = 0; b < kBatch; ++b) {
      for (float& value : row) value = static_cast<float>(random.normal());
      write_row(tensor, b, row.data(), false);
    }
  }
  Matrix(const Matrix&) = delete;
  bool same_bits(const Matrix& other) const {
    return std::memcmp(tensor.data, other.tensor.data, bytes) == 0;
  }
  NetMemory memory;
  Tensor tensor;
  size_t bytes = 0;
};

class RowKernelsTest : public testing::TestWithParam<DType> {};

TEST_P(RowKernelsTest, GatherAndScatterGiveTheBitsOfPlainCode) {
  for (const uint32_t dim : {1U, 2U, 5U, 8U, 10U, 15U, 16U, 17U, 32U, 40U}) {
    for (const uint32_t slots : {1U, 2U, 26U}) {
      Random random(dim);
      const GatherShape shape{slots, dim, false};
      std::vector<float> rows(13 * dim);
      std::vector<uint32_t> index(kBatch * slots);
      for (float& value : rows) value = static_cast<float>(random.normal());
      for (uint32_t& i : index) i = static_cast<uint32_t>(random.below(13));
      const TableInput in{rows.data(), 13, 0, index.data()};
      // Wider than what is gathered: the columns behind must stay as they are.
      Random one(1), two(1);
      Matrix fast(slots * dim + 20, GetParam(), one), plain(slots * dim + 20, GetParam(), two);
      gather_rows(shape, in, kBatch, slice(fast.tensor, 0, slots * dim));
      gather_rows_plain(shape, in, kBatch, slice(plain.tensor, 0, slots * dim));
      EXPECT_TRUE(fast.same_bits(plain)) << dim << " " << slots;
      std::vector<float> added = rows, plainly = rows;
      scatter_add_rows(shape, in, kBatch, slice(fast.tensor, 3, slots * dim), added.data());
      scatter_add_rows_plain(shape, in, kBatch, slice(fast.tensor, 3, slots * dim), plainly.data());
      EXPECT_EQ(added, plainly) << dim << " " << slots;
    }
  }
}

TEST_P(RowKernelsTest, DotLayersAgreeWithPlainCode) {
  const DotKernels fast = dot_kernels(GetParam()), plain = plain_dot_kernels();
  for (const uint32_t width : {1U, 13U, 16U, 31U, 33U, 400U, 600U}) {
    for (const int variant : {0, 1, 2, 3}) {
      Random random(width), one(2), two(2);
      const Matrix x(width, GetParam(), random);
      const Matrix left(width, GetParam(), one), right(width, GetParam(), two);
      std::vector<float> w(width), g(kBatch), y(kBatch), z(kBatch), dw(width, 3), dv(width, 4);
      for (float& value : w) value = static_cast<float>(random.normal());
      for (float& value : g) value = static_cast<float>(random.normal());
      fast.forward(x.tensor, kBatch, w.data(), 0.5F, y.data());
      plain.forward(x.tensor, kBatch, w.data(), 0.5F, z.data());
      for (uint32_t b = 0; b < kBatch; ++b) EXPECT_NEAR(y[b], z[b], 1e-4) << width;
      KernelInput input;
      input.value = x.tensor;
      input.add = (variant & 1) != 0;
      input.mask_relu = (variant & 2) != 0;
      input.gradient = left.tensor;
      input.gradient.width = (width + 1) / 2;
      fast.backward(input, kBatch, w.data(), g.data(), dw.data());
      input.gradient.data = right.tensor.data;
      plain.backward(input, kBatch, w.data(), g.data(), dv.data());
      for (uint32_t c = 0; c < width; ++c) EXPECT_NEAR(dw[c], dv[c], 1e-4) << width;
      EXPECT_TRUE(left.same_bits(right)) << width << " " << variant;
    }
  }
}

// The plain operators by numeric derivatives: ops/cross_test.cc, ops/fm_test.cc. Here: the bits.
class WideRowKernelsTest : public testing::TestWithParam<DType> {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(WideRowKernelsTest);  // no AVX-512, no such kernel

TEST_P(WideRowKernelsTest, ReluMaskAndCrossGiveTheBitsOfPlainCode) {
  const bool bf16 = GetParam() == DType::kBf16;
  for (const uint32_t width : {1U, 16U, 33U, 70U}) {
    Random random(width), one(1), two(1), three(2), four(2);
    const Matrix y(width, GetParam(), random), x0(width, GetParam(), random);
    const Matrix fast(width, GetParam(), one), plain(width, GetParam(), two);
    const Matrix dz(width, GetParam(), random), dx0(width, GetParam(), three);
    const Matrix plain_dz(width, GetParam(), random), plain_dx0(width, GetParam(), four);
    const auto at = [](const Matrix& m) { return RowsAt{m.tensor.data, m.tensor.stride}; };
    const CrossRows rows{kBatch, width,   at(fast),      at(x0),    at(y),
                         at(dz), at(dx0), width / 2 + 1, width > 20};
    bf16 ? cross_backward_bf16(rows) : cross_backward_f32(rows);
    bf16 ? mask_relu_bf16(kBatch, width, at(y), at(fast))
         : mask_relu_f32(kBatch, width, at(y), at(fast));
    std::vector<float> a(width), b(width), c(width), kept(width), slope(width), other(width);
    for (uint32_t r = 0; r < kBatch; ++r) {
      const float *g = read_row(plain.tensor, r, a.data()), *v = read_row(y.tensor, r, b.data());
      const float* x = read_row(x0.tensor, r, c.data());
      for (uint32_t i = 0; i < width; ++i) {
        slope[i] = g[i] * x[i];
        other[i] = g[i] * v[i];
        kept[i] = v[i] > 0 ? g[i] : 0.0F;
      }
      write_row(plain_dz.tensor, r, slope.data(), false);
      write_row(slice(plain_dx0.tensor, 0, width / 2 + 1), r, other.data(), width > 20);
      write_row(plain.tensor, r, kept.data(), false);
    }
    EXPECT_TRUE(fast.same_bits(plain)) << width;
    EXPECT_TRUE(dz.same_bits(plain_dz)) << width;
    EXPECT_TRUE(dx0.same_bits(plain_dx0)) << width;
  }
}

// What this CPU has kernels for.
std::vector<DType> types_here() {
  std::vector<DType> types = {DType::kF32};
  if (cpu_has_avx512_bf16()) types.push_back(DType::kBf16);
  return types;
}

std::vector<DType> wide_types_here() {
  return cpu_has_avx512() ? types_here() : std::vector<DType>();
}

INSTANTIATE_TEST_SUITE_P(Types, WideRowKernelsTest, testing::ValuesIn(wide_types_here()),
                         [](const auto& info) {
                           return info.param == DType::kF32 ? "fp32" : "bf16";
                         });
INSTANTIATE_TEST_SUITE_P(Types, RowKernelsTest, testing::ValuesIn(types_here()),
                         [](const auto& info) {
                           return info.param == DType::kF32 ? "fp32" : "bf16";
                         });

}  // namespace
}  // namespace flux
