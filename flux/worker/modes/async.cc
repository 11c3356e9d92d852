// async: each lane pushes its own batches; nobody waits for anybody.
//
// Staleness: a batch is computed with rows pulled at most `pull_ahead` batches earlier, while at
// most `pushes_max` pushes of this lane are not applied; other lanes push meanwhile.
#include "flux/worker/mode.h"

namespace flux {
namespace {

class AsyncLane final : public LaneMode {
 public:
  explicit AsyncLane(std::shared_ptr<LaneHost> host) : host_(std::move(host)) {}
  bool may_pull(size_t) const override { return true; }
  bool may_compute() const override { return host_->client->has_room(); }
  void push(BatchWorkPtr work) override { host_->client->push(single_push(host_, work)); }
  std::string waits() const override {
    return "the acknowledgement of " + host_->client->waits_for_push();
  }

 private:
  std::shared_ptr<LaneHost> host_;
};

class Async final : public WorkerMode {
 public:
  std::unique_ptr<LaneMode> lane(std::shared_ptr<LaneHost> host) override {
    return std::make_unique<AsyncLane>(std::move(host));
  }
};

}  // namespace

std::unique_ptr<WorkerMode> make_async(const ModeOptions&) {
  return std::make_unique<Async>();
}

}  // namespace flux
