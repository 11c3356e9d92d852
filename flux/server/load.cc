// The verb load: shards from a checkpoint, or in the job's initial state, under this incarnation.
#include <atomic>

#include "flux/base/hash.h"
#include "flux/base/parallel.h"
#include "flux/checkpoint/store.h"
#include "flux/server/server.h"

namespace flux {

Status Server::fill_rows(const ShardImage& image, ShardId id, ShardRows* rows) const {
  if (image.replica.shard() != id)
    return error(Code::kCorrupt, "shard {} where {} is expected", image.replica.shard(), id);
  const size_t expected = rows->dense ? 1 : rows->tables.size();
  if (image.tables.size() != expected || image.shards != options_.shards)
    return error(Code::kCorrupt, "shard {}: {} tables over {} shards, this job has {} over {}", id,
                 image.tables.size(), image.shards, expected, options_.shards);
  if (rows->dense) return rows->dense->load(image.tables[0].bytes);
  for (size_t t = 0; t < rows->tables.size(); ++t) {
    const TableImage& part = image.tables[t];
    SparseShard& table = rows->tables[t];
    if (part.name != options_.tables[t].name || part.row_bytes != table.saved_row_bytes())
      return error(Code::kCorrupt,
                   "shard {}: rows of table '{}' ({} bytes), this job has '{}' ({})", id, part.name,
                   part.row_bytes, options_.tables[t].name, table.saved_row_bytes());
    if (!shape_.table_shards(t).has(id) && !part.bytes.empty())
      return error(Code::kCorrupt, "shard {}: rows of table '{}', which has none of its keys", id,
                   part.name);
    const ShardRange shards = shape_.group_shards(shape_.group_of(id));
    FLUX_RETURN_IF_ERROR(table.load_rows(part.bytes, id - shards.begin, shards.end - shards.begin));
  }
  return Status::ok();
}

Status Server::load(const ShardImage& image) {
  const ShardId id = image.replica.shard();
  if (id >= slots_.size())
    return error(Code::kCorrupt, "shard {} of a checkpoint, this job has {}", id, slots_.size());
  ShardSlot& slot = *slots_[id];
  ShardRows rows = make_rows(id);
  FLUX_RETURN_IF_ERROR(fill_rows(image, id, &rows));
  const std::lock_guard lock(slot.mutex);
  if (slot.replica.role() != ReplicaRole::kPrimary || !slot.complete)
    return invalid("shard {} is not served here", id);
  if (slot.replica.op() > 0) return invalid("shard {} has a history already", id);
  const ShardEpoch epoch = slot.replica.epoch();
  if (image.replica.epoch() > epoch)
    return error(Code::kStale, "shard {} of the checkpoint belongs to a newer epoch", id);
  slot.rows = std::move(rows);
  slot.replica = image.replica;
  slot.replica.set_incarnation(options_.incarnation);
  if (epoch > slot.replica.epoch()) slot.replica.set_epoch(epoch);
  return Status::ok();
}

namespace {

ShardEntry entry_of(const ShardToLoad& part) {
  ShardEntry entry{{part.name, part.bytes, part.hash}, part.op, part.stream_hash, 0};
  for (const FileToLoad& f : part.chain)
    entry.chain.push_back({f.number, {f.name, f.bytes, f.hash}, f.op, f.stream_hash});
  return entry;
}

// What the next save may build on.
SavedChain chain_of(uint64_t number, const ShardToLoad& part) {
  SavedChain chain{number, part.op, part.stream_hash, part.bytes};
  if (part.chain.empty()) return chain;
  chain.whole_bytes = part.chain[0].bytes;
  chain.increments = static_cast<uint32_t>(part.chain.size());
  chain.increment_bytes = part.bytes;
  for (size_t i = 1; i < part.chain.size(); ++i) chain.increment_bytes += part.chain[i].bytes;
  return chain;
}

// What tells one load from another.
uint64_t name_of(const LoadJob& load, const ShardToLoad& part, ShardEpoch epoch) {
  uint64_t name = hash_pair(hash_bytes(load.folder), load.number);
  name = hash_pair(hash_pair(name, load.closed_below), hash_bytes(part.name));
  name = hash_pair(hash_pair(name, part.bytes), part.hash);
  return hash_pair(hash_pair(name, epoch.term), epoch.n) | 1;
}

Status check_free(const ShardReplica& replica, bool complete, ShardEpoch epoch) {
  if (epoch < replica.epoch())
    return error(Code::kStale, "shard {}: the load is of an older epoch", replica.shard());
  const bool serves = complete && replica.role() == ReplicaRole::kPrimary;
  const bool follows =
      complete && replica.role() == ReplicaRole::kBackup && replica.epoch() == epoch;
  if (serves || follows)
    return error(Code::kStale, "shard {} is {} here; it has to be forgotten before it is loaded",
                 replica.shard(), role_name(replica.role()));
  return Status::ok();
}

}  // namespace

Status Server::load_one(const LoadJob& load, const ShardToLoad& part, ShardEpoch epoch) {
  const uint64_t name = name_of(load, part, epoch);
  ShardSlot& slot = *slots_[part.shard];
  {
    const std::lock_guard lock(slot.mutex);
    if (slot.complete && slot.loaded == name) return Status::ok();
    FLUX_RETURN_IF_ERROR(check_free(slot.replica, slot.complete, epoch));
  }
  ShardRows rows = make_rows(part.shard);
  ShardReplica replica(part.shard, options_.incarnation, epoch);
  if (load.number != 0) {
    const CheckpointStore store(load.folder, options_.files);
    FLUX_ASSIGN_OR_RETURN(const ShardImage image, store.read_shard(load.number, entry_of(part)));
    const Status filled = fill_rows(image, part.shard, &rows);
    if (!filled.is_ok()) return filled.with_context(store.path_of(load.number));
    if (image.replica.epoch() > epoch)
      return error(Code::kStale, "shard {} of the checkpoint belongs to a newer epoch", part.shard);
    rows.saves.loaded(chain_of(load.number, part));
    replica = image.replica;
    replica.set_incarnation(options_.incarnation);
    if (epoch > replica.epoch()) replica.set_epoch(epoch);
  }
  replica.close_below(load.closed_below);
  replica.set_role(ReplicaRole::kLearner);
  const std::lock_guard lock(slot.mutex);
  FLUX_RETURN_IF_ERROR(check_free(slot.replica, slot.complete, epoch));
  drop_replica(&slot);
  slot.rows = std::move(rows);
  slot.replica = std::move(replica);
  slot.complete = true;
  slot.loaded = name;
  return Status::ok();
}

Status Server::load(const AdminCall& call, const LoadJob& load) {
  if (call.shards.size() != call.epochs.size())
    return invalid("{} shards with {} epochs", call.shards.size(), call.epochs.size());
  for (size_t i = 0; i < call.shards.size(); ++i) {
    if (call.shards[i] >= slots_.size())
      return invalid("shard {} of a job that has {}", call.shards[i], slots_.size());
    if (load.number != 0 &&
        (load.shards.size() != call.shards.size() || load.shards[i].shard != call.shards[i]))
      return invalid("checkpoint {}: {} shards to load where {} are named", load.number,
                     load.shards.size(), call.shards.size());
  }
  std::atomic<bool> failed = false;
  return parallel_for(call.shards.size(), options_.file_threads, [&](size_t i) {
    if (failed) return Status::ok();  // the load is lost
    ShardToLoad part;
    part.shard = call.shards[i];
    if (load.number != 0) part = load.shards[i];
    Status loaded = load_one(load, part, call.epochs[i]);
    if (!loaded.is_ok()) failed = true;
    return loaded;
  });
}

}  // namespace flux
