#include "flux/cluster/schedule.h"

#include <vector>

#include <gtest/gtest.h>

namespace flux {
namespace {

TEST(Schedule, PhasesThenEpochsInOrder) {
  const Schedule schedule{2, 2, 3};
  ASSERT_EQ(schedule.sections(), 6U);
  std::vector<BlockId> expected;
  for (uint16_t phase = 0; phase < 2; ++phase)
    for (uint16_t epoch = 0; epoch < 3; ++epoch) expected.push_back({1, phase, epoch, 0});
  for (uint32_t i = 0; i < 6; ++i) {
    EXPECT_EQ(schedule.section(1, i), expected[i]);
    EXPECT_EQ(schedule.index(expected[i]), i);
  }
  EXPECT_FALSE(schedule.index({2, 0, 0, 0}));
  EXPECT_FALSE(schedule.index({0, 2, 0, 0}));
  EXPECT_FALSE(schedule.index({0, 0, 3, 0}));
}

}  // namespace
}  // namespace flux
