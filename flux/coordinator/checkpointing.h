// Checkpoints as the coordinator makes them: what servers saved is audited, then one manifest is
// committed.
//
// A pass closes by its manifest: the audit reads the ledgers inside the files that were just
// written, never the live ones nor the coordinator's log, and only if every shard has exactly one
// verdict for every batch is the manifest committed. Threads: one checkpoint at a time (the caller
// sees to it). Failure: Status; a checkpoint that fails leaves no trace that could be loaded.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "flux/api/saved_shard.h"
#include "flux/api/server_admin.h"
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
};

// What the ledgers say of a pass that is complete.
struct PassAudit {
  uint64_t skipped_batches = 0;   // that at least one shard did not apply
  uint64_t skipped_examples = 0;  // in them
  std::vector<uint64_t> skipped_by_phase;
};

// The entries of a manifest for what servers saved, sorted by shard: an increment is put behind the
// files of `last`, the checkpoint that was named as committed when it was asked for (null: none).
// kCorrupt if it does not continue what `last` has of its shard: then the next save must name no
// base, so that everything is written whole. Pure.
Result<std::vector<ShardEntry>> link_shards(std::span<const SavedShard> saved,
                                            const Manifest* last);

// A shard of a checkpoint as a server is told to load it: its file and those before it. Pure.
ShardToLoad to_load(const Manifest& manifest, ShardId shard);

// Makes a checkpoint of files that servers have written: `base` has everything but created and
// files; `geometry` (null: no open pass) is written beside the shards. If `closing`, the pass is
// audited first and the examples skipped in it are put into the last of `base.closed`. A failure
// leaves nothing of the checkpoint. kStale: another coordinator has gone on.
Result<Manifest> commit_checkpoint(const CheckpointStore& store, Manifest base,
                                   const Geometry* geometry, const PassToClose* closing);

// Every batch of the pass has a verdict on every shard of the checkpoint, the same one; but a batch
// that was skipped may be applied on shards that had it before.
Result<PassAudit> audit_pass(const CheckpointStore& store, const Manifest& manifest,
                             const PassToClose& closing);

}  // namespace flux
