#include "flux/data/blocks/block_file.h"

#include <algorithm>
#include <utility>

namespace flux {

using block_file::ChunkHead;
using block_file::IndexEntry;

Status BlockFile::corrupt(uint64_t byte, const std::string& what) const {
  return error(Code::kCorrupt, "{}: damaged at byte {}: {}; copy it again, or convert it anew",
               path(), byte, what);
}

bool BlockFile::looks_like_one(const ReadFile& file) {
  uint64_t magic = 0;
  return file.size() >= sizeof magic && file.read_at(0, &magic, sizeof magic).is_ok() &&
         magic == block_file::kHeadMagic;
}

Result<std::shared_ptr<const BlockFile>> BlockFile::open(const std::string& path) {
  FLUX_ASSIGN_OR_RETURN(ReadFile file, ReadFile::open(path));
  if (!looks_like_one(file))
    return invalid(
        "{}: is no block file: it does not begin with FLUXBLK1; name its format in data.format, or "
        "make block files with 'flux data convert'",
        path);
  std::shared_ptr<BlockFile> out(new BlockFile(std::move(file)));
  FLUX_RETURN_IF_ERROR(out->read_schema());
  FLUX_RETURN_IF_ERROR(out->read_index());
  return std::shared_ptr<const BlockFile>(std::move(out));
}

Status BlockFile::read_schema() {
  block_file::Head head;
  if (file_.size() < sizeof head) return corrupt(file_.size(), "it ends within its head");
  FLUX_RETURN_IF_ERROR(file_.read_at(0, &head, sizeof head));
  if (head.schema_bytes > block_file::kSchemaBytesMax ||
      sizeof head + head.schema_bytes > file_.size())
    return corrupt(8, fmt::format("a schema of {} bytes", head.schema_bytes));
  std::string json(head.schema_bytes, '\0');
  FLUX_RETURN_IF_ERROR(file_.read_at(sizeof head, json.data(), json.size()));
  if (hash_bytes(json) != head.schema_hash)
    return corrupt(sizeof head, "the check sum of its schema differs");
  auto schema = RecordSchema::from_json(json);
  if (!schema.is_ok()) return corrupt(sizeof head, schema.status().message());
  schema_ = std::move(schema).value();
  chunks_begin_ = sizeof head + head.schema_bytes;
  return Status::ok();
}

Status BlockFile::read_index() {
  block_file::Tail tail;
  ChunkHead head;
  const uint64_t size = file_.size();
  const char* const cut = "it ends before its index: it was cut, or is being written";
  if (size < chunks_begin_ + sizeof head + sizeof tail) return corrupt(size, cut);
  FLUX_RETURN_IF_ERROR(file_.read_at(size - sizeof tail, &tail, sizeof tail));
  if (tail.magic != block_file::kTailMagic) return corrupt(size, cut);
  if (tail.index_offset < chunks_begin_ || tail.index_offset > size - sizeof tail - sizeof head)
    return corrupt(size - sizeof tail, "the index is not where the tail says");
  FLUX_RETURN_IF_ERROR(file_.read_at(tail.index_offset, &head, sizeof head));
  const uint64_t bytes = size - sizeof tail - sizeof head - tail.index_offset;
  if (head.magic != block_file::kIndexMagic || head.head_hash != head.computed_hash() ||
      head.payload_bytes != bytes || bytes % sizeof(IndexEntry) != 0)
    return corrupt(tail.index_offset, "the head of its index is wrong");
  chunks_.resize(bytes / sizeof(IndexEntry));
  FLUX_RETURN_IF_ERROR(file_.read_at(tail.index_offset + sizeof head, chunks_.data(), bytes));
  if (hash_bytes(chunks_.data(), bytes) != head.payload_hash)
    return corrupt(tail.index_offset, "the check sum of its index differs");
  records_ = head.records;
  content_ = hash_pair(head.payload_hash, hash_bytes(schema_.to_json()));
  return check_index(tail.index_offset);
}

// A right check sum says that nobody changed it since, not that who wrote it was right.
Status BlockFile::check_index(uint64_t index_offset) const {
  uint64_t offset = chunks_begin_, record = 0;
  for (const IndexEntry& chunk : chunks_) {
    if (chunk.offset != offset || chunk.first_record != record || chunk.records == 0)
      return corrupt(index_offset, fmt::format("the index has no chunk at byte {}", offset));
    offset += sizeof(ChunkHead) + chunk.payload_bytes;
    record += chunk.records;
  }
  if (offset != index_offset || record != records_)
    return corrupt(index_offset, "the index does not fit the chunks");
  return Status::ok();
}

std::span<const IndexEntry> BlockFile::chunks_of(uint64_t first, uint64_t count) const {
  const auto behind = [](uint64_t record, const IndexEntry& chunk) {
    return record < chunk.first_record;
  };
  const auto begin = std::upper_bound(chunks_.begin(), chunks_.end(), first, behind) - 1;
  const auto end = std::upper_bound(begin, chunks_.end(), first + count - 1, behind);
  return {begin, end};
}

}  // namespace flux
