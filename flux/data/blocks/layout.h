// The bytes of a block file; docs/internals/block_file.md has the picture.
//
//   head    kHeadMagic, length of the schema, its hash; the schema as JSON
//   chunks  a ChunkHead each, then where its records begin, then the records
//   index   a ChunkHead with kIndexMagic, then an IndexEntry for each chunk
//   tail    where the index is; the last bytes of the file
// Numbers are little-endian. Plain values; safe everywhere.
#pragma once

#include <cstddef>
#include <cstdint>

#include "flux/base/hash.h"

namespace flux::block_file {

constexpr uint64_t kHeadMagic = 0x314B4C4258554C46;  // "FLUXBLK1"
constexpr uint64_t kTailMagic = 0x444E454258554C46;  // "FLUXBEND"
constexpr uint32_t kChunkMagic = 0x4B4E4843;         // "CHNK"
constexpr uint32_t kIndexMagic = 0x58444E49;         // "INDX"

constexpr uint32_t kChunkRecordsMax = 512;
constexpr uint32_t kChunkBytesAim = 1 << 20;  // a chunk is closed when it has more
constexpr uint32_t kChunkBytesMax = 1U << 30;
constexpr uint32_t kSchemaBytesMax = 16 << 20;

struct Head {
  uint64_t magic = kHeadMagic;
  uint32_t schema_bytes = 0;
  uint32_t unused = 0;
  uint64_t schema_hash = 0;
};

// Before a chunk, and before the index (records: of the whole file).
struct ChunkHead {
  uint32_t magic = kChunkMagic;
  uint32_t count_bytes = 1;  // 1, 2 or 4: of the number of keys of a slot
  uint64_t records = 0;
  uint64_t payload_bytes = 0;
  uint64_t payload_hash = 0;
  uint64_t head_hash = 0;  // of what is above

  uint64_t computed_hash() const { return hash_bytes(this, offsetof(ChunkHead, head_hash)); }
};

struct IndexEntry {
  uint64_t offset = 0;  // of the ChunkHead
  uint64_t first_record = 0;
  uint64_t payload_hash = 0;
  uint32_t records = 0;
  uint32_t payload_bytes = 0;
};

struct Tail {
  uint64_t index_offset = 0;
  uint64_t magic = kTailMagic;
};

static_assert(sizeof(Head) == 24 && sizeof(ChunkHead) == 40 && sizeof(IndexEntry) == 32 &&
              sizeof(Tail) == 16);

}  // namespace flux::block_file
