// Mode: when a worker pulls, computes and waits for its pushes. One file each in worker/modes/.
//
//   async   every batch is pushed by itself; pull_ahead and pushes in flight bound how stale its
//           rows are (half_async is another name of it: the threads of a worker share each batch)
//   sync    each push names its step of a round of all workers; pull again when it is applied
// All go on when a push is applied, and hold its gradient until it is replicated.
// geo, ssp and partial will register here by name.
// Threads: the trainer's. Failure: none; a push that is refused shows in the client's status.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "flux/base/status.h"
#include "flux/client/ps_client.h"

namespace flux {

class Mode {
 public:
  virtual ~Mode() = default;
  // May another batch be pulled, with `pulled` batches pulled or being pulled already?
  virtual bool may_pull(const PsClient& client, size_t pulled) const = 0;
  // May a batch be computed (is there room for its push)?
  virtual bool may_compute(const PsClient& client) const = 0;
  // What a batch in flight waits for: "the acknowledgement of server 1".
  virtual std::string waits(const PsClient& client) const = 0;
  // Blocks come in rounds, one to each worker, and a worker that leaves ends its own first.
  virtual bool in_rounds() const { return false; }
};

// kInvalid with the known names if there is no such mode.
Result<std::unique_ptr<Mode>> make_mode(const std::string& name);

// In modes/.
std::unique_ptr<Mode> make_async();
std::unique_ptr<Mode> make_sync();

}  // namespace flux
