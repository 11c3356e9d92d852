#include "flux/nn/fc_products.h"

#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include <gtest/gtest.h>

#include "flux/base/cpu.h"
#include "flux/base/random.h"

namespace flux {
namespace {

enum class Maker : unsigned char { kAvx2, kAvx512, kAmx };

struct Case {
  Maker maker;
  DType type;
  uint32_t in, units, batch;
  uint32_t dx_width = 0;
  bool add = false, mask = false, in_place = false, relu = false;
  bool float_ends = false;  // y and dx in fp32 though the products are bf16
  bool crossed = false;     // y = scale * z + plus, dx + dx_plus
  // Columns that are zero in the whole batch: every so many of x and of dz; 0: none.
  uint32_t dead_x = 0, dead_dz = 0;
  bool odd = false;  // NaN and infinities here and there
};

const GemmKernels* kernels_of(Maker maker, DType type) {
  if (maker == Maker::kAmx) return &gemm_kernels_amx();
  if (maker == Maker::kAvx2) return &gemm_kernels_avx2();
  return type == DType::kBf16 ? &gemm_kernels_bf16() : &gemm_kernels_avx512();
}

// Runs one layer and holds each product against plain loops in double over the same inputs.
class Layer {
 public:
  explicit Layer(const Case& c)
      : c_(c), batch_max_(std::max(37U, c.batch)), random_(c.in * 31 + c.units * 7 + c.batch) {
    const DType ends = c.float_ends ? DType::kF32 : c.type;
    shape_.x = tensor(c.in, c.type);
    shape_.y = tensor(c.units, ends);
    shape_.dz = tensor(c.units, c.type);
    if (c.dx_width > 0) {
      shape_.dx = c.in_place ? shape_.x : tensor(c.in, ends);
      shape_.dx.width = c.dx_width;
    }
    shape_.dx_add = c.add;
    shape_.dx_mask = c.mask;
    shape_.relu = c.relu;
    if (c.crossed) {
      for (Tensor* t : {&shape_.scale, &shape_.plus, &shape_.kept}) *t = tensor(c.units, c.type);
      shape_.dx_plus = tensor(c.in, c.type);
    }
    shape_.skip_x = c.dead_x > 0;
    shape_.skip_dz = c.dead_dz > 0;
    shape_.batch_max = batch_max_;
    weight_.resize(static_cast<size_t>(c.in) * c.units);
    bias_.resize(c.units);
    for (float& w : weight_) w = number();
    for (float& b : bias_) b = number();
    for (const Tensor* t :
         {&shape_.x, &shape_.dz, &shape_.dx, &shape_.scale, &shape_.plus, &shape_.dx_plus})
      if (*t && t->data != nullptr) fill(*t);
    clear(shape_.x, c.dead_x);
    clear(shape_.dz, c.dead_dz);
    if (c.odd) make_odd();
  }

  // In parts as a team computes them, last ones first, and whole: the same bits.
  void check_cuts() {
    const Results whole = results(1), cut = results(3);
    for (size_t i = 0; i < whole.size(); ++i) {
      ASSERT_EQ(whole[i].size(), cut[i].size());
      EXPECT_EQ(std::memcmp(whole[i].data(), cut[i].data(), whole[i].size() * 4), 0) << i;
    }
  }

  void check() {
    std::unique_ptr<FcProducts> products = make();
    ASSERT_NE(products, nullptr);
    skips_ = products->looks_backward();
    products->set_all_parameters(weight_.data(), bias_.data());
    const std::vector<double> x = copy(shape_.x), dz = copy(shape_.dz);
    const std::vector<double> old = shape_.dx ? copy(shape_.dx) : std::vector<double>();
    products->forward_all(c_.batch);
    check_forward(x);
    std::vector<float> dw(weight_.size(), 9.0F), db(c_.units, 9.0F);
    products->backward_weights_all(c_.batch, dw.data(), db.data());
    check_weights(x, dz, dw, db);
    if (!shape_.dx) return;
    products->backward_data_all(c_.batch);
    check_data(x, dz, old);
  }

 private:
  std::unique_ptr<FcProducts> make() {
    return make_products_on(kernels_of(c_.maker, c_.type), shape_, memory_);
  }
  Tensor tensor(uint32_t width, DType type) {
    const uint32_t stride = (width + 31) / 32 * 32;
    return {memory_.allocate(static_cast<size_t>(stride) * batch_max_ * dtype_size(type)), width,
            stride, type};
  }
  // y, dw, db and dx.
  using Results = std::array<std::vector<float>, 4>;
  Results results(uint32_t members) {
    shape_.members = members;
    const auto products = make();
    products->set_parameters(weight_.data(), bias_.data());
    std::vector<float> dw(weight_.size(), 9.0F), db(c_.units, 9.0F);
    backwards(products->pack_parts(), [&](uint32_t part) { products->pack(part); });
    const auto rows = [&](const auto& work) {
      constexpr uint32_t kRows = 2 * kGemmRows;
      backwards((c_.batch + kRows - 1) / kRows, [&](uint32_t piece) {
        const uint32_t first = piece * kRows;
        members > 1 ? work(first, std::min(first + kRows, c_.batch)) : void();
      });
      if (members == 1) work(0, c_.batch);
    };
    if (products->looks_forward())
      rows([&](uint32_t first, uint32_t end) { products->look_x(first, end); });
    backwards(products->looks_forward() ? products->begin_narrow_forward(c_.batch) : 0,
              [&](uint32_t part) { products->narrow_forward(part); });
    rows([&](uint32_t first, uint32_t end) { products->forward(first, end); });
    if (products->looks_backward())
      rows([&](uint32_t first, uint32_t end) { products->look_dz(first, end); });
    backwards(products->looks_backward() ? products->begin_narrow_backward(c_.batch) : 0,
              [&](uint32_t part) { products->narrow_backward(part); });
    rows([&](uint32_t first, uint32_t end) { products->keep(first, end, c_.batch); });
    rows([&](uint32_t first, uint32_t end) { products->backward_data(first, end); });
    backwards(products->weight_parts(), [&](uint32_t part) {
      products->backward_weights(c_.batch, part, dw.data(), db.data());
    });
    return {floats(shape_.y), dw, db, floats(shape_.dx)};
  }
  template <typename Work>
  static void backwards(uint32_t parts, const Work& work) {
    while (parts-- > 0) work(parts);
  }
  std::vector<float> floats(const Tensor& t) const {
    const std::vector<double> all = copy(t);
    return {all.begin(), all.begin() + static_cast<ptrdiff_t>(c_.batch) * t.width};
  }

  void make_odd() {
    constexpr float kInf = std::numeric_limits<float>::infinity();
    const float nan = std::numeric_limits<float>::quiet_NaN();
    set(shape_.x, 1, c_.in / 2, nan);
    set(shape_.x, 3, 0, kInf);
    set(shape_.dz, 2, c_.units / 3, -nan);
    set(shape_.dz, 4, 0, -kInf);
    bias_[c_.units / 2] = nan;
    if (c_.dead_x + c_.dead_dz > 0) return;  // parameters must be finite then
    weight_[weight_.size() / 2] = nan;
    weight_[weight_.size() / 3] = kInf;
  }
  void set(const Tensor& t, uint32_t b, uint32_t column, float value) const {
    std::vector<float> row(t.width);
    const float* from = read_row(t, b, row.data());
    if (from != row.data()) row.assign(from, from + t.width);
    row[column] = value;
    write_row(t, b, row.data(), false);
  }
  static void expect(double got, double want, double slack, const char* what, uint32_t row,
                     uint32_t column) {
    if (std::isfinite(want)) {
      ASSERT_NEAR(got, want, std::isfinite(slack) ? slack : 0)
          << what << " " << row << "," << column;
    } else {
      ASSERT_TRUE(std::isnan(want) ? std::isnan(got) : got == want)
          << what << " " << row << "," << column << ": " << got << " for " << want;
    }
  }

  float number() { return static_cast<float>(random_.normal()); }
  void fill(const Tensor& t) {
    std::vector<float> row(t.width);
    for (uint32_t b = 0; b < batch_max_; ++b) {
      for (float& value : row) value = number();
      write_row(t, b, row.data(), false);
    }
  }
  void clear(const Tensor& t, uint32_t every) const {
    for (uint32_t b = 0; b < batch_max_ && every > 0; ++b) {
      std::vector<float> row(t.width);
      const float* from = read_row(t, b, row.data());
      if (from != row.data()) row.assign(from, from + t.width);
      for (uint32_t i = 0; i < t.width; i += every) row[i] = b % 4 == 0 ? -0.0F : 0.0F;
      write_row(t, b, row.data(), false);
    }
  }
  std::vector<double> copy(const Tensor& t) const {
    std::vector<double> all;
    std::vector<float> scratch(t.width);
    for (uint32_t b = 0; b < batch_max_; ++b) {
      const float* row = read_row(t, b, scratch.data());
      all.insert(all.end(), row, row + t.width);
    }
    return all;
  }
  double weight(uint32_t k, uint32_t n) const {
    const float w = weight_[static_cast<size_t>(k) * c_.units + n];
    return c_.type == DType::kBf16 ? bf16_to_float(float_to_bf16(w)) : w;
  }
  // Rounding of the stored type, and of fp32 sums of terms of this total size.
  static double slack(DType stored, double value, double terms) {
    return (stored == DType::kBf16 ? std::fabs(value) / 250 : 0) + 3e-6 * (terms + 1);
  }

  void check_forward(const std::vector<double>& x) const {
    const std::vector<double> y = copy(shape_.y);
    std::vector<double> scale, plus, kept;
    if (c_.crossed) scale = copy(shape_.scale), plus = copy(shape_.plus), kept = copy(shape_.kept);
    for (uint32_t b = 0; b < c_.batch; ++b) {
      for (uint32_t n = 0; n < c_.units; ++n) {
        double want = bias_[n], terms = 0;
        for (uint32_t k = 0; k < c_.in; ++k) {
          want += x[b * c_.in + k] * weight(k, n);
          terms += std::fabs(x[b * c_.in + k] * weight(k, n));
        }
        if (c_.relu && want < 0) want = 0;  // keeps NaN
        if (c_.crossed) {
          const size_t at = b * c_.units + n;
          expect(kept[at], want, slack(c_.type, want, terms), "kept", b, n);
          want = want * scale[at] + plus[at];
          terms = terms * std::fabs(scale[at]) + std::fabs(plus[at]);
        }
        expect(y[b * c_.units + n], want, slack(shape_.y.type, want, terms), "y", b, n);
      }
    }
  }
  bool dead(const std::vector<double>& matrix, uint32_t width, uint32_t column) const {
    for (uint32_t b = 0; b < c_.batch; ++b)
      if (matrix[b * width + column] != 0) return false;
    return true;
  }
  void check_weights(const std::vector<double>& x, const std::vector<double>& dz,
                     const std::vector<float>& dw, const std::vector<float>& db) const {
    for (uint32_t n = 0; n < c_.units; ++n) {
      double sum = 0;
      for (uint32_t b = 0; b < c_.batch; ++b) sum += dz[b * c_.units + n];
      expect(db[n], sum, 1e-4, "db", 0, n);
      for (uint32_t k = 0; k < c_.in; ++k) {
        double want = 0;
        for (uint32_t b = 0; b < c_.batch; ++b) want += x[b * c_.in + k] * dz[b * c_.units + n];
        // The contract of skip_zeros, where the CPU can: what a dead column meets does not matter.
        if (skips_ && (dead(x, c_.in, k) || dead(dz, c_.units, n))) want = 0;
        expect(dw[k * c_.units + n], want, 2e-4, "dw", k, n);
      }
    }
  }
  void check_data(const std::vector<double>& x, const std::vector<double>& dz,
                  const std::vector<double>& old) const {
    const std::vector<double> dx = copy(shape_.dx);
    const uint32_t width = c_.dx_width;
    const std::vector<double> plus = c_.crossed ? copy(shape_.dx_plus) : std::vector<double>();
    for (uint32_t b = 0; b < c_.batch; ++b) {
      for (uint32_t k = 0; k < width; ++k) {
        double want = c_.add ? old[b * width + k] : 0, terms = 0;
        for (uint32_t n = 0; n < c_.units; ++n) {
          want += dz[b * c_.units + n] * weight(k, n);
          terms += std::fabs(dz[b * c_.units + n] * weight(k, n));
        }
        if (c_.crossed) want += plus[b * c_.in + k];
        if (c_.mask && !(x[b * c_.in + k] > 0)) want = 0;  // where x is NaN, too
        expect(dx[b * width + k], want, slack(shape_.dx.type, want, terms), "dx", b, k);
      }
    }
  }

  Case c_;
  bool skips_ = false;
  uint32_t batch_max_;
  Random random_;
  NetMemory memory_;
  FcShape shape_;
  std::vector<float> weight_, bias_;
};

class FcProductsTest : public testing::TestWithParam<Case> {};

TEST_P(FcProductsTest, AgreeWithPlainLoops) {
  Layer(GetParam()).check();
}

class FcProductsCutTest : public testing::TestWithParam<Case> {};

TEST_P(FcProductsCutTest, PartsInAnyOrderGiveTheSameBits) {
  Layer(GetParam()).check_cuts();
}

bool on_this_cpu(Maker maker, DType type) {
  if (maker == Maker::kAvx2) return type == DType::kF32;
  if (maker == Maker::kAmx) return type == DType::kBf16 && cpu_has_amx_bf16();
  if (type == DType::kBf16) return cpu_has_avx512_bf16();
  return cpu_has_avx512();
}

const char* name_of(Maker maker) {
  if (maker == Maker::kAvx2) return "avx2";
  return maker == Maker::kAmx ? "amx" : "avx512";
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const Maker maker : {Maker::kAvx2, Maker::kAvx512, Maker::kAmx}) {
    for (const DType type : {DType::kF32, DType::kBf16}) {
      if (!on_this_cpu(maker, type)) continue;
      for (const uint32_t batch : {1U, 2U, 7U, 8U, 33U, 37U}) {
        all.push_back({maker, type, 16, 16, batch, 16});
        all.push_back({maker, type, 19, 33, batch, 19, false, true, true, true});
      }
      for (const uint32_t width : {2U, 15U, 17U, 31U, 48U, 50U, 65U, 80U, 100U}) {
        all.push_back({maker, type, width, 40, 37, width / 2 + 1, true});
        all.push_back({maker, type, 40, width, 29, 40, false, true, false, true});
      }
      all.push_back({maker, type, 273, 400, 37, 260});
      all.push_back({maker, type, 64, 48, 37, 0});
      all.push_back({maker, type, 20, 512, 130, 20, false, true, false, true});
      for (const uint32_t width : {9U, 33U, 273U})
        all.push_back({.maker = maker,
                       .type = type,
                       .in = width,
                       .units = width,
                       .batch = 37,
                       .dx_width = width - 4,
                       .add = width > 9,
                       .crossed = true});
    }
    for (const DType type : {DType::kF32, DType::kBf16}) {
      if (!on_this_cpu(maker, type)) continue;
      for (const bool mask : {false, true}) {
        for (const auto& [x, dz] : {std::pair{2U, 0U}, {0U, 3U}, {4U, 2U}, {1U, 3U}, {3U, 1U}}) {
          all.push_back(
              {maker, type, 50, 37, 301, 50, false, mask, mask, true, false, false, x, dz});
          all.push_back(
              {maker, type, 33, 64, 256, 20, true, mask, false, true, false, false, x, dz});
        }
        all.push_back({maker, type, 65, 49, 64, 65, false, mask, false, true, false, false, 2, 2});
      }
      all.push_back({maker, type, 80, 80, 300, 80, false, true, false, true, true, false, 2, 3});
    }
    for (const DType type : {DType::kF32, DType::kBf16}) {
      if (!on_this_cpu(maker, type)) continue;
      for (Case c :
           {Case{maker, type, 50, 41, 37, 50, false, true, false, true},
            Case{maker, type, 33, 48, 20, 20, true, false},
            Case{maker, type, 64, 7, 9, 64, false, true, true, true},
            Case{maker, type, 50, 37, 301, 50, false, true, false, true, false, false, 3, 2}}) {
        c.odd = true;
        all.push_back(c);
      }
      all.push_back({.maker = maker,
                     .type = type,
                     .in = 33,
                     .units = 33,
                     .batch = 37,
                     .dx_width = 30,
                     .crossed = true,
                     .odd = true});
    }
    if (on_this_cpu(maker, DType::kBf16))
      all.push_back({maker, DType::kBf16, 33, 35, 20, 30, true, false, false, true, true});
  }
  return all;
}

// Of several parts each; rows of dz that are packed, and in fp32 rows that are not.
std::vector<Case> cut_cases() {
  std::vector<Case> all;
  for (const Maker maker : {Maker::kAvx2, Maker::kAvx512, Maker::kAmx})
    for (const DType type : {DType::kF32, DType::kBf16}) {
      if (!on_this_cpu(maker, type)) continue;
      all.push_back({maker, type, 273, 130, 500, 200, false, true, false, true});
      all.push_back({maker, type, 400, 512, 300, 400});
      all.push_back(
          {maker, type, 273, 130, 500, 273, false, true, false, true, false, false, 2, 3});
    }
  return all;
}

std::string case_name(const testing::TestParamInfo<Case>& info) {
  const Case& c = info.param;
  return fmt::format("{}_{}_{}x{}_b{}_n{}", name_of(c.maker),
                     c.type == DType::kBf16 ? "bf16" : "fp32", c.in, c.units, c.batch, info.index);
}

INSTANTIATE_TEST_SUITE_P(All, FcProductsTest, testing::ValuesIn(cases()), case_name);
INSTANTIATE_TEST_SUITE_P(All, FcProductsCutTest, testing::ValuesIn(cut_cases()), case_name);

}  // namespace
}  // namespace flux
