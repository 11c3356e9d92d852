#include "flux/server/save_plan.h"

namespace flux {

bool write_whole(const SavedChain& base, uint64_t committed, ShardId shard, uint64_t next_bytes,
                 const ChainPolicy& policy) {
  if (base.number == 0 || base.number != committed) return true;
  const uint32_t spread = policy.increments_max / 2;
  const uint32_t increments_max = policy.increments_max - (spread > 0 ? shard % spread : 0);
  if (base.increments >= increments_max) return true;
  return static_cast<double>(base.increment_bytes + next_bytes) >
         policy.share_max * static_cast<double>(base.whole_bytes);
}

void ShardSaves::settle(uint64_t committed, std::span<SparseShard> tables) {
  if (!in_doubt_) return;
  const bool stands = in_doubt_->written && in_doubt_->chain.number == committed;
  for (SparseShard& table : tables) table.end_save(stands);
  if (stands) base_ = in_doubt_->chain;
  in_doubt_.reset();
}

ShardSaves::Choice ShardSaves::begin(uint64_t number, uint64_t committed,
                                     const ShardReplica& replica, std::span<SparseShard> tables,
                                     const ChainPolicy& policy) {
  settle(committed, tables);
  uint64_t bytes = 0;
  for (const SparseShard& table : tables) bytes += table.changed_rows() * table.saved_row_bytes();
  const bool whole = tables.empty() || replica.op() < base_.op ||
                     write_whole(base_, committed, replica.shard(), bytes, policy);
  for (SparseShard& table : tables) table.begin_save();
  in_doubt_ = InDoubt{{}, !whole};
  if (!whole) in_doubt_->chain = base_;
  in_doubt_->chain.number = number;
  in_doubt_->chain.op = replica.op();
  in_doubt_->chain.stream_hash = replica.stream_hash();
  if (whole) return {};
  return {true, base_.op, base_.stream_hash};
}

void ShardSaves::wrote(uint64_t number, const SavedShard& file) {
  if (!in_doubt_ || in_doubt_->written || in_doubt_->chain.number != number) return;
  SavedChain& chain = in_doubt_->chain;
  if (chain.op != file.op || chain.stream_hash != file.stream_hash ||
      in_doubt_->incremental != file.incremental)
    return;
  in_doubt_->written = true;
  if (in_doubt_->incremental) {
    ++chain.increments;
    chain.increment_bytes += file.bytes;
  } else {
    chain.whole_bytes = file.bytes;
  }
}

std::string ShardCopy::name() const {
  return incremental ? fmt::format("shard-{:05}.changes", increment.replica.shard())
                     : fmt::format("shard-{:05}", whole.replica.shard());
}

std::string ShardCopy::encode() const {
  return incremental ? encode_increment(increment) : encode_shard(whole);
}

SavedShard ShardCopy::report(const FileInfo& file) const {
  const ShardReplica& replica = incremental ? increment.replica : whole.replica;
  SavedShard saved{replica.shard(), file.name,    file.bytes,
                   file.hash,       replica.op(), replica.stream_hash()};
  if (incremental) {
    saved.rows = increment.tables.empty() ? 0 : increment.tables[0].rows_after;
    saved.incremental = true;
    saved.base_op = increment.base_op;
    saved.base_stream_hash = increment.base_stream_hash;
  } else {
    saved.rows = whole.tables.empty() ? 0 : whole.tables[0].rows;
  }
  return saved;
}

ShardImage copy_whole(const ShardParts& parts) {
  ShardImage image;
  image.shards = parts.shards;
  image.replica = *parts.replica;
  for (size_t t = 0; t < parts.tables.size(); ++t) {
    const SparseShard& table = parts.tables[t];
    TableImage part;
    part.name = parts.options[t].name;
    part.row_bytes = static_cast<uint32_t>(table.saved_row_bytes());
    part.rows = table.size();
    table.save_rows(&part.bytes);
    image.tables.push_back(std::move(part));
  }
  if (parts.dense != nullptr) {
    TableImage part;
    part.name = "dense";
    part.rows = parts.dense->size();
    parts.dense->save(&part.bytes);
    image.tables.push_back(std::move(part));
  }
  return image;
}

ShardCopy copy_shard(const ShardParts& parts, ShardSaves* saves, uint64_t number,
                     uint64_t committed, const ChainPolicy& policy) {
  ShardCopy copy;
  const ShardSaves::Choice choice =
      saves->begin(number, committed, *parts.replica, parts.tables, policy);
  copy.incremental = choice.incremental;
  if (!choice.incremental) {
    copy.whole = copy_whole(parts);
    return copy;
  }
  copy.increment.shards = parts.shards;
  copy.increment.replica = *parts.replica;
  copy.increment.base_op = choice.base_op;
  copy.increment.base_stream_hash = choice.base_stream_hash;
  for (size_t t = 0; t < parts.tables.size(); ++t) {
    const SparseShard& table = parts.tables[t];
    TableChanges part;
    part.name = parts.options[t].name;
    part.row_bytes = static_cast<uint32_t>(table.saved_row_bytes());
    part.rows_after = table.size();
    part.rows = table.save_changed(&part.bytes);
    copy.increment.tables.push_back(std::move(part));
  }
  return copy;
}

}  // namespace flux
