#include "flux/checkpoint/shard_file.h"

#include <algorithm>

#include "flux/base/bytes.h"
#include "flux/base/hash.h"

namespace flux {
namespace {

constexpr std::string_view kMagic = "flux shard 1\n";
constexpr uint32_t kChunkMax = 1U << 20;
constexpr uint32_t kTablesMax = 1024;
constexpr uint32_t kNameMax = 256;

// length, payload, checksum (seeded by the chunk's number, so that chunks cannot change places)
void append_chunk(std::string* out, std::string_view payload, uint64_t number) {
  const auto size = static_cast<uint32_t>(payload.size());
  const uint64_t sum = hash_bytes(payload, number + 1);
  out->append(reinterpret_cast<const char*>(&size), sizeof size);
  out->append(payload);
  out->append(reinterpret_cast<const char*>(&sum), sizeof sum);
}

class ChunkReader {
 public:
  ChunkReader(const std::string& path, std::string_view bytes) : path_(path), in_(bytes) {}

  Status magic() {
    const char* found = in_.take(kMagic.size());
    if (found == nullptr || std::string_view(found, kMagic.size()) != kMagic)
      return error(Code::kCorrupt, "{}:0: not a flux shard file of version 1", path_);
    return Status::ok();
  }
  Result<std::string_view> next() {
    const size_t at = in_.offset();
    const auto size = in_.get<uint32_t>();
    if (size > kChunkMax) return bad(at, "impossible chunk length");
    const char* payload = in_.take(size);
    const auto sum = in_.get<uint64_t>();
    if (!in_.ok()) return bad(at, "the file is cut short");
    const std::string_view view(payload, size);
    if (hash_bytes(view, ++number_) != sum) return bad(at, "checksum does not match");
    return view;
  }
  Status finish() const {
    return in_.left() == 0 ? Status::ok() : bad(in_.offset(), "bytes after the end");
  }
  Status bad(size_t offset, const char* what) const {
    return error(Code::kCorrupt, "{}:{}: {}", path_, offset, what);
  }
  size_t offset() const { return in_.offset(); }
  size_t left() const { return in_.left(); }

 private:
  std::string path_;
  ByteReader in_;
  uint64_t number_ = 0;
};

Status read_table(ChunkReader* chunks, uint64_t bytes, TableImage* table) {
  if (bytes > chunks->left()) return chunks->bad(chunks->offset(), "the file is cut short");
  table->bytes.reserve(bytes);
  while (table->bytes.size() < bytes) {
    FLUX_ASSIGN_OR_RETURN(const std::string_view chunk, chunks->next());
    if (chunk.empty() || chunk.size() > bytes - table->bytes.size())
      return chunks->bad(chunks->offset(), "rows do not fit their table");
    table->bytes.append(chunk);
  }
  return Status::ok();
}

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

  std::string out;
  out.reserve(kMagic.size() + head.size() + state.size() + total + total / kChunkMax * 12 + 4096);
  out.append(kMagic);
  uint64_t number = 0;
  append_chunk(&out, head.str(), number++);
  const auto append_all = [&](std::string_view bytes) {
    for (size_t at = 0; at < bytes.size(); at += kChunkMax)
      append_chunk(&out, bytes.substr(at, kChunkMax), number++);
  };
  append_all(state.str());
  for (const TableImage& table : image.tables) append_all(table.bytes);
  return out;
}

Result<ShardImage> decode_shard(const std::string& path, std::string_view bytes) {
  ChunkReader chunks(path, bytes);
  FLUX_RETURN_IF_ERROR(chunks.magic());
  FLUX_ASSIGN_OR_RETURN(const std::string_view head_bytes, chunks.next());
  ByteReader head(head_bytes);
  ShardImage image;
  image.shards = head.get<uint32_t>();
  const auto tables = head.get<uint32_t>();
  if (tables > kTablesMax) return chunks.bad(kMagic.size(), "impossible number of tables");
  std::vector<uint64_t> sizes;
  for (uint32_t t = 0; t < tables && head.ok(); ++t) {
    TableImage table;
    table.name = head.text(kNameMax);
    table.row_bytes = head.get<uint32_t>();
    table.rows = head.get<uint64_t>();
    sizes.push_back(head.get<uint64_t>());
    image.tables.push_back(std::move(table));
  }
  const auto state_bytes = head.get<uint64_t>();
  if (!head.ok() || head.left() != 0) return chunks.bad(kMagic.size(), "malformed header");

  TableImage state;
  FLUX_RETURN_IF_ERROR(read_table(&chunks, state_bytes, &state));
  ByteReader state_reader(state.bytes);
  auto replica = ShardReplica::decode(&state_reader);
  if (!replica.is_ok()) return replica.status().with_context(path);
  image.replica = std::move(replica).value();
  for (uint32_t t = 0; t < tables; ++t)
    FLUX_RETURN_IF_ERROR(read_table(&chunks, sizes[t], &image.tables[t]));
  FLUX_RETURN_IF_ERROR(chunks.finish());
  return image;
}

}  // namespace flux
