// Trainer: one thread's way from batches to pushed gradients.
//
//   feed -> read -> plan -> pull -> forward/backward -> push
//
// All stages run on the trainer's own thread: on a busy machine a hop to another thread costs more
// than it hides. Batches in front of the one being computed are read, planned and pulled ahead
// (`pull_ahead`, the staleness bound); pushes in flight are bounded by the session.
// Threads: run() by one thread; progress() by any. Failure: Status; a batch that failed is not
// marked anywhere, so it will be trained again.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "flux/api/coordinator.h"
#include "flux/api/server.h"
#include "flux/base/buffer.h"
#include "flux/base/loop_executor.h"
#include "flux/client/key_plan.h"
#include "flux/client/ps_client.h"
#include "flux/data/batch.h"
#include "flux/nn/auc.h"
#include "flux/nn/net.h"
#include "flux/worker/feed.h"
#include "flux/worker/progress.h"

namespace flux {

struct TrainerOptions {
  std::shared_ptr<const Graph> graph;
  NetOptions net;
  uint32_t sparse_shards = 0;
  uint32_t pull_ahead = 0;  // batches
  PsClientOptions client;
};

class Trainer {
 public:
  static Result<std::unique_ptr<Trainer>> create(const TrainerOptions& options,
                                                 std::vector<ServerPort*> servers,
                                                 CoordinatorPort* coordinator);
  // Trains until the feed ends; returns when every push is acknowledged. `geometry` is the hash
  // that pushes name.
  Status run(Feed* feed, uint64_t geometry);
  // Called by run() between batches, on its thread, with nothing in flight. For checkpoints of the
  // deterministic mode.
  void set_between_batches(std::function<void()> hook) { between_batches_ = std::move(hook); }
  void add_progress(Progress* sum) const;
  uint64_t examples() const { return examples_.load(std::memory_order_relaxed); }

 private:
  // Everything that belongs to one batch on its way.
  struct Work {
    explicit Work(uint32_t shards) : plan(shards) {}
    FeedItem item;
    Batch batch;
    KeyPlan plan;
    std::vector<Buffer<float>> rows, row_gradients;  // by table
    std::vector<float*> row_pointers;
    Buffer<float> dense_gradient;
    bool pulled = false;
    Status status;
  };
  Trainer(const TrainerOptions& options, std::unique_ptr<Net> net, std::vector<ServerPort*> servers,
          CoordinatorPort* coordinator);
  Status prepare(Feed* feed, bool* ended);  // read, plan, pull one more batch
  Status compute_and_push(uint64_t geometry);
  void push(Work* work, uint64_t geometry);
  Work* free_work();
  Status wait_for_room();
  Status wait_for_answers();
  Status wait_until(const char* what, const std::function<bool()>& done);
  void spend(Stage stage);  // time since the last call belongs to `stage`

  TrainerOptions options_;
  CoordinatorPort* coordinator_;
  std::unique_ptr<Net> net_;
  std::vector<uint32_t> dims_;
  LoopExecutor executor_;
  PsClient client_;
  std::function<void()> between_batches_;
  std::vector<std::unique_ptr<Work>> works_;
  std::vector<Work*> free_;
  std::deque<Work*> ready_;  // pulled, waiting for compute
  Buffer<float> dense_;
  Buffer<float> predictions_;
  TimeNs last_ns_ = 0;
  std::array<int64_t, kStages> batch_ns_{};

  std::atomic<uint64_t> examples_{0};
  mutable std::mutex progress_mutex_;
  Progress progress_;
};

}  // namespace flux
