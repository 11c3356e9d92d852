#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "flux/nn/operator_check.h"
#include "flux/nn/operator_run.h"

namespace flux {
namespace {

TEST(Relu, ForwardAndGradientOfRandomShapes) {
  EXPECT_EQ("", check_random_operators(20, [](Random& random) -> OperatorCase {
              return {"relu", {{between(random, 1, 5), between(random, 1, 9)}}};
            }));
}

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

void expect_alike(const std::vector<float>& got, const std::vector<float>& want,
                  const std::string& what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  for (size_t i = 0; i < want.size(); ++i)
    EXPECT_TRUE(std::isnan(want[i]) ? std::isnan(got[i]) : got[i] == want[i])
        << what << " " << i << ": " << got[i] << " for " << want[i];
}

// The operator, and the activation of a layer of one unit and of more (other kernels): NaN stays,
// what is not above 0 passes no gradient, be it NaN.
TEST(Relu, NanAndInfinitiesGoOneWayEverywhere) {
  const std::vector<float> x = {kNan, kInf, -kInf, -1, 2, -3, 4};
  const std::vector<float> dy = {1, 2, 3, kNan, kNan, -kInf, kInf};
  const std::vector<float> y = {kNan, kInf, 0, 0, 2, 0, 4};
  const std::vector<float> dx = {0, 2, 0, 0, kNan, 0, kInf};
  const auto batch = static_cast<uint32_t>(x.size());
  OperatorRun relu;
  relu.op = "relu";
  relu.batch = batch;
  relu.inputs = {{1, 1, x}};
  relu.output_gradient = dy;
  const auto alone = run_operator(relu);
  ASSERT_TRUE(alone.is_ok()) << alone.status().message();
  expect_alike(alone.value().output, y, "relu");
  expect_alike(alone.value().gradients[0], dx, "gradient of relu");
  for (const uint32_t units : {1U, 3U, 20U}) {
    OperatorRun fc;
    fc.op = "fc";
    fc.attrs = {{"units", int64_t{units}}, {"activation", std::string("relu")}};
    fc.batch = batch;
    fc.inputs = {{1, 1, x}};
    fc.parameters.assign(units, 1.0F);
    fc.parameters.resize(2 * units);  // no bias
    // Each gets the whole gradient once, so that sums are those of one number and zeros.
    std::vector<float> wide, first;
    for (uint32_t b = 0; b < batch; ++b)
      for (uint32_t u = 0; u < units; ++u) {
        wide.push_back(y[b]);
        first.push_back(u == units - 1 ? dy[b] : 0);
      }
    fc.output_gradient = first;
    const auto layer = run_operator(fc);
    ASSERT_TRUE(layer.is_ok()) << layer.status().message();
    expect_alike(layer.value().output, wide, fmt::format("fc of {}", units));
    expect_alike(layer.value().gradients[0], dx, fmt::format("gradient of fc of {}", units));
  }
}

}  // namespace
}  // namespace flux
