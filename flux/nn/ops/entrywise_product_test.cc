#include <gtest/gtest.h>

#include "flux/nn/operator.h"

namespace flux {
namespace {

// So the test of mul is the test of both.
TEST(EntrywiseProduct, IsMulByAnotherName) {
  const OperatorDef *mul = find_operator("mul"), *same = find_operator("entrywise_product");
  ASSERT_NE(same, nullptr);
  EXPECT_EQ(same->infer, mul->infer);
  EXPECT_EQ(same->reference, mul->reference);
  EXPECT_EQ(same->make_kernel, mul->make_kernel);
  EXPECT_EQ(same->info.inputs_min, mul->info.inputs_min);
  EXPECT_EQ(same->info.inputs_max, mul->info.inputs_max);
}

}  // namespace
}  // namespace flux
