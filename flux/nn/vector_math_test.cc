#include "flux/nn/vector_math.h"

#include <gtest/gtest.h>

namespace flux {
namespace {

TEST(VectorMath, AgreesWithDouble) {
  for (int i = -60000; i <= 60000; ++i) {
    const float x = static_cast<float>(i) * 1e-3F;
    const double d = x;
    const double e = std::exp(-std::fabs(d));
    EXPECT_NEAR(exp_of(-std::fabs(x)) / e, 1, 2e-6) << x;
    const double s = d >= 0 ? 1 / (1 + e) : e / (1 + e);
    EXPECT_NEAR(sigmoid(x) / s, 1, 2e-6) << x;
    const double t = std::tanh(d);
    EXPECT_NEAR(tanh_of(x), t, 2e-6 * std::fabs(t)) << x;
    for (const float y : {0.0F, 1.0F}) {
      const double loss = std::log1p(e) + std::max(d, 0.0) - y * d;
      EXPECT_NEAR(logistic_loss_of(x, y), loss, 1e-6 * std::max(1.0, std::fabs(d)) * 2) << x;
    }
  }
}

TEST(VectorMath, ExtremesStayFinite) {
  for (const float x : {-1e30F, -1000.0F, -100.0F, 100.0F, 1000.0F, 1e30F}) {
    EXPECT_TRUE(std::isfinite(logistic_loss_of(x, 1.0F)));
    EXPECT_EQ(sigmoid(x), x > 0 ? 1.0F : sigmoid(-1000.0F));
    EXPECT_LT(sigmoid(-1000.0F), 1e-37F);
    EXPECT_EQ(tanh_of(x), x > 0 ? 1.0F : -1.0F);
  }
}

}  // namespace
}  // namespace flux
