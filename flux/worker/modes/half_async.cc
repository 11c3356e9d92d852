// half_async: the lanes of one worker merge a batch each into one push, the mean over all their
// examples; all pull again when it is applied. Between workers it is async.
//
// Who must contribute: every lane that has a batch or will soon get one. A lane that found nothing
// to train while nothing is being opened is left out until it has a batch again, so a worker never
// waits for a block that the coordinator will give only after this very push.
#include <algorithm>
#include <deque>
#include <iterator>
#include <mutex>
#include <optional>
#include <utility>

#include "flux/worker/mode.h"

namespace flux {
namespace {

class MergeGroup {
 public:
  explicit MergeGroup(const ModeOptions& options) : options_(options), lanes_(options.lanes) {}

  struct Contribution {
    std::shared_ptr<LaneHost> host;
    BatchWorkPtr work;
    std::function<void()> merged, applied, acknowledged;  // on the lane's thread
  };
  // Each of these returns the whole set if this call completes it: the caller pushes it.
  std::vector<Contribution> contribute(uint32_t lane, Contribution contribution) {
    const std::lock_guard lock(mutex_);
    lanes_[lane].given = std::move(contribution);
    return take_if_complete();
  }
  std::vector<Contribution> leave(uint32_t lane, bool for_good) {
    const std::lock_guard lock(mutex_);
    lanes_[lane].presence = for_good ? Presence::kGone : Presence::kIdle;
    return take_if_complete();
  }
  void come_back(uint32_t lane) {
    const std::lock_guard lock(mutex_);
    lanes_[lane].presence = Presence::kHere;
  }

 private:
  enum class Presence : uint8_t { kHere, kIdle, kGone };
  struct Lane {
    Presence presence = Presence::kHere;
    std::optional<Contribution> given;
  };
  std::vector<Contribution> take_if_complete() {
    for (const Lane& lane : lanes_) {
      if (lane.given || lane.presence == Presence::kGone) continue;
      // One that is idle while something is in store will be woken, and then comes here again.
      if (lane.presence == Presence::kHere || !options_.source->dry()) return {};
    }
    std::vector<Contribution> all;
    for (Lane& lane : lanes_) {
      if (lane.given) all.push_back(std::move(*lane.given));
      lane.given.reset();
    }
    std::sort(all.begin(), all.end(), [](const Contribution& a, const Contribution& b) {
      return a.work->item.id < b.work->item.id;
    });
    return all;
  }

  const ModeOptions options_;
  std::mutex mutex_;
  std::vector<Lane> lanes_;
};

// A push of all contributions; the memory of them and of their sum.
struct Merged {
  Merged(const PsClientOptions& o, uint16_t of) : sum(merged_push(o, of)), phase(of) {}
  MergedPush sum;
  uint16_t phase;
  std::vector<MergeGroup::Contribution> from;
};

// Of one lane, on its thread; outlives it in closures.
struct LaneState {
  bool given = false;    // its batch waits for those of the others
  size_t in_flight = 0;  // given or pushed, not applied
};

class HalfAsyncLane final : public LaneMode {
 public:
  HalfAsyncLane(std::shared_ptr<LaneHost> host, std::shared_ptr<MergeGroup> group,
                PsClientOptions options)
      : host_(std::move(host)), group_(std::move(group)), options_(std::move(options)) {}
  // One batch of each lane in each push: nobody takes a second before all have given theirs, so
  // that the same batches are merged whoever is faster.
  bool may_take() const override { return !state_->given; }
  bool may_pull(size_t pulled) const override { return pulled == 0 && state_->in_flight == 0; }
  bool may_compute() const override { return state_->in_flight == 0; }

  void push(BatchWorkPtr work) override {
    ++state_->in_flight;
    state_->given = true;
    const auto merged = [host = host_, state = state_] {
      state->given = false;
      host->wake();
    };
    const auto applied = [host = host_, state = state_] {
      --state->in_flight;
      host->wake();
    };
    const auto acknowledged = [host = host_, work] { host->acknowledged(work); };
    send(group_->contribute(host_->index, {host_, work, merged, applied, acknowledged}));
  }
  void idle() override { send(group_->leave(host_->index, false)); }
  void busy() override { group_->come_back(host_->index); }
  void end() override { send(group_->leave(host_->index, true)); }
  std::string waits() const override {
    const std::string server = host_->client->waits_for_push();
    return server.empty() ? "the merged push of this worker's lanes"
                          : "the acknowledgement of " + server;
  }

 private:
  // A block that was given to two workers may come late, when the others are in the next phase:
  // that is a push of its own.
  void send(std::vector<MergeGroup::Contribution> all) {
    for (auto first = all.begin(); first != all.end();) {
      const auto last = std::find_if(first, all.end(), [&](const MergeGroup::Contribution& c) {
        return c.work->item.id.block.phase != first->work->item.id.block.phase;
      });
      std::vector<MergeGroup::Contribution> from(std::make_move_iterator(first),
                                                 std::make_move_iterator(last));
      send_phase(std::move(from));
      first = last;
    }
  }
  void send_phase(std::vector<MergeGroup::Contribution> from) {
    if (!host_->client->has_room()) {
      waiting_.push_back(std::move(from));  // pushed when there is room
      return;
    }
    const uint16_t phase = from[0].work->item.id.block.phase;
    if (!spare_ || spare_.use_count() > 1 || spare_->phase != phase)
      spare_ = std::make_shared<Merged>(options_, phase);
    const std::shared_ptr<Merged> merged = spare_;
    merged->from = std::move(from);
    for (MergeGroup::Contribution& c : merged->from) c.host->executor->post(0, std::move(c.merged));
    host_->client->push(work_of(merged));
  }

  PushWork work_of(const std::shared_ptr<Merged>& merged) {
    PushWork push;
    std::vector<uint64_t> examples;
    for (const MergeGroup::Contribution& c : merged->from) {
      push.parts.push_back(c.work->part());
      push.ids.push_back(c.work->item.id);
      examples.push_back(c.work->batch.size);
    }
    const std::vector<float> weights = mean_weights(examples);
    for (size_t i = 0; i < weights.size(); ++i) push.parts[i].weight = weights[i];
    push.lr_scale = merged_lr_scale(push.parts);
    push.pulled = merged->from[0].work->marks;
    for (const MergeGroup::Contribution& c : merged->from) push.pulled.merge(c.work->marks);
    merged->sum.merge(push.parts);
    push.geometry = merged->from[0].work->item.geometry;
    push.keys = merged->sum.keys();
    push.counts = merged->sum.counts();
    push.tables = merged->sum.tables();
    push.dense = merged->sum.dense();
    push.examples = merged->sum.examples();
    push.bytes = merged->sum.bytes();
    push.memory = merged;
    push.applied = [this, merged] {
      for (MergeGroup::Contribution& c : merged->from)
        c.host->executor->post(0, std::move(c.applied));
      send_waiting();
    };
    push.released = [this, merged] {
      for (MergeGroup::Contribution& c : merged->from)
        c.host->executor->post(0, std::move(c.acknowledged));
      merged->from.clear();
      send_waiting();
    };
    return push;
  }
  void send_waiting() {
    if (waiting_.empty() || !host_->client->has_room()) return;
    auto next = std::move(waiting_.front());
    waiting_.pop_front();
    send_phase(std::move(next));
  }

  std::shared_ptr<LaneHost> host_;
  std::shared_ptr<MergeGroup> group_;
  PsClientOptions options_;
  std::shared_ptr<LaneState> state_ = std::make_shared<LaneState>();
  std::deque<std::vector<MergeGroup::Contribution>> waiting_;  // sets without room yet
  std::shared_ptr<Merged> spare_;                              // used again when nobody holds it
};

class HalfAsync final : public WorkerMode {
 public:
  explicit HalfAsync(const ModeOptions& options)
      : options_(options.client), group_(std::make_shared<MergeGroup>(options)) {}
  std::unique_ptr<LaneMode> lane(std::shared_ptr<LaneHost> host) override {
    return std::make_unique<HalfAsyncLane>(std::move(host), group_, options_);
  }

 private:
  PsClientOptions options_;
  std::shared_ptr<MergeGroup> group_;
};

}  // namespace

std::unique_ptr<WorkerMode> make_half_async(const ModeOptions& options) {
  return std::make_unique<HalfAsync>(options);
}

}  // namespace flux
