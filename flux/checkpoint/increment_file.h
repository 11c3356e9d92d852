// Increment: what changed in one shard since an earlier save of it, as a file of its own.
//
// It names the state it builds on (operation number and stream hash) and the state it leads to, and
// holds the whole protocol state (the ledger is small) but only the rows that changed, and the keys
// of rows that are no more. Tables of a dense shard are never written so. The format is drawn in
// docs/internals/checkpoint.md. ChainMerger puts a whole file and its increments together.
// Pure functions over bytes. Failure: kCorrupt names file and offset.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "flux/base/key.h"
#include "flux/base/status.h"
#include "flux/checkpoint/shard_file.h"
#include "flux/protocol/shard_replica.h"

namespace flux {

struct TableChanges {
  std::string name;
  uint32_t row_bytes = 0;
  uint64_t rows_after = 0;   // rows of the whole table with these changes in it
  uint64_t rows = 0;         // that changed or are new
  std::string bytes;         // theirs, as SparseShard::save_slice() made them
  std::vector<Key> removed;  // rows that are no more; none of them among those above
};

struct ShardIncrement {
  ShardReplica replica;
  uint32_t shards = 0;  // sparse shards in all, which keys were hashed over
  uint64_t base_op = 0;
  uint64_t base_stream_hash = 0;
  std::vector<TableChanges> tables;
};

std::string encode_increment(const ShardIncrement& increment);
// `path` is for messages.
Result<ShardIncrement> decode_increment(const std::string& path, std::string_view bytes);
// Whether the bytes begin as an increment does.
bool is_increment(std::string_view bytes);

// A shard as its newest file leaves it: the whole file first, then each increment in order. Every
// increment must continue the state before it, or nothing more is added. A merge that failed must
// not be used any further.
class ChainMerger {
 public:
  explicit ChainMerger(ShardImage whole);
  ~ChainMerger();
  ChainMerger(ChainMerger&&) noexcept;
  ChainMerger& operator=(ChainMerger&&) noexcept;

  // kCorrupt, with `path` in the message, if it does not continue what is here or contradicts it.
  Status add(const std::string& path, const ShardIncrement& increment);
  // Rows keep the order of their first appearance.
  ShardImage finish();

 private:
  class Rows;  // of one table, by key
  ShardImage image_;
  std::vector<std::unique_ptr<Rows>> rows_;
};

}  // namespace flux
