// A whole file and its increments, put together.
#include <algorithm>
#include <cstring>

#include "flux/checkpoint/increment_file.h"
#include "flux/table/key_index.h"
#include "flux/table/row_arena.h"

namespace flux {
namespace {

Key key_of(const char* row) {
  Key key;
  std::memcpy(&key, row, sizeof key);
  return key;
}

constexpr size_t kAhead = 16;  // rows between prefetch and use

}  // namespace

// Finds the rows of a table's bytes by key. Removed rows stay in place until compact().
class ChainMerger::Rows {
 public:
  explicit Rows(TableImage* table) : table_(table), index_(&arena_) {
    rows_ = table->bytes.size() / table->row_bytes;
    dead_.assign(rows_, false);
    make_room(rows_);
  }

  void add(const TableChanges& changes) {
    if (rows_ + changes.rows > index_.capacity())
      make_room(std::max<size_t>(rows_ + changes.rows, rows_ + rows_ / 2));
    for (const Key key : changes.removed) remove(key);
    const char* row = changes.bytes.data();
    for (uint64_t i = 0; i < changes.rows; ++i, row += changes.row_bytes) {
      if (i + kAhead < changes.rows)
        index_.prefetch(key_hash(key_of(row + kAhead * changes.row_bytes)));
      put(row);
    }
  }
  uint64_t live() const { return rows_ - dead_rows_; }
  void compact() {
    if (dead_rows_ == 0) return;
    std::string kept;
    kept.reserve(live() * table_->row_bytes);
    for (size_t i = 0; i < rows_; ++i)
      if (!dead_[i]) kept.append(row(i), table_->row_bytes);
    table_->bytes = std::move(kept);
  }

 private:
  char* row(size_t i) { return table_->bytes.data() + i * table_->row_bytes; }
  uint32_t find(Key key, uint64_t hash) {
    return index_.find(hash, [&](uint32_t i) { return key_of(row(i)) == key; });
  }
  void make_room(size_t rows) {
    index_.resize(KeyIndex::lines_for(rows + 1), rows + 1);
    for (size_t i = 0; i < rows_; ++i)
      index_.insert(key_hash(key_of(row(i))), static_cast<uint32_t>(i));
  }
  void put(const char* from) {
    const Key key = key_of(from);
    const uint64_t hash = key_hash(key);
    const uint32_t found = find(key, hash);
    if (found == KeyIndex::kNone) {
      index_.insert(hash, static_cast<uint32_t>(rows_++));
      dead_.push_back(false);
      table_->bytes.append(from, table_->row_bytes);
      return;
    }
    std::memcpy(row(found), from, table_->row_bytes);
    dead_rows_ -= dead_[found] ? 1 : 0;
    dead_[found] = false;
  }
  void remove(Key key) {
    const uint32_t found = find(key, key_hash(key));
    if (found == KeyIndex::kNone || dead_[found]) return;
    dead_[found] = true;
    ++dead_rows_;
  }

  TableImage* table_;
  RowArena arena_;
  KeyIndex index_;
  size_t rows_ = 0;  // dead ones too
  std::vector<bool> dead_;
  size_t dead_rows_ = 0;
};

ChainMerger::ChainMerger(ShardImage whole)
    : image_(std::move(whole)), rows_(image_.tables.size()) {}
ChainMerger::~ChainMerger() = default;
ChainMerger::ChainMerger(ChainMerger&&) noexcept = default;
ChainMerger& ChainMerger::operator=(ChainMerger&&) noexcept = default;

Status ChainMerger::add(const std::string& path, const ShardIncrement& increment) {
  const ShardReplica& now = image_.replica;
  const ShardReplica& next = increment.replica;
  if (next.shard() != now.shard() || increment.shards != image_.shards)
    return error(Code::kCorrupt, "{}: changes of shard {} of {}, the chain is of shard {} of {}",
                 path, next.shard(), increment.shards, now.shard(), image_.shards);
  if (increment.base_op != now.op() || increment.base_stream_hash != now.stream_hash() ||
      next.op() < now.op())
    return error(Code::kCorrupt,
                 "{}: does not continue the file before it: it begins at operation {} (stream "
                 "{:016x}), that one ends at {} ({:016x})",
                 path, increment.base_op, increment.base_stream_hash, now.op(), now.stream_hash());
  if (increment.tables.size() != image_.tables.size())
    return error(Code::kCorrupt, "{}: changes of {} tables, the shard has {}", path,
                 increment.tables.size(), image_.tables.size());
  for (size_t t = 0; t < increment.tables.size(); ++t) {
    const TableChanges& changes = increment.tables[t];
    TableImage& table = image_.tables[t];
    if (changes.name != table.name || changes.row_bytes != table.row_bytes ||
        table.row_bytes == 0 || table.bytes.size() != table.rows * table.row_bytes)
      return error(Code::kCorrupt, "{}: changes of table '{}' ({} bytes), the shard has '{}' ({})",
                   path, changes.name, changes.row_bytes, table.name, table.row_bytes);
    if (table.rows + changes.rows >= KeyIndex::kNone / 2)
      return error(Code::kCorrupt, "{}: table '{}' has too many rows", path, table.name);
    if (!rows_[t]) rows_[t] = std::make_unique<Rows>(&table);
    rows_[t]->add(changes);
    table.rows = table.bytes.size() / table.row_bytes;
    if (rows_[t]->live() != changes.rows_after)
      return error(Code::kCorrupt, "{}: table '{}' has {} rows with these changes, {} are expected",
                   path, changes.name, rows_[t]->live(), changes.rows_after);
  }
  image_.replica = next;
  return Status::ok();
}

ShardImage ChainMerger::finish() {
  for (size_t t = 0; t < rows_.size(); ++t) {
    if (!rows_[t]) continue;
    rows_[t]->compact();
    image_.tables[t].rows = rows_[t]->live();
  }
  rows_.clear();
  return std::move(image_);
}

}  // namespace flux
