// BatchSource: where the trainer gets its batches and says what became of them.
// Threads: every method is safe from any thread. Implementation: BlockStore.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "flux/api/job_port.h"
#include "flux/base/status.h"
#include "flux/data/dataset.h"
#include "flux/protocol/batch_id.h"
#include "flux/protocol/sync_step.h"

namespace flux {

struct BatchItem {
  BatchId id;
  bool evaluate = false;  // predict, change nothing, report
  uint64_t geometry = 0;  // hash that a push names
  float lr_scale = 1;     // of its push
  std::shared_ptr<const BlockReader> reader;
  std::shared_ptr<const SyncStep> step;  // sync mode
};

class BatchSource {
 public:
  enum class Next : uint8_t {
    kItem,
    kWait,  // nothing now; the trainer is woken when that may have changed
    kEnd,   // nothing more
  };
  virtual ~BatchSource() = default;
  virtual Next next(BatchItem* out) = 0;
  // The whole worker ends: begin nothing, drop what is not computed.
  virtual bool stopping() const = 0;
  // Every shard acknowledged this batch.
  virtual void applied(const BatchId& id) = 0;
  // This batch was computed and not pushed: `reason` names what is not finite and where the batch
  // lies. The trainer goes on with the next.
  virtual void refused(const BatchId& id, std::string reason) = 0;
  virtual void evaluated(EvalReport report) = 0;
  // The trainer cannot go on.
  virtual void failed(const Status& status) = 0;
};

}  // namespace flux
