// The verb save: each shard as it is at its own moment, its ledger and rows from the same one.
#include "flux/base/kill_point.h"
#include "flux/checkpoint/store.h"
#include "flux/server/server.h"

namespace flux {

ShardImage Server::image_of(const ShardSlot& slot) const {
  ShardImage image;
  image.shards = options_.shards;
  image.replica = slot.replica;
  for (size_t t = 0; t < slot.rows.tables.size(); ++t) {
    const SparseShard& table = slot.rows.tables[t];
    TableImage part;
    part.name = options_.tables[t].name;
    part.row_bytes = static_cast<uint32_t>(table.saved_row_bytes());
    part.rows = table.size();
    table.save_rows(&part.bytes);
    image.tables.push_back(std::move(part));
  }
  if (slot.rows.dense) {
    TableImage part;
    part.name = "dense";
    part.rows = slot.rows.dense->size();
    slot.rows.dense->save(&part.bytes);
    image.tables.push_back(std::move(part));
  }
  return image;
}

ShardImage Server::image(ShardId shard) const {
  FLUX_CHECK(shard < slots_.size(), "shard {} of {}", shard, slots_.size());
  const ShardSlot& slot = *slots_[shard];
  const std::lock_guard lock(slot.mutex);
  return image_of(slot);
}

ShardReplica Server::replica(ShardId shard) const {
  FLUX_CHECK(shard < slots_.size(), "shard {} of {}", shard, slots_.size());
  const std::lock_guard lock(slots_[shard]->mutex);
  return slots_[shard]->replica;
}

Result<std::vector<SavedShard>> Server::save(const AdminCall& call, const std::string& folder,
                                             uint64_t number, uint64_t committed) {
  (void)committed;
  kill_point(KillPoint::kBeforeSave);
  FLUX_RETURN_IF_ERROR(check_call(call, false));
  const TimeNs now = replicator_.now_ns();
  const CheckpointStore store(folder, options_.files);
  std::vector<SavedShard> saved;
  for (size_t i = 0; i < call.shards.size(); ++i) {
    const ShardSlot& slot = *slots_[call.shards[i]];
    ShardImage image;
    {
      const std::lock_guard lock(slot.mutex);
      FLUX_RETURN_IF_ERROR(check_primary(slot, call.epochs[i], false, now));
      image = image_of(slot);
    }
    kill_point(KillPoint::kMidSave);
    const std::string name = fmt::format("shard-{:05}", image.replica.shard());
    FLUX_ASSIGN_OR_RETURN(const FileInfo file, store.add(number, name, encode_shard(image)));
    saved.push_back({image.replica.shard(), file.name, file.bytes, file.hash, image.replica.op(),
                     image.replica.stream_hash(), image.tables.empty() ? 0 : image.tables[0].rows});
  }
  kill_point(KillPoint::kAfterSave);
  return saved;
}

}  // namespace flux
