// BlockFileWriter: examples to a block file, chunk by chunk.
//
// The file appears under its name when finish() has succeeded, complete and flushed; a writer that
// is destroyed before leaves nothing behind. Memory: one chunk, three times as it is written, and
// the index.
// Threads: one. Failure: kIo with path and reason.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "flux/base/status.h"
#include "flux/data/batch.h"
#include "flux/data/blocks/layout.h"
#include "flux/data/blocks/record_schema.h"

namespace flux {

class BlockFileWriter {
 public:
  // A chunk is closed when it has more than `chunk_bytes`.
  static Result<std::unique_ptr<BlockFileWriter>> create(
      const std::string& path, const RecordSchema& schema,
      uint32_t chunk_bytes = block_file::kChunkBytesAim);
  ~BlockFileWriter();
  BlockFileWriter(const BlockFileWriter&) = delete;
  BlockFileWriter& operator=(const BlockFileWriter&) = delete;

  // Every example of a batch that has the shape of the schema.
  Status add(const Batch& batch);
  // Some of its examples, in the order of `examples`.
  Status add(const Batch& batch, std::span<const uint32_t> examples);
  // To be called once, last.
  Status finish();
  uint64_t records() const { return records_; }
  uint64_t bytes() const { return offset_; }

 private:
  BlockFileWriter(std::string path, RecordSchema schema, int file, uint32_t chunk_bytes);
  void check_shape(const Batch& batch) const;
  Status take(const Batch& batch, uint32_t example);
  void add_example(const Batch& batch, uint32_t example);
  uint32_t count_bytes() const;
  std::string payload(uint32_t count_bytes) const;
  Status close_chunk();
  Status write(const void* bytes, size_t size);

  const std::string path_, temporary_;
  const RecordSchema schema_;
  const uint32_t chunk_bytes_;
  int file_;
  uint64_t offset_ = 0, records_ = 0;
  // The chunk under construction.
  std::string fixed_;             // of all records, each of schema_.fixed_bytes()
  std::vector<uint32_t> counts_;  // [records][slots], if slots have many keys
  std::vector<uint64_t> keys_;
  std::vector<float> values_;         // of each key, if they have them
  std::vector<uint32_t> keys_begin_;  // [records + 1]
  std::vector<block_file::IndexEntry> index_;
};

}  // namespace flux
