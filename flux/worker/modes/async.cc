// async: a worker pushes its batches and goes on; no worker waits for another.
//
// Staleness: a batch is computed with rows pulled at most `pull_ahead` batches earlier, while at
// most `pushes_max` pushes of this worker are not applied; other workers push meanwhile.
#include "flux/worker/mode.h"

namespace flux {
namespace {

class Async final : public Mode {
 public:
  bool may_pull(const PsClient&, size_t) const override { return true; }
  bool may_compute(const PsClient& client) const override { return client.has_room(); }
  std::string waits(const PsClient& client) const override {
    return "the acknowledgement of " + client.waits_for_push();
  }
};

}  // namespace

std::unique_ptr<Mode> make_async() {
  return std::make_unique<Async>();
}

}  // namespace flux
