// The verb save: each shard as it is at its own moment, its ledger and rows from the same one.
#include "flux/checkpoint/store.h"
#include "flux/server/server.h"

namespace flux {

ShardImage Server::image_of(const Shard& shard) const {
  ShardImage image;
  image.shards = options_.shards;
  const std::lock_guard lock(shard.mutex);
  image.replica = shard.replica;
  for (size_t t = 0; t < shard.tables.size(); ++t) {
    const SparseShard& table = shard.tables[t];
    TableImage part;
    part.name = options_.tables[t].name;
    part.row_bytes = static_cast<uint32_t>(table.saved_row_bytes());
    part.rows = table.size();
    table.save_rows(&part.bytes);
    image.tables.push_back(std::move(part));
  }
  if (shard.dense) {
    TableImage part;
    part.name = "dense";
    part.rows = shard.dense_size;
    shard.dense->save(&part.bytes);
    image.tables.push_back(std::move(part));
  }
  return image;
}

ShardImage Server::image(ShardId shard) const {
  FLUX_CHECK(owns(shard), "shard {} is elsewhere", shard);
  return image_of(*shards_[shard]);
}

ShardReplica Server::replica(ShardId shard) const {
  FLUX_CHECK(owns(shard), "shard {} is elsewhere", shard);
  const std::lock_guard lock(shards_[shard]->mutex);
  return shards_[shard]->replica;
}

Result<std::vector<SavedShard>> Server::save(const std::string& folder, uint64_t number) {
  const CheckpointStore store(folder, options_.files);
  std::vector<SavedShard> saved;
  for (const ShardId id : owned_) {
    const ShardImage image = image_of(*shards_[id]);
    const std::string name = fmt::format("shard-{:05}", image.replica.shard());
    FLUX_ASSIGN_OR_RETURN(const FileInfo file, store.add(number, name, encode_shard(image)));
    saved.push_back({image.replica.shard(), file.name, file.bytes, file.hash, image.replica.op(),
                     image.replica.stream_hash(), image.tables.empty() ? 0 : image.tables[0].rows});
  }
  return saved;
}

}  // namespace flux
