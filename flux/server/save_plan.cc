#include "flux/server/save_plan.h"

#include <algorithm>
#include <utility>

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
  in_doubt_ = InDoubt{{}, !whole, false, ++turns_};
  if (!whole) in_doubt_->chain = base_;
  in_doubt_->chain.number = number;
  if (whole) return {false, 0, 0, turns_};
  return {true, base_.op, base_.stream_hash, turns_};
}

bool ShardSaves::copied(uint64_t turn, const ShardReplica& replica) {
  if (!is_under_way(turn)) return false;
  in_doubt_->chain.op = replica.op();
  in_doubt_->chain.stream_hash = replica.stream_hash();
  return true;
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
    for (const auto& table : increment.tables) saved.rows += table.rows_after;
    saved.incremental = true;
    saved.base_op = increment.base_op;
    saved.base_stream_hash = increment.base_stream_hash;
  } else {
    for (const TableImage& table : whole.tables) saved.rows += table.rows;
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

void ShardCopy::begin(const ShardParts& parts, ShardSaves* saves, uint64_t number,
                      uint64_t committed, const ChainPolicy& policy) {
  const ShardSaves::Choice choice =
      saves->begin(number, committed, *parts.replica, parts.tables, policy);
  *this = {};
  incremental = choice.incremental;
  increment.base_op = choice.base_op;
  increment.base_stream_hash = choice.base_stream_hash;
  turn_ = choice.turn;
  rows_.resize(parts.tables.size());
}

Result<bool> ShardCopy::step(const ShardParts& parts, ShardSaves* saves, size_t bytes) {
  const auto other_save = [&] {
    return error(Code::kUnavailable, "shard {}: another save of it began", parts.replica->shard());
  };
  if (!saves->is_under_way(turn_) || rows_.size() != parts.tables.size()) return other_save();
  for (; table_ < rows_.size(); ++table_) {
    const SparseShard& table = parts.tables[table_];
    RowCopy& copy = rows_[table_];
    const size_t rows = bytes / table.saved_row_bytes() + 1;
    const size_t before = copy.bytes.size();
    if (table.save_slice(!incremental, rows, &copy)) return true;
    bytes -= std::min(bytes, copy.bytes.size() - before);
  }
  if (!saves->copied(turn_, *parts.replica)) return other_save();
  finish(parts);
  return false;
}

void ShardCopy::finish(const ShardParts& parts) {
  for (size_t t = 0; t < rows_.size(); ++t) parts.tables[t].finish_slices(&rows_[t]);
  if (!incremental) {
    whole.shards = parts.shards;
    whole.replica = *parts.replica;
  } else {
    increment.shards = parts.shards;
    increment.replica = *parts.replica;
  }
  for (size_t t = 0; t < rows_.size(); ++t) {
    const auto row_bytes = static_cast<uint32_t>(parts.tables[t].saved_row_bytes());
    const uint64_t rows = rows_[t].bytes.size() / row_bytes;
    const std::string& name = parts.options[t].name;
    if (!incremental)
      whole.tables.push_back({name, row_bytes, rows, std::move(rows_[t].bytes)});
    else
      increment.tables.push_back(
          {name, row_bytes, parts.tables[t].size(), rows, std::move(rows_[t].bytes), {}});
  }
  if (parts.dense != nullptr) whole.tables = copy_whole(parts).tables;
}

}  // namespace flux
