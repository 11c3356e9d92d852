// The verb load: one shard from a checkpoint, under this server's incarnation and epoch.
#include "flux/server/server.h"

namespace flux {

Status Server::load(const ShardImage& image) {
  const ShardId id = image.replica.shard();
  if (id >= shards_.size())
    return error(Code::kCorrupt, "shard {} of a checkpoint, this job has {}", id, shards_.size());
  if (!owns(id)) return invalid("shard {} is not served here", id);
  Shard& shard = *shards_[id];
  const std::lock_guard lock(shard.mutex);
  const size_t expected = shard.dense ? 1 : shard.tables.size();
  if (image.tables.size() != expected || image.shards != options_.shards)
    return error(Code::kCorrupt, "shard {}: {} tables over {} shards, this job has {} over {}", id,
                 image.tables.size(), image.shards, expected, options_.shards);
  for (const SparseShard& table : shard.tables)
    if (table.size() > 0) return invalid("shard {} has rows already; open the job anew", id);
  if (image.replica.epoch() > options_.epoch)
    return error(Code::kStale, "shard {} of the checkpoint belongs to a newer epoch", id);
  if (shard.dense) {
    FLUX_RETURN_IF_ERROR(shard.dense->load(image.tables[0].bytes));
  }
  for (size_t t = 0; t < shard.tables.size(); ++t) {
    const TableImage& part = image.tables[t];
    if (part.name != options_.tables[t].name || part.row_bytes != shard.tables[t].saved_row_bytes())
      return error(Code::kCorrupt,
                   "shard {}: rows of table '{}' ({} bytes), this job has '{}' ({})", id, part.name,
                   part.row_bytes, options_.tables[t].name, shard.tables[t].saved_row_bytes());
    FLUX_RETURN_IF_ERROR(shard.tables[t].load_rows(part.bytes, id, options_.shards));
  }
  shard.replica = image.replica;
  shard.replica.set_incarnation(options_.incarnation);
  if (options_.epoch > shard.replica.epoch()) shard.replica.set_epoch(options_.epoch);
  return Status::ok();
}

}  // namespace flux
