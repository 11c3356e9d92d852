// BlockStore: the open blocks of one worker, between the agent that leases and opens them and the
// trainer that takes batches from them. It also collects what the trainer has finished until the
// agent tells the coordinator.
//
// Blocks are leased well ahead (set_target(): a few seconds of work, so that nobody notices a
// coordinator that is away for less), and opened shortly before they are needed (`ahead` batches).
// In the deterministic and sync modes one is leased only when the trainer needs a block and has
// finished the one before.
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
  bool only_when_idle = false;  // lease only when everything before is finished
  uint32_t ahead = 4;           // open batches
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

  // Before the trainer begins.
  void set_wake(std::function<void()> wake);
  void set_changed(std::function<void()> changed);

  // For the trainer.
  Next next(BatchItem* out) override;
  bool stopping() const override { return stopping_.load(std::memory_order_relaxed); }
  void applied(const BatchId& id) override;
  void refused(const BatchId& id, std::string reason) override;
  void evaluated(EvalReport report) override;
  void failed(const Status& status) override;

  // For the agent.
  // True if a lease is wanted and none is under way; then one is, until lease_over().
  bool begin_lease();
  // The same without a wish: a lease is asked for because something must be told now.
  bool begin_telling();
  void lease_over();
  // So many batches are to be leased ahead, those that are open included.
  void set_target(uint32_t batches);
  // A block is leased; opening() follows when it should be.
  void leased(const HeldBlock& block, const BlockLease& lease);
  // True if a leased block should be opened now.
  bool wants_open() const;
  // A block of so many batches is being opened; add() follows.
  void opening(const BlockLease& lease);
  void add(OpenBlock block);
  // No more blocks will come: next() says kEnd when the queue is empty.
  void end();
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
  // Of the trainer.
  Status failure() const;

 private:
  struct Held {
    HeldBlock block;
    uint32_t todo = 0;  // mask of batches under the lease
  };
  // A block of test data may have the name of one that is trained.
  using HeldKey = std::pair<bool, BlockId>;
  // All of these with the lock held.
  bool wants_lease() const;
  bool opens_next() const;
  bool holds_nothing() const;
  void finish(bool evaluate, const BatchId& id, bool refused);
  bool should_signal();  // whether the agent has to look
  bool quiet() const { return holds_nothing() && unfinished_ == 0; }

  // Changes what is finished, then tells the agent if it has to look.
  template <typename F>
  void finished_one(const F& change);

  const BlockStoreOptions options_;
  std::function<void()> changed_;
  std::function<void()> wake_;
  std::atomic<bool> stopping_{false};

  mutable std::mutex mutex_;
  std::deque<OpenBlock> blocks_;
  std::deque<uint32_t> left_;  // of each block: mask of batches not handed out
  uint32_t ready_ = 0;         // batches in `left_`
  uint32_t opening_ = 0;       // batches of blocks being opened
  uint32_t blocks_opening_ = 0;
  uint32_t unopened_ = 0;  // batches of blocks that are only leased
  uint32_t blocks_unopened_ = 0;
  uint32_t unfinished_ = 0;  // handed out and not acknowledged
  bool needed_ = false;      // the trainer found it empty
  bool leasing_ = false;
  bool signalled_ = false;
  bool ended_ = false;
  std::map<HeldKey, Held> held_;
  uint32_t target_ = 0;
  uint64_t handed_out_ = 0;
  FinishedBatches finished_;
  Status failure_;
};

}  // namespace flux
