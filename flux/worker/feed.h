// Feed: batches for the trainer threads of one worker, from the blocks it leases.
//
// Threads of a worker share blocks, so that none waits at a block's end. A block is opened (read,
// indexed, shuffled) by one thread outside the lock while the others go on with the block before.
// With one thread the order of batches is fixed by the queue's order alone.
// Threads: next() is safe from any thread. Failure: the first error ends the feed for all.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>

#include "flux/api/coordinator.h"
#include "flux/base/status.h"
#include "flux/data/dataset.h"
#include "flux/protocol/batch_id.h"

namespace flux {

struct FeedItem {
  BatchId id;
  std::shared_ptr<const BlockReader> reader;
};

class Feed {
 public:
  // `stop` (may be null) ends the feed early when it turns true.
  Feed(WorkerId worker, CoordinatorPort* coordinator, const Dataset* dataset, uint32_t threads,
       const std::atomic<bool>* stop);

  // The next batch to train, or false at the end of the section, on stop, or after a failure.
  bool next(FeedItem* out);
  Status status() const;
  // Ends the feed for everybody, e.g. because a trainer failed.
  void fail(const Status& status);

 private:
  struct OpenBlock {
    BlockLease lease;
    uint32_t left = 0;  // mask of batches not handed out yet
    std::shared_ptr<const BlockReader> reader;
  };
  bool take(FeedItem* out);
  // Leases and opens one block; called with the lock held, which it drops meanwhile.
  void open_one(std::unique_lock<std::mutex>* lock);
  size_t batches_ready() const;

  const WorkerId worker_;
  CoordinatorPort* const coordinator_;
  const Dataset* const dataset_;
  const uint32_t threads_;
  const std::atomic<bool>* const stop_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<OpenBlock> blocks_;
  uint32_t opening_ = 0;
  bool ended_ = false;
  Status status_;
};

}  // namespace flux
