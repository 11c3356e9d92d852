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
  ChunkWriter out(kMagic, std::move(head), image.replica, total);
  for (const TableImage& table : image.tables) out.add_all(table.bytes);
  return out.take();
}

Result<ShardImage> decode_shard(const std::string& path, std::string_view bytes) {
  ChunkReader chunks(path, bytes);
  FLUX_ASSIGN_OR_RETURN(ByteReader head, chunks.head(kMagic, "a flux shard file of version 1"));
  ShardImage image;
  image.shards = head.get<uint32_t>();
  const auto tables = head.get<uint32_t>();
  if (tables > kTablesMax) return chunks.bad_head("impossible number of tables");
  std::vector<uint64_t> sizes;
  for (uint32_t t = 0; t < tables && head.ok(); ++t) {
    TableImage table;
    table.name = head.text(kTableNameMax);
    table.row_bytes = head.get<uint32_t>();
    table.rows = head.get<uint64_t>();
    sizes.push_back(head.get<uint64_t>());
    image.tables.push_back(std::move(table));
  }
  FLUX_ASSIGN_OR_RETURN(image.replica, chunks.replica(&head));
  for (uint32_t t = 0; t < tables; ++t)
    FLUX_RETURN_IF_ERROR(chunks.read(sizes[t], &image.tables[t].bytes));
  FLUX_RETURN_IF_ERROR(chunks.finish());
  return image;
}

}  // namespace flux
