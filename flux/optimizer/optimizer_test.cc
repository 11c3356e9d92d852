#include "flux/optimizer/optimizer.h"

#include <cfloat>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "flux/base/cpu.h"
#include "flux/base/random.h"
#include "flux/optimizer/reference.h"
#include "flux/optimizer/rules.h"

namespace flux {
namespace {

const std::vector<size_t> kDims = {1,  2,  3,  7,  8,  9,  10, 15,  16,  17,
                                   24, 25, 31, 32, 33, 64, 65, 100, 1000};

// The bits of each float; all NaNs count as one, for their payload is not promised.
std::vector<uint32_t> bits(const std::vector<float>& values) {
  std::vector<uint32_t> all(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    if (std::isnan(values[i])) {
      all[i] = 0x7fc00000U;
    } else {
      std::memcpy(&all[i], &values[i], 4);
    }
  }
  return all;
}

float draw(Random& random, bool special) {
  if (special && random.chance(0.5)) {
    const float values[] = {0.0F,    -0.0F,   FLT_TRUE_MIN, -3 * FLT_TRUE_MIN,
                            FLT_MIN, FLT_MAX, -FLT_MAX,     1e20F,
                            -1e-20F, 1e-30F,  INFINITY,     std::nextafter(FLT_MIN, 0.0F)};
    return values[random.below(std::size(values))];
  }
  return static_cast<float>(random.normal());
}

std::unique_ptr<const Optimizer> make(const OptimizerOptions& options, KernelWidth width) {
  return std::move(make_optimizer_of_width(options, width)).value();
}

class RuleTest : public testing::TestWithParam<std::string> {
 protected:
  OptimizerOptions options() const {
    OptimizerOptions o;
    o.rule = GetParam();
    o.initial_accumulator = 0.1F;
    return o;
  }

  // Many steps on n rows by `fast` and by the reference; every float must agree after each.
  // Each step has another scale of the learning rate if there is more than one.
  void compare(const Optimizer& fast, size_t n, size_t dim, bool special, uint64_t seed,
               const std::vector<float>& scales = {1.0F}) const {
    const auto reference = make_reference_optimizer(options());
    const size_t state = fast.state_size(dim);
    ASSERT_EQ(state, reference->state_size(dim));
    const size_t stride = dim + state + 3;  // a gap between rows that nobody may write
    std::vector<float> a(n * stride, 7.0F);
    Random random(seed);
    for (size_t r = 0; r < n; ++r) {
      for (size_t i = 0; i < dim; ++i) a[r * stride + i] = draw(random, special);
      fast.init_state(a.data() + r * stride + dim, dim);
    }
    std::vector<float> b = a;
    std::vector<float> gradients(n * dim);
    std::vector<float*> rows(n);
    for (size_t r = 0; r < n; ++r) rows[r] = a.data() + r * stride;
    for (int step = 0; step < 5; ++step) {
      for (float& g : gradients) g = draw(random, special);
      const float scale = scales[static_cast<size_t>(step) % scales.size()];
      fast.update_rows(rows.data(), gradients.data(), n, dim, scale);
      for (size_t r = 0; r < n; ++r) {
        float* row = b.data() + r * stride;
        reference->update(row, row + dim, gradients.data() + r * dim, dim, scale);
      }
      ASSERT_EQ(bits(a), bits(b)) << "dim " << dim << " step " << step;
    }
  }
};

TEST_P(RuleTest, KernelsOfEveryWidthEqualTheReference) {
  std::vector<KernelWidth> widths = {KernelWidth::kNarrow};
  if (cpu_has_avx512()) widths.push_back(KernelWidth::kWide);
  for (const KernelWidth width : widths) {
    const auto fast = make(options(), width);
    for (size_t dim : kDims) {
      compare(*fast, 5, dim, false, dim);
      compare(*fast, 5, dim, true, dim + 1);
      compare(*fast, 5, dim, false, dim + 2, {0.5F, 3.7F, 1.0F, 1e-3F, 1e3F});
      compare(*fast, 5, dim, true, dim + 3, {1.41421356F, 0.1F});
    }
  }
}

// What a scale means, by a rule that was made with the scaled learning rate.
TEST_P(RuleTest, AScaleIsAnotherLearningRateForOneStep) {
  const size_t dim = 19;
  for (const float scale : {1.0F, 0.25F, 2.0F, 1.7F}) {
    OptimizerOptions other = options();
    other.lr *= scale;
    const auto scaled = make(other, KernelWidth::kBest);
    const auto plain = make(options(), KernelWidth::kBest);
    std::vector<float> a(dim + plain->state_size(dim), 0.5F);
    plain->init_state(a.data() + dim, dim);
    std::vector<float> b = a, c = a, gradient(dim);
    Random random(3);
    for (int step = 0; step < 4; ++step) {
      for (float& g : gradient) g = draw(random, false);
      plain->update(a.data(), a.data() + dim, gradient.data(), dim, scale);
      scaled->update(b.data(), b.data() + dim, gradient.data(), dim);
      plain->update(c.data(), c.data() + dim, gradient.data(), dim);
    }
    EXPECT_EQ(bits(a), bits(b)) << scale;
    EXPECT_EQ(bits(a) == bits(c), scale == 1.0F) << scale;
  }
}

TEST_P(RuleTest, ARepeatedRowIsUpdatedInOrder) {
  const auto fast = make(options(), KernelWidth::kBest);
  const auto reference = make_reference_optimizer(options());
  const size_t dim = 10;
  std::vector<float> a(dim + fast->state_size(dim), 0.5F);
  fast->init_state(a.data() + dim, dim);
  std::vector<float> b = a;
  std::vector<float> gradients(3 * dim);
  for (size_t i = 0; i < gradients.size(); ++i) gradients[i] = 0.1F * static_cast<float>(i);
  float* rows[] = {a.data(), a.data(), a.data()};
  fast->update_rows(rows, gradients.data(), 3, dim);
  for (size_t r = 0; r < 3; ++r) {
    reference->update(b.data(), b.data() + dim, gradients.data() + r * dim, dim);
  }
  EXPECT_EQ(bits(a), bits(b));
}

INSTANTIATE_TEST_SUITE_P(Rules, RuleTest, testing::Values("sgd", "adagrad", "adam"));

// The folded form against the textbook's, in double.
TEST(AdamTest, FollowsTheTextbook) {
  OptimizerOptions o;
  o.rule = "adam";
  o.lr = 0.01F;
  const auto adam = make(o, KernelWidth::kBest);
  const size_t dim = 33;
  std::vector<float> row(dim + adam->state_size(dim), 0.25F);
  adam->init_state(row.data() + dim, dim);
  std::vector<double> w(dim, 0.25);
  std::vector<double> m(dim, 0.0);
  std::vector<double> v(dim, 0.0);
  const double b1 = o.beta1;
  const double b2 = o.beta2;
  Random random(5);
  for (int t = 1; t <= 200; ++t) {
    std::vector<float> g(dim);
    for (float& x : g) x = static_cast<float>(random.normal());
    adam->update(row.data(), row.data() + dim, g.data(), dim);
    for (size_t i = 0; i < dim; ++i) {
      m[i] = b1 * m[i] + (1 - b1) * g[i];
      v[i] = b2 * v[i] + (1 - b2) * g[i] * g[i];
      const double mean = m[i] / (1 - std::pow(b1, t));
      const double square = v[i] / (1 - std::pow(b2, t));
      w[i] -= o.lr * mean / (std::sqrt(square) + o.epsilon);
      ASSERT_NEAR(row[i], w[i], 2e-5) << "t " << t;
    }
  }
}

TEST(AdagradTest, FollowsTheTextbook) {
  OptimizerOptions o;
  o.initial_accumulator = 0.5F;
  const auto adagrad = make(o, KernelWidth::kBest);
  float row[2] = {1.0F, 0.0F};
  adagrad->init_state(row + 1, 1);
  const float g = 2.0F;
  adagrad->update(row, row + 1, &g, 1);
  EXPECT_FLOAT_EQ(row[1], 4.5F);
  EXPECT_FLOAT_EQ(row[0], 1.0F - 0.05F * 2.0F / std::sqrt(4.5F));
}

TEST(OptimizerOptionsTest, RangesAreNamed) {
  const auto message = [](auto change) {
    OptimizerOptions o;
    change(o);
    auto made = make_optimizer(o);
    EXPECT_FALSE(made.is_ok());
    EXPECT_EQ(made.status().code(), Code::kInvalid);
    return made.status().message();
  };
  using O = OptimizerOptions;
  EXPECT_EQ(message([](O& o) { o.lr = 0; }), "optimizer.lr is 0; it must be a number > 0");
  EXPECT_EQ(message([](O& o) { o.lr = NAN; }), "optimizer.lr is nan; it must be a number > 0");
  EXPECT_EQ(message([](O& o) { o.initial_accumulator = -1; }),
            "optimizer.initial_accumulator is -1; it must be a number >= 0");
  EXPECT_EQ(message([](O& o) { o.epsilon = INFINITY; }),
            "optimizer.epsilon is inf; it must be a number > 0");
  EXPECT_EQ(message([](O& o) { o.beta1 = 1; }),
            "optimizer.beta1 is 1; it must be a number in [0, 1)");
  EXPECT_EQ(message([](O& o) { o.beta2 = -0.5F; }),
            "optimizer.beta2 is -0.5; it must be a number in [0, 1)");
  EXPECT_EQ(message([](O& o) { o.rule = "adagard"; }),
            "optimizer.rule 'adagard' is not known; choose one of sgd, adagrad, adam, did you mean "
            "'adagrad'?");
}

TEST(OptimizerOptionsTest, EveryRuleIsMade) {
  for (const std::string& rule : optimizer_rules()) {
    OptimizerOptions o;
    o.rule = rule;
    EXPECT_TRUE(make_optimizer(o).is_ok()) << rule;
  }
}

}  // namespace
}  // namespace flux
