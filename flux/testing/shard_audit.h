// ShardAudit: does what a shard's rows say agree with what its ledger says?
//
// It knows every batch of a simulated job and the keys that each brings to each shard, computed
// from the data alone. The rows of a shard (live, or in a checkpoint's file) must count exactly the
// batches that the ledger beside them has: no more, no less, key by key; the dense shards count
// examples. A batch with a flawed record is never applied by any shard, but set aside, and counts
// as skipped once. Answers are empty when all is well, else one line that says what is wrong. Pure
// after construction.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "flux/api/server_admin.h"
#include "flux/base/key.h"
#include "flux/checkpoint/manifest.h"
#include "flux/checkpoint/shard_file.h"
#include "flux/cluster/schedule.h"
#include "flux/data/geometry.h"
#include "flux/storage/files.h"
#include "flux/testing/sim_data.h"

namespace flux {

class ShardAudit {
 public:
  ShardAudit(std::vector<Geometry> passes, Schedule schedule, uint32_t sparse_shards,
             uint32_t all_shards, const std::vector<SimFlaws>& flaws = {});

  // Batches that a coordinator has decided to skip, and logged.
  void add_skipped(std::set<BatchId> skipped) { skipped_.merge(std::move(skipped)); }
  size_t skipped() const { return skipped_.size(); }

  // Rows = ledger, every mark of a known batch, "applied" or decided.
  std::string check(const ShardImage& image) const;
  // ... and the shard has every batch of passes below `passes`.
  std::string check_complete(const ShardImage& image, uint32_t passes) const;
  // A committed checkpoint: all its files are there and whole, and each shard passes check(); every
  // shard has every batch of the passes that the manifest calls closed, which are at least
  // `closed`, with the same verdict as the others unless it was decided to skip it.
  std::string check_checkpoint(Files* files, const std::string& folder, size_t closed = 0) const;

  // Of a closed pass: the examples of its flawed batches, those of every batch decided to be
  // skipped (a shard may have applied an innocent one before). Anything between is right.
  std::pair<uint64_t, uint64_t> skipped_examples(uint32_t pass) const;
  // "" if every flawed batch of the pass is decided, and `told` is such a number.
  std::string check_skipped(uint32_t pass, uint64_t told) const;

  // What a complete job says of itself: applied + skipped = expected, nothing is counted twice.
  std::string check_accounts(const std::vector<ClosedPass>& closed, const JobTotals& totals,
                             uint64_t batches_skipped) const;

  size_t batches() const { return batches_.size(); }

 private:
  struct KnownBatch {
    BatchId id;
    uint64_t records = 0;
    bool flawed = false;
    std::vector<std::map<Key, uint32_t>> keys;  // by sparse shard
  };
  void add_batches(const Geometry& geometry, const BlockId& section, const SimFlaws& flaws);
  // `maybe`: counts that may be there or not.
  std::string check_rows(const ShardImage& image, const std::map<Key, uint32_t>& expected,
                         const std::map<Key, uint32_t>& maybe) const;

  uint32_t sparse_shards_;
  uint32_t all_shards_;
  Schedule schedule_;
  std::vector<KnownBatch> batches_;
  std::set<BatchId> skipped_;
  std::map<uint32_t, uint64_t> by_pass_;  // batches, all sections
};

}  // namespace flux
