// check_members(): a net computes the same bits whether one thread works on a batch or several do.
// What tests of operators and nets call beside check_net(). Slow on purpose; starts threads.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "flux/nn/graph.h"
#include "flux/nn/net.h"

namespace flux {

struct MembersCheck {
  Precision precision = Precision::kFp32;
  uint32_t batch = 197;  // rows of the largest of the batches; they shrink from step to step
  uint32_t row_count = 61;
  uint32_t steps = 3;
  uint64_t seed = 1;
  float first_bias = 0;  // added to every parameter at first: makes units of a relu die
};

// "" when teams of 2, 3 and 8 agree with one thread, else what differs first.
std::string check_members(const std::shared_ptr<const Graph>& graph, const MembersCheck& check);

}  // namespace flux
