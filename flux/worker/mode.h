// Mode: when the lanes of a worker pull, merge, push and wait. One file each in worker/modes/.
//
//   async        each lane pushes its own batch and goes on; pull_ahead and pushes in flight bound
//                how stale its rows are
//   half_async   the lanes of one worker merge a batch each into one push, and pull again when it
//                is applied
//   sync         each push names its step of a round of all workers; pull again when it is applied
// All go on when a push is applied, and hold its gradient until it is replicated.
// geo, ssp and partial will register here by name.
// Threads: a LaneMode belongs to its lane's thread; what lanes share is inside the WorkerMode.
// Failure: none of its own; a push that is refused shows in the client's status.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "flux/base/executor.h"
#include "flux/base/status.h"
#include "flux/client/ps_client.h"
#include "flux/worker/batch_source.h"
#include "flux/worker/batch_work.h"

namespace flux {

// What a mode may use of a lane; all of it on the lane's thread, except that anything may be posted
// to the executor. Lives as long as the lane.
struct LaneHost {
  uint32_t index = 0;
  Executor* executor = nullptr;
  PsClient* client = nullptr;
  // Every shard has this batch replicated: the lane may reuse it and tell the coordinator.
  std::function<void(const BatchWorkPtr&)> acknowledged;
  std::function<void()> wake;  // the lane may have something to do
};

class LaneMode {
 public:
  virtual ~LaneMode() = default;
  // May another batch be taken from the source?
  virtual bool may_take() const { return true; }
  // May another batch be pulled, with `pulled` batches pulled or being pulled already?
  virtual bool may_pull(size_t pulled) const = 0;
  // May a batch be computed (is there room for its push)?
  virtual bool may_compute() const = 0;
  // A batch is computed: from now on it is the mode's until acknowledged() is called for it.
  virtual void push(BatchWorkPtr work) = 0;
  // The lane found nothing to train, for now.
  virtual void idle() {}
  // The lane has a batch to train again.
  virtual void busy() {}
  // The lane will push nothing more.
  virtual void end() {}
  // What a batch in flight waits for: "the acknowledgement of server 1".
  virtual std::string waits() const = 0;
};

class WorkerMode {
 public:
  virtual ~WorkerMode() = default;
  // `host` outlives the LaneMode.
  virtual std::unique_ptr<LaneMode> lane(std::shared_ptr<LaneHost> host) = 0;
  // Each lane leases blocks for itself (and all of a round at once), not the worker for all.
  virtual bool lanes_lease() const { return false; }
};

struct ModeOptions {
  uint32_t lanes = 1;
  PsClientOptions client;  // of every lane
  BatchSource* source = nullptr;
};

// kInvalid with the known names if there is no such mode.
Result<std::unique_ptr<WorkerMode>> make_mode(const std::string& name, const ModeOptions& options);

// One push of a lane's own batch; `applied` wakes the lane, `released` is acknowledged().
PushWork single_push(const std::shared_ptr<LaneHost>& host, const BatchWorkPtr& work);

// In modes/.
std::unique_ptr<WorkerMode> make_async(const ModeOptions& options);
std::unique_ptr<WorkerMode> make_half_async(const ModeOptions& options);
std::unique_ptr<WorkerMode> make_sync(const ModeOptions& options);

}  // namespace flux
