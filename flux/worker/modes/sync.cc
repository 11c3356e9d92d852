// sync: a lane's push names its step of a round; it is answered when every member's batch of that
// step is in and their mean is applied. One push at a time; the next pull comes after its answer,
// while earlier ones may still wait to be replicated.
//
// Staleness: none. Every batch is computed with rows that hold all earlier steps and no later one.
#include "flux/worker/mode.h"

namespace flux {
namespace {

class SyncLane final : public LaneMode {
 public:
  explicit SyncLane(std::shared_ptr<LaneHost> host) : host_(std::move(host)) {}
  bool may_pull(size_t pulled) const override {
    return pulled == 0 && host_->client->unapplied() == 0;
  }
  bool may_compute() const override {
    return host_->client->unapplied() == 0 && host_->client->has_room();
  }
  void push(BatchWorkPtr work) override { host_->client->push(single_push(host_, work)); }
  std::string waits() const override {
    return "the other members of the step, at " + host_->client->waits_for_push();
  }

 private:
  std::shared_ptr<LaneHost> host_;
};

class Sync final : public WorkerMode {
 public:
  std::unique_ptr<LaneMode> lane(std::shared_ptr<LaneHost> host) override {
    return std::make_unique<SyncLane>(std::move(host));
  }
  bool lanes_lease() const override { return true; }
};

}  // namespace

std::unique_ptr<WorkerMode> make_sync(const ModeOptions&) {
  return std::make_unique<Sync>();
}

}  // namespace flux
