// What a server remembers of saves of one shard, and the copy that a save writes.
//
// A save may write a shard whole or as an increment: the rows that changed since the shard's last
// *committed* save. Only the coordinator knows which saves were committed, and says so with the
// next one; until then the rows of a save are in doubt and may count as changed again. ShardSaves
// keeps this memory, beside the tables it is about, under the same lock, and dies with them: a
// shard that is built anew (a move, a new backup) knows no save, so it is written whole. How Server
// uses it:
//
//     { lock;  copy.begin(parts, &shard.saves, job.number, job.committed, policy); }
//     { lock;  more = copy.step(parts, &shard.saves); }                  // until there is no more
//     file = store.add(job.number, copy.name(), copy.encode());          // without the lock
//     saved = copy.report(file);
//     { lock;  shard.saves.wrote(job.number, saved); }
//
// A large shard is copied in slices of about a megabyte, so that pushes wait for a slice at most;
// the last step copies once more what changed meanwhile and takes the ledger: that is the moment of
// the save. Always true: the rows that the tables count as changed, those of a save in doubt
// included, are all that differ from the committed state `base`. A save that begins ends one that
// is under way. Threads: none inside; the shard's lock is held around every call that takes parts
// or saves.
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
    uint64_t turn = 0;  // tells saves of a shard apart
  };
  // The rows were loaded from these files just now.
  void loaded(const SavedChain& from) { base_ = from; }
  // A save begins: the one before it is settled by what is committed now, and the changed rows of
  // `tables` are those of this one.
  Choice begin(uint64_t number, uint64_t committed, const ShardReplica& replica,
               std::span<SparseShard> tables, const ChainPolicy& policy);
  // The rows of the save are copied; this is the state that they belong to. False: another save
  // began meanwhile, or the rows are others: the copy is of no use.
  bool copied(uint64_t turn, const ShardReplica& replica);
  bool is_under_way(uint64_t turn) const { return in_doubt_ && in_doubt_->turn == turn; }
  // The file of save `number` is on disk, and is the state that begin() saw; without this call it
  // can never be a base. Ignored if it is of another save, or of rows that are gone.
  void wrote(uint64_t number, const SavedShard& file);
  const SavedChain& base() const { return base_; }

 private:
  struct InDoubt {
    SavedChain chain;  // as it is if the save is committed
    bool incremental = false;
    bool written = false;
    uint64_t turn = 0;
  };
  void settle(uint64_t committed, std::span<SparseShard> tables);

  SavedChain base_;
  std::optional<InDoubt> in_doubt_;
  uint64_t turns_ = 0;
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

  // The copy of a save that begins.
  void begin(const ShardParts& parts, ShardSaves* saves, uint64_t number, uint64_t committed,
             const ChainPolicy& policy);
  // Copies about `bytes` more. Says whether there is more to do. kUnavailable: see
  // ShardSaves::copied().
  Result<bool> step(const ShardParts& parts, ShardSaves* saves, size_t bytes = kSliceBytes);

  std::string name() const;  // of its file
  std::string encode() const;
  SavedShard report(const FileInfo& file) const;

  static constexpr size_t kSliceBytes = 1U << 20;

 private:
  void finish(const ShardParts& parts);

  uint64_t turn_ = 0;
  size_t table_ = 0;           // that is being copied
  std::vector<RowCopy> rows_;  // by table
};

// A whole copy that is no save: for audits and for sending a shard elsewhere.
ShardImage copy_whole(const ShardParts& parts);

}  // namespace flux
