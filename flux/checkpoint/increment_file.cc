#include "flux/checkpoint/increment_file.h"

#include "flux/checkpoint/chunks.h"

namespace flux {
namespace {

constexpr std::string_view kMagic = "flux changes 1\n";

void put_state(const ShardReplica& replica, ByteWriter* out) {
  out->put(replica.shard());
  out->put(replica.epoch().term);
  out->put(replica.epoch().n);
  out->put(replica.op());
  out->put(replica.stream_hash());
}

// The header names the state again, so that it can be told without the ledger.
bool same_state(const ShardReplica& replica, std::string_view named) {
  ByteWriter state;
  put_state(replica, &state);
  return state.str() == named;
}

constexpr size_t kStateBytes = 4 + 4 * 8;

struct Sizes {
  uint64_t bytes = 0;
  uint64_t removed = 0;
};

TableChanges take_table(ByteReader* head, Sizes* sizes) {
  TableChanges table;
  table.name = head->text(kTableNameMax);
  table.row_bytes = head->get<uint32_t>();
  table.rows_after = head->get<uint64_t>();
  table.rows = head->get<uint64_t>();
  sizes->bytes = head->get<uint64_t>();
  sizes->removed = head->get<uint64_t>();
  return table;
}

bool possible(const TableChanges& table, const Sizes& sizes) {
  return table.row_bytes >= sizeof(Key) && sizes.bytes % table.row_bytes == 0 &&
         sizes.bytes / table.row_bytes == table.rows && sizes.removed < (uint64_t{1} << 60);
}

Status read_table(ChunkReader* chunks, const Sizes& sizes, TableChanges* table) {
  std::string keys;
  FLUX_RETURN_IF_ERROR(chunks->read(sizes.removed * sizeof(Key), &keys));
  table->removed.resize(sizes.removed);
  if (!keys.empty()) std::memcpy(table->removed.data(), keys.data(), keys.size());
  return chunks->read(sizes.bytes, &table->bytes);
}

}  // namespace

bool is_increment(std::string_view bytes) {
  return bytes.starts_with(kMagic);
}

std::string encode_increment(const ShardIncrement& increment) {
  ByteWriter head;
  head.put(increment.shards);
  head.put(increment.base_op);
  head.put(increment.base_stream_hash);
  put_state(increment.replica, &head);
  head.put(static_cast<uint32_t>(increment.tables.size()));
  size_t total = 0;
  for (const TableChanges& table : increment.tables) {
    head.text(table.name);
    head.put(table.row_bytes);
    head.put(table.rows_after);
    head.put(table.rows);
    head.put(static_cast<uint64_t>(table.bytes.size()));
    head.put(static_cast<uint64_t>(table.removed.size()));
    total += table.bytes.size() + table.removed.size() * sizeof(Key);
  }
  ChunkWriter out(kMagic, std::move(head), increment.replica, total);
  for (const TableChanges& table : increment.tables) {
    const auto* keys = reinterpret_cast<const char*>(table.removed.data());
    out.add_all({keys, table.removed.size() * sizeof(Key)});
    out.add_all(table.bytes);
  }
  return out.take();
}

Result<ShardIncrement> decode_increment(const std::string& path, std::string_view bytes) {
  ChunkReader chunks(path, bytes);
  FLUX_ASSIGN_OR_RETURN(ByteReader head, chunks.head(kMagic, "a flux increment file of version 1"));
  ShardIncrement increment;
  increment.shards = head.get<uint32_t>();
  increment.base_op = head.get<uint64_t>();
  increment.base_stream_hash = head.get<uint64_t>();
  const char* named = head.take(kStateBytes);
  const auto tables = head.get<uint32_t>();
  if (tables > kTablesMax) return chunks.bad_head("impossible number of tables");
  std::vector<Sizes> sizes(tables);
  for (uint32_t t = 0; t < tables && head.ok(); ++t) {
    increment.tables.push_back(take_table(&head, &sizes[t]));
    if (head.ok() && !possible(increment.tables[t], sizes[t]))
      return chunks.bad_head("rows do not fit their table");
  }
  FLUX_ASSIGN_OR_RETURN(increment.replica, chunks.replica(&head));
  if (!same_state(increment.replica, {named, kStateBytes}))
    return chunks.bad_head("the header names another state than the file holds");
  for (uint32_t t = 0; t < tables; ++t)
    FLUX_RETURN_IF_ERROR(read_table(&chunks, sizes[t], &increment.tables[t]));
  FLUX_RETURN_IF_ERROR(chunks.finish());
  return increment;
}

}  // namespace flux
