// FlatRange: a range of the flat dense vector, and the walk over what lies inside and outside of a
// few of them. Plain values; pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

namespace flux {

struct FlatRange {
  uint64_t begin = 0;
  uint64_t end = 0;
  bool operator==(const FlatRange&) const = default;
};

// Calls visit(begin, end, inside) for the parts of [begin, end) that lie inside and outside of
// `ranges`, which rise and do not overlap; in order, none empty.
template <typename Visit>
void for_each_part(std::span<const FlatRange> ranges, uint64_t begin, uint64_t end,
                   const Visit& visit) {
  for (const FlatRange& range : ranges) {
    const uint64_t first = std::clamp(range.begin, begin, end);
    const uint64_t last = std::clamp(range.end, begin, end);
    if (first >= last) continue;
    if (begin < first) visit(begin, first, false);
    visit(first, last, true);
    begin = last;
  }
  if (begin < end) visit(begin, end, false);
}

}  // namespace flux
