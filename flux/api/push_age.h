// How old a gradient is when it is applied: the examples that were applied between the pull of the
// values that it was computed with and its push.
//
// A server counts the examples that one of its shards applies (server/age_clock.h), which stands
// for all, since a push marks every shard. A pull brings where the count stood, the push names it,
// and the server answers with the difference. A count that ends (its shard moved away) has an id
// that no other has, so an age that cannot be known is not told. Values; pure.
#pragma once

#include <cstdint>

#include "flux/base/log_histogram.h"

namespace flux {

struct AgeMark {
  uint64_t clock = 0;     // which count; 0: none is known
  uint64_t examples = 0;  // where it stood
  bool operator==(const AgeMark&) const = default;
};

using AgeHistogram = LogHistogram<0>;  // in examples, to about 33 million

}  // namespace flux
