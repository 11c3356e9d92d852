// SimNetwork: messages that get lost, doubled, delayed and so reordered, as a seed decides.
// A message is a closure over copies of what it carries; nodes are numbers with a boot count, so
// that what was sent to a crashed process never reaches its successor. Not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "flux/testing/sim_executor.h"

namespace flux {

struct SimFaults {
  double lost = 0;
  double doubled = 0;
  TimeNs delay_max = 20 * kMillisecond;
};

class SimNetwork {
 public:
  SimNetwork(SimExecutor* executor, SimFaults faults) : executor_(executor), faults_(faults) {}

  void send(const std::function<void()>& deliver) {
    Random& random = executor_->random();
    ++sent_;
    if (random.chance(faults_.lost)) return;
    const int copies = random.chance(faults_.doubled) ? 2 : 1;
    for (int i = 0; i < copies; ++i)
      executor_->post(static_cast<TimeNs>(random.below(faults_.delay_max)), deliver);
  }
  // From now on the network is perfect, so that what is left can finish.
  void heal() { faults_ = SimFaults{}; }
  uint64_t sent() const { return sent_; }

 private:
  SimExecutor* executor_;
  SimFaults faults_;
  uint64_t sent_ = 0;
};

}  // namespace flux
