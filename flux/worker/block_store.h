// BlockStore: the open blocks of one worker, between the agent that leases and opens them and the
// lanes that take batches from them.
//
// Lanes share one queue, so that none waits at a block's end; in the sync mode each lane has its
// own, because a round gives a block to each lane. It also collects what lanes have finished until
// the agent tells the coordinator.
// Blocks are leased well ahead (set_target(): a few seconds of work, so that nobody notices a
// coordinator that is away for less), and opened shortly before they are needed (`ahead` batches
// per lane). In the deterministic and sync modes one is leased only when the lane needs a block and
// has finished the one before.
// Threads: every method is safe from any. `wake` and `changed` are called without the lock, from
// whatever thread caused them: they post.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "flux/api/job_port.h"
#include "flux/cluster/lr_schedule.h"
#include "flux/worker/batch_source.h"

namespace flux {

struct OpenBlock {
  BlockLease lease;
  bool evaluate = false;
  uint64_t geometry = 0;
  float lr_scale = 1;        // of the lease
  uint64_t first_batch = 0;  // its position in the run, in batches
  std::shared_ptr<const BlockReader> reader;
  std::vector<std::shared_ptr<const SyncStep>> steps;  // sync: by batch
};

struct BlockStoreOptions {
  uint32_t lanes = 1;
  bool by_lane = false;         // a queue for each lane
  bool only_when_idle = false;  // lease only when everything before is finished
  uint32_t ahead = 4;           // open batches per lane
  uint32_t blocks_max = 512;    // leased and not begun
  LrSchedule lr_schedule = {};  // of the scale that each batch gets
};

// What is to be told to the coordinator.
struct FinishedBatches {
  std::vector<BatchId> applied;
  std::vector<EvalReport> evaluated;
  std::vector<RefusedBatch> refused;
  bool empty() const { return applied.empty() && evaluated.empty() && refused.empty(); }
  void add(FinishedBatches more);
  void add_to(LeaseRequest* request) const;
};

class BlockStore final : public BatchSource {
 public:
  explicit BlockStore(const BlockStoreOptions& options);

  // Before the lanes begin.
  void set_wake(uint32_t lane, std::function<void()> wake);
  void set_changed(std::function<void()> changed);

  // For lanes.
  Next next(uint32_t lane, BatchItem* out) override;
  bool dry() const override;
  bool stopping() const override { return stopping_.load(std::memory_order_relaxed); }
  void applied(uint32_t lane, const BatchId& id) override;
  void refused(uint32_t lane, const BatchId& id, std::string reason) override;
  void evaluated(uint32_t lane, EvalReport report) override;
  void failed(uint32_t lane, const Status& status) override;

  // For the agent. Queues are lanes if they have their own, else there is queue 0.
  uint32_t queues() const { return static_cast<uint32_t>(queues_.size()); }
  // True if a lease is wanted and none is under way; then one is, until lease_over().
  bool begin_lease(uint32_t queue);
  // The same without a wish: a lease is asked for because something must be told now.
  bool begin_telling(uint32_t queue);
  void lease_over(uint32_t queue);
  // So many batches are to be leased ahead, those that are open included.
  void set_target(uint32_t batches);
  // A block is leased; opening() follows when it should be.
  void leased(uint32_t queue, const HeldBlock& block, const BlockLease& lease);
  // True if a leased block should be opened now.
  bool wants_open(uint32_t queue) const;
  // A block of so many batches is being opened; add() follows.
  void opening(uint32_t queue, const BlockLease& lease);
  void add(uint32_t queue, OpenBlock block);
  // No more blocks will come: next() says kEnd when the queue is empty.
  void end(uint32_t queue);
  // Nothing more is handed out, to anybody.
  void stop();
  FinishedBatches take_finished();
  void put_back(FinishedBatches finished);  // was not told
  // Something is finished and untold, and nothing is in hand or in store.
  bool waits_to_tell() const;
  bool anything_to_tell() const;
  // Leased and not finished, whether begun or not.
  std::vector<HeldBlock> held() const;
  uint64_t handed_out() const;  // batches so far
  // A batch was refused and the coordinator is not told yet. In sync mode other workers wait for
  // its verdict, so the agent does not wait for a lease to be wanted.
  bool refused_to_tell() const;
  // The first failure of a lane.
  Status failure() const;

 private:
  struct Queue {
    std::deque<OpenBlock> blocks;
    std::deque<uint32_t> left;  // of each block: mask of batches not handed out
    uint32_t ready = 0;         // batches in `left`
    uint32_t opening = 0;       // batches of blocks being opened
    uint32_t blocks_opening = 0;
    uint32_t unopened = 0;  // batches of blocks that are only leased
    uint32_t blocks_unopened = 0;
    uint32_t unfinished = 0;  // handed out and not acknowledged
    bool needed = false;      // a lane found it empty
    bool leasing = false;
    bool signalled = false;
    bool ended = false;
  };
  uint32_t queue_of(uint32_t lane) const { return options_.by_lane ? lane : 0; }
  struct Held {
    HeldBlock block;
    uint32_t todo = 0;  // mask of batches under the lease
  };
  // A block of test data may have the name of one that is trained.
  using HeldKey = std::pair<bool, BlockId>;
  bool wants_lease(const Queue& queue) const;
  bool wants_open(const Queue& queue) const;
  bool holds_nothing(const Queue& queue) const;
  void finish(bool evaluate, const BatchId& id, bool refused);
  // Whether the agent has to look; with the lock held.
  bool should_signal(Queue* queue);
  bool quiet() const;
  void finished_one(uint32_t lane);
  void wake_lanes(uint32_t queue);

  const BlockStoreOptions options_;
  std::function<void()> changed_;
  std::vector<std::function<void()>> wake_;
  std::atomic<bool> stopping_{false};

  mutable std::mutex mutex_;
  std::vector<Queue> queues_;
  std::map<HeldKey, Held> held_;
  uint32_t target_ = 0;
  uint64_t handed_out_ = 0;
  FinishedBatches finished_;
  Status failure_;
};

}  // namespace flux
