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

struct Case {
  std::string name;
  OptimizerOptions options;
};

// Every rule as it is, and those settings that take another way through the code.
std::vector<Case> cases() {
  std::vector<Case> all;
  for (const std::string& rule : optimizer_rules()) all.push_back({rule, {.rule = rule}});
  using O = OptimizerOptions;
  all.push_back({"adagrad_started", O{.rule = "adagrad", .initial_accumulator = 0.1F}});
  all.push_back({"momentum_nesterov", O{.rule = "momentum", .momentum = 0.7F, .nesterov = true}});
  all.push_back({"sgd_shaped", O{.rule = "sgd",
                                 .l1 = 0.3F,
                                 .l2 = 0.2F,
                                 .clip = 1.1F,
                                 .clip_norm = 1.7F,
                                 .weight_min = -0.6F,
                                 .weight_max = 0.9F}});
  all.push_back({"adam_l2", O{.rule = "adam", .l2 = 0.2F}});
  all.push_back({"adagrad_l1", O{.rule = "adagrad", .l1 = 0.2F}});
  all.push_back({"adamw_clipped", O{.rule = "adamw", .weight_decay = 0.5F, .clip = 0.4F}});
  all.push_back({"rmsprop_norm", O{.rule = "rmsprop", .decay = 0.5F, .clip_norm = 0.8F}});
  all.push_back({"ftrl_sparse", O{.rule = "ftrl", .beta = 0.2F, .l1 = 1.0F, .l2 = 0.1F}});
  all.push_back({"ftrl_bounded", O{.rule = "ftrl", .clip = 1.0F, .weight_max = 0.01F}});
  all.push_back({"group_ftrl_sparse", O{.rule = "group_ftrl", .l1 = 1.0F, .l2 = 0.1F}});
  all.push_back({"sum_bounded", O{.rule = "sum", .weight_min = -0.5F}});
  all.push_back({"summary_short", O{.rule = "summary", .decay = 0.5F}});
  return all;
}

class RuleTest : public testing::TestWithParam<Case> {
 protected:
  const OptimizerOptions& options() const { return GetParam().options; }

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
    EXPECT_EQ(bits(a) == bits(c), scale == 1.0F || !find_rule(other.rule)->has_lr) << scale;
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

INSTANTIATE_TEST_SUITE_P(Rules, RuleTest, testing::ValuesIn(cases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace flux
