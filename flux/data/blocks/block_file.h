// BlockFile: a block file that is open: its schema, and where its chunks are.
//
// open() reads head, index and tail, and trusts none of them: the index is checked against its hash
// and against the size of the file. Chunks are read and checked by who reads records.
// Threads: immutable, shared by all. Failure: kNotFound / kIo; kCorrupt with path and byte.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "flux/base/status.h"
#include "flux/data/blocks/layout.h"
#include "flux/data/blocks/record_schema.h"
#include "flux/storage/read_file.h"

namespace flux {

class BlockFile {
 public:
  static Result<std::shared_ptr<const BlockFile>> open(const std::string& path);
  // Does the file begin as a block file does?
  static bool looks_like_one(const ReadFile& file);

  const std::string& path() const { return file_.path(); }
  const ReadFile& file() const { return file_; }
  const RecordSchema& schema() const { return schema_; }
  uint64_t records() const { return records_; }
  uint64_t content() const { return content_; }  // hash of all that is in it
  // In the order of their records; the first begins with record 0.
  std::span<const block_file::IndexEntry> chunks() const { return chunks_; }
  // The chunks that hold records first .. first + count - 1, which are there.
  std::span<const block_file::IndexEntry> chunks_of(uint64_t first, uint64_t count) const;

 private:
  explicit BlockFile(ReadFile file) : file_(std::move(file)) {}
  Status read_schema();
  Status read_index();
  Status check_index(uint64_t index_offset) const;
  Status corrupt(uint64_t byte, const std::string& what) const;

  ReadFile file_;
  RecordSchema schema_;
  uint64_t chunks_begin_ = 0;
  uint64_t records_ = 0;
  uint64_t content_ = 0;
  std::vector<block_file::IndexEntry> chunks_;
};

}  // namespace flux
