// Checkpoints as the coordinator makes them: what servers saved is audited, then one manifest is
// committed.
//
// A pass closes by its manifest: the audit reads the ledgers inside the files that were just
// written, never the live ones, and only if every shard has exactly one verdict for every batch is
// the manifest committed. Threads: one checkpoint at a time (the caller sees to it).
// Failure: Status; a checkpoint that fails leaves no trace that could be loaded.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "flux/base/status.h"
#include "flux/checkpoint/manifest.h"
#include "flux/checkpoint/store.h"
#include "flux/cluster/schedule.h"
#include "flux/data/geometry.h"

namespace flux {

struct PassToClose {
  uint32_t pass = 0;
  Schedule schedule;
  const Geometry* geometry = nullptr;
  // Batches that the coordinator decided to skip: shards that had them before keep them as applied.
  std::vector<BatchId> skipped = {};
};

// Makes a checkpoint of files that servers have written: `base` has everything but created and
// files; `geometry` (null: no open pass) is written beside the shards. If `closing`, the pass is
// audited first. A failure leaves nothing of the checkpoint.
Result<Manifest> commit_checkpoint(const CheckpointStore& store, Manifest base,
                                   const Geometry* geometry, const PassToClose* closing);

// Every batch of the pass has the same verdict on every shard of the checkpoint, but for those
// skipped.
Status audit_pass(const CheckpointStore& store, const Manifest& manifest,
                  const PassToClose& closing);

}  // namespace flux
