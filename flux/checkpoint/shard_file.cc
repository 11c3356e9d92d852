#include "flux/checkpoint/shard_file.h"

#include "flux/checkpoint/chunks.h"

namespace flux {
namespace {
constexpr std::string_view kMagic = "flux shard 1\n";
}  // namespace

std::string encode_shard(const ShardImage& image) {
  ByteWriter head;
  head.put(image.shards);
  head.put(static_cast<uint32_t>(image.tables.size()));
  size_t total = 0;
  for (const TableImage& table : image.tables) {
    head.text(table.name);
    head.put(table.row_bytes);
    head.put(table.rows);
    head.put(static_cast<uint64_t>(table.bytes.size()));
    total += table.bytes.size();
  }
  ByteWriter state;
  image.replica.encode(&state);
  head.put(static_cast<uint64_t>(state.size()));

  ChunkWriter out(kMagic, head.size() + state.size() + total);
  out.add(head.str());
  out.add_all(state.str());
  for (const TableImage& table : image.tables) out.add_all(table.bytes);
  return out.take();
}

Result<ShardImage> decode_shard(const std::string& path, std::string_view bytes) {
  ChunkReader chunks(path, bytes);
  FLUX_RETURN_IF_ERROR(chunks.magic(kMagic, "a flux shard file of version 1"));
  FLUX_ASSIGN_OR_RETURN(const std::string_view head_bytes, chunks.next());
  ByteReader head(head_bytes);
  ShardImage image;
  image.shards = head.get<uint32_t>();
  const auto tables = head.get<uint32_t>();
  if (tables > kTablesMax) return chunks.bad(kMagic.size(), "impossible number of tables");
  std::vector<uint64_t> sizes;
  for (uint32_t t = 0; t < tables && head.ok(); ++t) {
    TableImage table;
    table.name = head.text(kTableNameMax);
    table.row_bytes = head.get<uint32_t>();
    table.rows = head.get<uint64_t>();
    sizes.push_back(head.get<uint64_t>());
    image.tables.push_back(std::move(table));
  }
  const auto state_bytes = head.get<uint64_t>();
  if (!head.ok() || head.left() != 0) return chunks.bad(kMagic.size(), "malformed header");

  std::string state;
  FLUX_RETURN_IF_ERROR(chunks.read(state_bytes, &state));
  ByteReader state_reader(state);
  auto replica = ShardReplica::decode(&state_reader);
  if (!replica.is_ok()) return replica.status().with_context(path);
  image.replica = std::move(replica).value();
  for (uint32_t t = 0; t < tables; ++t)
    FLUX_RETURN_IF_ERROR(chunks.read(sizes[t], &image.tables[t].bytes));
  FLUX_RETURN_IF_ERROR(chunks.finish());
  return image;
}

}  // namespace flux
