// sync: a push names its step of a round; it is answered when every worker's batch of that step is
// in and their mean is applied. One push at a time; the next pull comes after its answer, while
// earlier ones may still wait to be replicated.
//
// Staleness: none. Every batch is computed with rows that hold all earlier steps and no later one.
#include "flux/worker/mode.h"

namespace flux {
namespace {

class Sync final : public Mode {
 public:
  bool may_pull(const PsClient& client, size_t pulled) const override {
    return pulled == 0 && client.unapplied() == 0;
  }
  bool may_compute(const PsClient& client) const override {
    return client.unapplied() == 0 && client.has_room();
  }
  std::string waits(const PsClient& client) const override {
    return "the other members of the step, at " + client.waits_for_push();
  }
  bool in_rounds() const override { return true; }
};

}  // namespace

std::unique_ptr<Mode> make_sync() {
  return std::make_unique<Sync>();
}

}  // namespace flux
