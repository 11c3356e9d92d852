// The verb save: each shard as it is at its own moment, its ledger and rows from the same one.
#include <atomic>
#include <chrono>
#include <thread>

#include "flux/base/kill_point.h"
#include "flux/base/parallel.h"
#include "flux/checkpoint/store.h"
#include "flux/server/server.h"

namespace flux {

namespace {
constexpr std::chrono::microseconds kBetweenSlices{50};
}

struct Server::SaveJob {
  CheckpointStore store;
  uint64_t number = 0;
  uint64_t committed = 0;
};

ShardParts Server::parts_of(ShardSlot* slot) const {
  ShardParts parts;
  parts.replica = &slot->replica;
  parts.tables = slot->rows.tables;
  parts.options = options_.tables;
  parts.dense = slot->rows.dense.get();
  parts.shards = options_.shards;
  return parts;
}

ShardImage Server::image(ShardId shard) const {
  FLUX_CHECK(shard < slots_.size(), "shard {} of {}", shard, slots_.size());
  ShardSlot& slot = *slots_[shard];
  const std::lock_guard lock(slot.mutex);
  return image_of(&slot);
}

ShardReplica Server::replica(ShardId shard) const {
  FLUX_CHECK(shard < slots_.size(), "shard {} of {}", shard, slots_.size());
  const std::lock_guard lock(slots_[shard]->mutex);
  return slots_[shard]->replica;
}

Result<SavedShard> Server::save_one(const SaveJob& job, ShardId id, ShardEpoch epoch) {
  ShardSlot& slot = *slots_[id];
  ShardCopy copy;
  for (bool begun = false, more = true; more; begun = true) {
    // A thread that waits for the lock would not get it if it were taken again at once.
    if (begun) std::this_thread::sleep_for(kBetweenSlices);
    const TimeNs now = replicator_.now_ns();
    const std::lock_guard lock(slot.mutex);
    FLUX_RETURN_IF_ERROR(check_primary(slot, epoch, false, now));
    if (!begun)
      copy.begin(parts_of(&slot), &slot.rows.saves, job.number, job.committed, options_.chain);
    FLUX_ASSIGN_OR_RETURN(more, copy.step(parts_of(&slot), &slot.rows.saves, options_.slice_bytes));
  }
  kill_point(KillPoint::kMidSave);
  FLUX_ASSIGN_OR_RETURN(const FileInfo file, job.store.add(job.number, copy.name(), copy.encode()));
  const SavedShard saved = copy.report(file);
  const std::lock_guard lock(slot.mutex);
  slot.rows.saves.wrote(job.number, saved);
  return saved;
}

Result<std::vector<SavedShard>> Server::save(const AdminCall& call, const std::string& folder,
                                             uint64_t number, uint64_t committed) {
  kill_point(KillPoint::kBeforeSave);
  FLUX_RETURN_IF_ERROR(check_call(call, false));
  const SaveJob job{CheckpointStore(folder, options_.files), number, committed};
  std::vector<SavedShard> saved(call.shards.size());
  std::atomic<bool> failed = false;
  const auto save_one_of = [&](size_t i) {
    if (failed) return Status::ok();  // the checkpoint is lost: why fill the disk
    auto shard = save_one(job, call.shards[i], call.epochs[i]);
    if (!shard.is_ok()) {
      failed = true;
      return shard.status();
    }
    saved[i] = std::move(shard).value();
    return Status::ok();
  };
  FLUX_RETURN_IF_ERROR(parallel_for(saved.size(), options_.file_threads, save_one_of));
  kill_point(KillPoint::kAfterSave);
  std::vector<ShardId> whole;
  for (const SavedShard& one : saved)
    if (!one.incremental) whole.push_back(one.shard);
  compare_soon(whole);
  return saved;
}

}  // namespace flux
