// Chunks: how the files of a shard are cut: a magic line, then pieces with length and checksum: the
// header, the protocol state, the tables.
//
// Private to checkpoint/. The seed of a chunk's checksum is its number, so that chunks cannot
// change places. Nothing larger than a chunk is trusted before it is checked. Pure; not
// thread-safe. Failure: kCorrupt names file and offset.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "flux/base/bytes.h"
#include "flux/base/hash.h"
#include "flux/base/status.h"
#include "flux/protocol/shard_replica.h"

namespace flux {

constexpr uint32_t kChunkMax = 1U << 20;
constexpr uint32_t kTablesMax = 1024;
constexpr uint32_t kTableNameMax = 256;

class ChunkWriter {
 public:
  // The header, to which the size of the state is added, and the state. `bytes`: about how much
  // will be added.
  ChunkWriter(std::string_view magic, ByteWriter head, const ShardReplica& replica, size_t bytes) {
    ByteWriter state;
    replica.encode(&state);
    head.put(static_cast<uint64_t>(state.size()));
    bytes += head.size() + state.size();
    out_.reserve(magic.size() + bytes + bytes / kChunkMax * 12 + 4096);
    out_.append(magic);
    add(head.str());
    add_all(state.str());
  }
  // As many chunks as it takes; none for no bytes.
  void add_all(std::string_view bytes) {
    for (size_t at = 0; at < bytes.size(); at += kChunkMax) add(bytes.substr(at, kChunkMax));
  }
  std::string take() { return std::move(out_); }

 private:
  void add(std::string_view payload) {
    const auto size = static_cast<uint32_t>(payload.size());
    const uint64_t sum = hash_bytes(payload, ++number_);
    out_.append(reinterpret_cast<const char*>(&size), sizeof size);
    out_.append(payload);
    out_.append(reinterpret_cast<const char*>(&sum), sizeof sum);
  }

  std::string out_;
  uint64_t number_ = 0;
};

class ChunkReader {
 public:
  ChunkReader(const std::string& path, std::string_view bytes) : path_(path), in_(bytes) {}

  // The header; `what` the file should be.
  Result<ByteReader> head(std::string_view magic, const char* what) {
    const char* found = in_.take(magic.size());
    if (found == nullptr || std::string_view(found, magic.size()) != magic)
      return error(Code::kCorrupt, "{}:0: not {}", path_, what);
    head_at_ = in_.offset();
    FLUX_ASSIGN_OR_RETURN(const std::string_view bytes, next());
    return ByteReader(bytes);
  }
  // The state; what is left of the header is its size.
  Result<ShardReplica> replica(ByteReader* head) {
    const auto bytes = head->get<uint64_t>();
    if (!head->ok() || head->left() != 0) return bad_head("malformed header");
    std::string state;
    FLUX_RETURN_IF_ERROR(read(bytes, &state));
    ByteReader in(state);
    auto replica = ShardReplica::decode(&in);
    if (!replica.is_ok()) return replica.status().with_context(path_);
    return replica;
  }
  // The chunks of `bytes` bytes, put together.
  Status read(uint64_t bytes, std::string* out) {
    if (bytes > in_.left()) return bad(in_.offset(), "the file is cut short");
    out->reserve(bytes);
    while (out->size() < bytes) {
      FLUX_ASSIGN_OR_RETURN(const std::string_view chunk, next());
      if (chunk.empty() || chunk.size() > bytes - out->size())
        return bad(in_.offset(), "rows do not fit their table");
      out->append(chunk);
    }
    return Status::ok();
  }
  Status finish() const {
    return in_.left() == 0 ? Status::ok() : bad(in_.offset(), "bytes after the end");
  }
  Status bad_head(const char* what) const { return bad(head_at_, what); }

 private:
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
  Status bad(size_t offset, const char* what) const {
    return error(Code::kCorrupt, "{}:{}: {}", path_, offset, what);
  }

  std::string path_;
  ByteReader in_;
  size_t head_at_ = 0;
  uint64_t number_ = 0;
};

}  // namespace flux
