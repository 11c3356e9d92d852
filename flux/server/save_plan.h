// What a server remembers of saves of one shard, and the copy that a save writes.
//
// A save may write a shard whole or as an increment: the rows that changed since the shard's last
// *committed* save. Only the coordinator knows which saves were committed, and says so with the
// next one; until then the rows of a save are in doubt and may count as changed again. ShardSaves
// keeps this memory, beside the tables it is about, under the same lock, and dies with them: a
// shard that is built anew (a move, a new backup) knows no save, so it is written whole. How Server
// uses it:
//
//     { lock;  copy = copy_shard(parts, &shard.saves, job.number, job.committed); }
//     file = store.add(job.number, copy.name(), copy.encode());          // without the lock
//     saved = copy.report(file);
//     { lock;  shard.saves.wrote(job.number, saved); }
//
// Always true: the rows that the tables count as changed, those of a save in doubt included, are
// all that differ from the committed state `base`. One save of a shard at a time.
// Threads: none inside; the shard's lock is held around every call that takes parts or saves.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "flux/api/saved_shard.h"
#include "flux/checkpoint/increment_file.h"
#include "flux/checkpoint/shard_file.h"
#include "flux/protocol/shard_replica.h"
#include "flux/table/dense_shard.h"
#include "flux/table/sparse_shard.h"

namespace flux {

// The files that make up a shard's newest saved state.
struct SavedChain {
  uint64_t number = 0;  // checkpoint of the newest file; 0: nothing is saved
  uint64_t op = 0;
  uint64_t stream_hash = 0;
  uint64_t whole_bytes = 0;  // of the whole file
  uint32_t increments = 0;
  uint64_t increment_bytes = 0;  // of all of them
};

struct ChainPolicy {
  uint32_t increments_max = 7;  // 0: every file is a whole one
  double share_max = 0.5;       // of the whole file, that increments may have together
};

// Whether the next file of a shard must be a whole one. `committed`: the checkpoint committed last.
// `next_bytes`: what an increment would have. Limits differ a little from shard to shard, so that
// whole files are spread over several checkpoints. Pure.
bool write_whole(const SavedChain& base, uint64_t committed, ShardId shard, uint64_t next_bytes,
                 const ChainPolicy& policy = {});

class ShardSaves {
 public:
  struct Choice {
    bool incremental = false;
    uint64_t base_op = 0;
    uint64_t base_stream_hash = 0;
  };
  // The rows were loaded from these files just now.
  void loaded(const SavedChain& from) { base_ = from; }
  // A save begins: the one before it is settled by what is committed now, and the changed rows of
  // `tables` are those of this one.
  Choice begin(uint64_t number, uint64_t committed, const ShardReplica& replica,
               std::span<SparseShard> tables, const ChainPolicy& policy);
  // The file of save `number` is on disk, and is the state that begin() saw; without this call it
  // can never be a base. Ignored if it is of another save, or of rows that are gone.
  void wrote(uint64_t number, const SavedShard& file);
  const SavedChain& base() const { return base_; }

 private:
  struct InDoubt {
    SavedChain chain;  // as it is if the save is committed
    bool incremental = false;
    bool written = false;
  };
  void settle(uint64_t committed, std::span<SparseShard> tables);

  SavedChain base_;
  std::optional<InDoubt> in_doubt_;
};

// What a shard is made of, borrowed.
struct ShardParts {
  const ShardReplica* replica = nullptr;
  std::span<SparseShard> tables;          // of a sparse shard ...
  std::span<const TableOptions> options;  // ... and their descriptions
  const DenseShard* dense = nullptr;      // of a dense shard
  uint32_t shards = 0;                    // sparse shards in all
};

// One shard as a save writes it.
struct ShardCopy {
  bool incremental = false;
  ShardImage whole;          // if not incremental
  ShardIncrement increment;  // if incremental

  std::string name() const;  // of its file
  std::string encode() const;
  SavedShard report(const FileInfo& file) const;
};

// A whole copy that is no save: for audits and for sending a shard elsewhere.
ShardImage copy_whole(const ShardParts& parts);
// The copy of a save that begins.
ShardCopy copy_shard(const ShardParts& parts, ShardSaves* saves, uint64_t number,
                     uint64_t committed, const ChainPolicy& policy = {});

}  // namespace flux
