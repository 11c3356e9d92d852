// Rules against their textbook formulas in double, and on the way to a known minimum.
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "flux/base/random.h"
#include "flux/optimizer/optimizer.h"

namespace flux {
namespace {

using O = OptimizerOptions;

// One vector of weights with its state.
struct Row {
  std::unique_ptr<const Optimizer> rule;
  size_t dim;
  std::vector<float> floats;

  Row(const O& options, size_t n, float start)
      : rule(std::move(make_optimizer(options)).value()),
        dim(n),
        floats(n + rule->state_size(n), start) {
    rule->init_state(state(), dim);
  }
  float* state() { return floats.data() + dim; }
  void update(const std::vector<float>& gradient) {
    rule->update(floats.data(), state(), gradient.data(), dim);
  }
};

std::vector<float> draw_gradient(Random& random, size_t dim) {
  std::vector<float> g(dim);
  for (float& x : g) x = static_cast<float>(random.normal());
  return g;
}

// The folded form against the textbook's, in double.
TEST(AdamTest, FollowsTheTextbook) {
  const double decay = 0.3;
  for (const bool decoupled : {false, true}) {
    O o{.rule = decoupled ? "adamw" : "adam", .lr = 0.01F};
    if (decoupled) o.weight_decay = static_cast<float>(decay);
    Row row(o, 33, 0.25F);
    std::vector<double> w(33, 0.25), m(33, 0.0), v(33, 0.0);
    Random random(5);
    for (int t = 1; t <= 200; ++t) {
      const std::vector<float> g = draw_gradient(random, 33);
      row.update(g);
      for (size_t i = 0; i < 33; ++i) {
        m[i] = 0.9 * m[i] + 0.1 * g[i];
        v[i] = 0.999 * v[i] + 0.001 * g[i] * g[i];
        const double mean = m[i] / (1 - std::pow(0.9, t));
        const double square = v[i] / (1 - std::pow(0.999, t));
        if (decoupled) w[i] *= 1 - 0.01 * decay;
        w[i] -= 0.01 * mean / (std::sqrt(square) + 1e-8);
        ASSERT_NEAR(row.floats[i], w[i], 2e-5) << o.rule << " t " << t;
      }
    }
  }
}

TEST(AdamSharedTest, KeepsTheMeansOfItsElements) {
  Row row({.rule = "adam_shared", .lr = 0.01F}, 7, 0.25F);
  std::vector<double> w(7, 0.25);
  double m = 0, v = 0;
  Random random(6);
  for (int t = 1; t <= 100; ++t) {
    const std::vector<float> g = draw_gradient(random, 7);
    row.update(g);
    double next_m = 0, next_v = 0;
    for (size_t i = 0; i < 7; ++i) {
      const double mi = 0.9 * m + 0.1 * g[i];
      const double vi = 0.999 * v + 0.001 * g[i] * g[i];
      w[i] -=
          0.01 * (mi / (1 - std::pow(0.9, t))) / (std::sqrt(vi / (1 - std::pow(0.999, t))) + 1e-8);
      next_m += mi / 7;
      next_v += vi / 7;
      ASSERT_NEAR(row.floats[i], w[i], 2e-5) << "t " << t;
    }
    m = next_m;
    v = next_v;
  }
}

TEST(AdagradTest, FollowsTheTextbook) {
  Row row({.initial_accumulator = 0.5F}, 1, 1.0F);
  row.update({2.0F});
  EXPECT_FLOAT_EQ(row.floats[1], 4.5F);
  EXPECT_FLOAT_EQ(row.floats[0], 1.0F - 0.05F * 2.0F / std::sqrt(4.5F));
}

TEST(AdagradSharedTest, SlowsAllElementsByTheirMeanSquare) {
  Row row({.rule = "adagrad_shared", .lr = 0.1F}, 2, 1.0F);
  row.update({3.0F, 4.0F});  // G is still 0
  EXPECT_FLOAT_EQ(row.floats[0], 1.0F - 0.3F);
  EXPECT_FLOAT_EQ(row.floats[1], 1.0F - 0.4F);
  EXPECT_FLOAT_EQ(row.floats[2], 12.5F);
  row.update({1.0F, 0.0F});
  EXPECT_FLOAT_EQ(row.floats[0], 0.7F - 0.1F * std::sqrt(3.0F / 15.5F));
  EXPECT_FLOAT_EQ(row.floats[1], 0.6F);
}

TEST(FtrlTest, FollowsTheTextbook) {
  const double alpha = 0.1, beta = 0.5, l1 = 0.8, l2 = 0.3;
  Row row({.rule = "ftrl", .lr = 0.1F, .beta = 0.5F, .l1 = 0.8F, .l2 = 0.3F}, 5, 0.0F);
  std::vector<double> w(5), z(5), n(5);
  Random random(8);
  int zeros = 0;
  for (int t = 0; t < 300; ++t) {
    const std::vector<float> g = draw_gradient(random, 5);
    row.update(g);
    for (size_t i = 0; i < 5; ++i) {
      const double sigma = (std::sqrt(n[i] + g[i] * g[i]) - std::sqrt(n[i])) / alpha;
      z[i] += g[i] - sigma * w[i];
      n[i] += g[i] * g[i];
      w[i] = std::abs(z[i]) <= l1
                 ? 0
                 : -(z[i] - std::copysign(l1, z[i])) / ((beta + std::sqrt(n[i])) / alpha + l2);
      ASSERT_NEAR(row.floats[i], w[i], 1e-4) << t;
      zeros += row.floats[i] == 0.0F ? 1 : 0;
    }
  }
  EXPECT_GT(zeros, 10) << "the threshold was never met";
  EXPECT_LT(zeros, 1400);
}

TEST(GroupFtrlTest, ARowIsZeroAsAWholeOrNotAtAll) {
  Row row({.rule = "group_ftrl", .lr = 0.1F, .l1 = 1.0F}, 4, 0.0F);
  row.update({1.9F, 0.1F, -0.3F, 0.2F});  // the norm of z is below 1 * sqrt(4)
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(row.floats[i], 0.0F);
  row.update({1.9F, 0.1F, -0.3F, 0.2F});
  const double norm = 2 * std::sqrt(1.9 * 1.9 + 0.1 * 0.1 + 0.3 * 0.3 + 0.2 * 0.2);
  const double z[] = {3.8, 0.2, -0.6, 0.4};
  for (size_t i = 0; i < 4; ++i) {
    const double root = std::sqrt(2.0) * std::abs(z[i]) / 2;
    EXPECT_NEAR(row.floats[i], -z[i] * (1 - 2 / norm) / ((1 + root) / 0.1), 1e-6) << i;
  }
}

TEST(GroupFtrlTest, ARowOfOneWeightIsFtrl) {
  Row group({.rule = "group_ftrl", .lr = 0.1F, .l1 = 0.7F, .l2 = 0.2F}, 1, 0.5F);
  Row plain({.rule = "ftrl", .lr = 0.1F, .l1 = 0.7F, .l2 = 0.2F}, 1, 0.5F);
  Random random(4);
  for (int t = 0; t < 100; ++t) {
    const std::vector<float> g = draw_gradient(random, 1);
    group.update(g);
    plain.update(g);
    ASSERT_NEAR(group.floats[0], plain.floats[0], 1e-5) << t;
  }
}

TEST(SumTest, AddsWithoutALearningRate) {
  Row sum({.rule = "sum"}, 2, 1.0F);
  sum.rule->update(sum.floats.data(), nullptr, std::vector<float>{0.5F, -2.0F}.data(), 2, 0.1F);
  EXPECT_EQ(sum.floats, (std::vector<float>{1.5F, -1.0F}));
  Row summary({.rule = "summary", .decay = 0.5F}, 2, 1.0F);
  summary.rule->update(summary.floats.data(), nullptr, std::vector<float>{3.0F, 0.0F}.data(), 2,
                       0.1F);
  EXPECT_EQ(summary.floats, (std::vector<float>{3.5F, 0.5F}));
}

TEST(ShapingTest, ClipsPenalisesAndBounds) {
  Row clipped({.rule = "sgd", .lr = 1.0F, .clip = 2.0F}, 3, 0.0F);
  clipped.update({5.0F, -5.0F, 1.0F});
  EXPECT_EQ(clipped.floats, (std::vector<float>{-2.0F, 2.0F, -1.0F}));
  Row normed({.rule = "sgd", .lr = 1.0F, .clip_norm = 1.0F}, 2, 0.0F);
  normed.update({3.0F, 4.0F});
  EXPECT_FLOAT_EQ(normed.floats[0], -0.6F);
  EXPECT_FLOAT_EQ(normed.floats[1], -0.8F);
  normed.update({0.3F, 0.4F});
  EXPECT_FLOAT_EQ(normed.floats[0], -0.9F) << "a short gradient stays as it is";
  Row penalised({.rule = "sgd", .lr = 1.0F, .l1 = 0.25F, .l2 = 0.5F}, 1, -2.0F);
  penalised.update({0.0F});
  EXPECT_FLOAT_EQ(penalised.floats[0], -2.0F + 1.0F + 0.25F);
  Row bounded({.rule = "sgd", .lr = 1.0F, .weight_min = -1.0F, .weight_max = 2.0F}, 2, 0.0F);
  bounded.update({5.0F, -5.0F});
  EXPECT_EQ(bounded.floats, (std::vector<float>{-1.0F, 2.0F}));
}

class ConvergenceTest : public testing::TestWithParam<O> {};

// The minimum of sum a_i (w_i - t_i)^2 / 2, with a_i from 0.5 to 2. `sum` gets finished steps.
TEST_P(ConvergenceTest, ReachesAKnownMinimum) {
  const size_t dim = 11;
  Row row(GetParam(), dim, 0.1F);
  const bool steps = GetParam().rule == "sum";
  std::vector<float> g(dim);
  for (int t = 0; t < 6000; ++t) {
    for (size_t i = 0; i < dim; ++i) {
      const float a = 0.5F + 0.15F * static_cast<float>(i);
      const float target = 0.3F * static_cast<float>(i) - 1.4F;
      g[i] = a * (row.floats[i] - target) * (steps ? -0.05F : 1.0F);
    }
    row.update(g);
  }
  for (size_t i = 0; i < dim; ++i)
    EXPECT_NEAR(row.floats[i], 0.3F * static_cast<float>(i) - 1.4F, 0.02F) << i;
}

INSTANTIATE_TEST_SUITE_P(
    Rules, ConvergenceTest,
    testing::Values(O{.rule = "sgd"}, O{.rule = "momentum", .lr = 0.01F},
                    O{.rule = "momentum", .lr = 0.01F, .nesterov = true},
                    O{.rule = "adagrad", .lr = 0.5F}, O{.rule = "adagrad_shared", .lr = 0.5F},
                    O{.rule = "adam", .lr = 0.01F}, O{.rule = "adam_shared", .lr = 0.03F},
                    O{.rule = "adamw", .lr = 0.01F, .weight_decay = 0.0F},
                    O{.rule = "ftrl", .lr = 1.0F}, O{.rule = "group_ftrl", .lr = 1.0F},
                    O{.rule = "rmsprop", .lr = 0.001F}, O{.rule = "sum"}),
    [](const auto& info) { return info.param.rule + (info.param.nesterov ? "_nesterov" : ""); });

TEST(SummaryTest, TendsToTheSumOfADecayedSeries) {
  Row row({.rule = "summary", .decay = 0.9F}, 1, 0.0F);
  for (int t = 0; t < 300; ++t) row.update({2.0F});
  EXPECT_NEAR(row.floats[0], 20.0F, 1e-3F);
}

}  // namespace
}  // namespace flux
