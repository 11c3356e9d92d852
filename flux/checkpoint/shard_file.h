// ShardFile: one shard as bytes on disk: its protocol state (ledger included) and its rows.
//
// The format is drawn in docs/internals/checkpoint.md: a magic line, then chunks, each with its
// length and checksum, so that a flipped bit is found with its offset and nothing larger than a
// chunk is trusted before it is checked.
// Pure functions over bytes but for read/write. Failure: kCorrupt names file and offset.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "flux/base/status.h"
#include "flux/protocol/shard_replica.h"

namespace flux {

// Rows of one table in one shard, as SparseShard::save_rows() made them; or, with table name
// "dense", what DenseShard::save() made.
struct TableImage {
  std::string name;
  uint32_t row_bytes = 0;
  uint64_t rows = 0;
  std::string bytes;
};

struct ShardImage {
  ShardReplica replica;
  uint32_t shards = 0;  // sparse shards in all, which keys were hashed over
  std::vector<TableImage> tables;
};

struct FileInfo {
  std::string name;
  uint64_t bytes = 0;
  uint64_t hash = 0;  // of the whole file
  bool operator==(const FileInfo&) const = default;
};

std::string encode_shard(const ShardImage& image);
// `path` is for messages.
Result<ShardImage> decode_shard(const std::string& path, std::string_view bytes);

}  // namespace flux
