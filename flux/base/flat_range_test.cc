#include "flux/base/flat_range.h"

#include <vector>

#include <gtest/gtest.h>

namespace flux {
namespace {

// Against a mark for every position.
TEST(FlatRange, PartsAreWhatEachPositionSays) {
  const std::vector<FlatRange> ranges = {{3, 5}, {5, 6}, {9, 9}, {10, 20}};
  for (uint64_t begin = 0; begin <= 22; ++begin)
    for (uint64_t end = begin; end <= 22; ++end) {
      uint64_t next = begin;
      for_each_part(ranges, begin, end, [&](uint64_t first, uint64_t last, bool inside) {
        EXPECT_EQ(first, next);
        EXPECT_LT(first, last);
        next = last;
        for (uint64_t i = first; i < last; ++i)
          EXPECT_EQ(inside, (i >= 3 && i < 6) || (i >= 10 && i < 20)) << begin << " " << end;
      });
      EXPECT_EQ(next, end);
    }
}

}  // namespace
}  // namespace flux
