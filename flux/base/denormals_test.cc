#include "flux/base/denormals.h"

#include <thread>

#include <gtest/gtest.h>

namespace flux {
namespace {

// As moments of a weight without gradient: each step keeps nine tenths.
float shrunk(int steps) {
  volatile float value = 1;
  for (int i = 0; i < steps; ++i) value = value * 0.9F;
  return value;
}

TEST(Denormals, NumbersThatShrinkBecomeZeroAlsoInNewThreads) {
  EXPECT_GT(shrunk(2000), 0) << "by itself such a number never becomes zero";
  float here = 1, there = 1;
  std::thread([&] {
    flush_denormals();
    here = shrunk(2000);
    std::thread([&] { there = shrunk(2000); }).join();
  }).join();
  EXPECT_EQ(here, 0);
  EXPECT_EQ(there, 0);
  EXPECT_GT(shrunk(2000), 0) << "of those threads alone";
}

}  // namespace
}  // namespace flux
