// ShardAudit: does what a shard's rows say agree with what its ledger says?
//
// It knows every batch of a simulated job and the keys that each brings to each shard, computed
// from the data alone. The rows of a shard (live, or in a checkpoint's file) must count exactly the
// batches that the ledger beside them has: no more, no less, key by key; the dense shards count
// examples. Answers are empty when all is well, else one line that says what is wrong.
// Pure after construction.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "flux/base/key.h"
#include "flux/checkpoint/manifest.h"
#include "flux/checkpoint/shard_file.h"
#include "flux/cluster/schedule.h"
#include "flux/data/geometry.h"
#include "flux/storage/files.h"

namespace flux {

class ShardAudit {
 public:
  ShardAudit(std::vector<Geometry> passes, Schedule schedule, uint32_t sparse_shards,
             uint32_t all_shards);

  // Batches that the coordinator has decided to skip, and logged.
  void set_skipped(std::set<BatchId> skipped) { skipped_ = std::move(skipped); }

  // Rows = ledger, every mark of a known batch, "applied" or decided.
  std::string check(const ShardImage& image) const;
  // ... and the shard has every batch of passes below `passes`.
  std::string check_complete(const ShardImage& image, uint32_t passes) const;
  // A committed checkpoint: all its files are there and whole, and each shard passes check(); every
  // shard has every batch of the passes that the manifest calls closed, which are at least
  // `closed`, with the same verdict as the others unless it was decided to skip it.
  std::string check_checkpoint(Files* files, const std::string& folder, size_t closed = 0) const;

  size_t batches() const { return batches_.size(); }

 private:
  struct KnownBatch {
    BatchId id;
    uint64_t records = 0;
    std::vector<std::map<Key, uint32_t>> keys;  // by sparse shard
  };
  void add_batches(const Geometry& geometry, const BlockId& section);
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
