// TextBlock: a block of lines in memory, in the order of an epoch; what all text formats share.
//
// The text is filled in by whoever opens the block, then prepare() finds the lines. Formats derive
// from it and read batches (BlockReader::read_batch). Memory of blocks that are done with is used
// again through a BufferPool.
// Threads: immutable after prepare(). Failure: kInvalid if the text is not what the scan saw.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "flux/base/buffer.h"
#include "flux/data/batch_place.h"
#include "flux/data/dataset.h"
#include "flux/data/geometry.h"
#include "flux/data/one_by_one.h"

namespace flux {

// The text of blocks that are done with, to be filled again: fresh pages cost as much as reading.
class BufferPool {
 public:
  Buffer<char> take(size_t size) {
    Buffer<char> out;
    {
      const std::lock_guard lock(mutex_);
      if (!free_.empty()) {
        out = std::move(free_.back());
        free_.pop_back();
      }
    }
    out.resize_discard(size);
    return out;
  }
  void give(Buffer<char> buffer) {
    const std::lock_guard lock(mutex_);
    if (free_.size() < kFreeMax) free_.push_back(std::move(buffer));
  }

 private:
  static constexpr size_t kFreeMax = 4;
  std::mutex mutex_;
  std::vector<Buffer<char>> free_;
};

// Where a block lies: what its reader has to know.
struct TextBlockPlace {
  DataBlock block;
  uint32_t batch_size = 0;
  std::string path;
  bool packed = false;      // the text is not what lies on disk
  uint64_t first_line = 1;  // number in the file of the block's first line, from 1
  uint32_t epoch = 0;
};

class TextBlock : public BlockReader, public OneByOne {
 public:
  // Bytes behind the text that may be read; they are zero.
  static constexpr size_t kSlack = 64;

  TextBlock(TextBlockPlace place, std::shared_ptr<BufferPool> pool);
  ~TextBlock() override;
  TextBlock(const TextBlock&) = delete;
  TextBlock& operator=(const TextBlock&) = delete;

  char* text() { return text_.data(); }
  // To be called once the text is there.
  Status prepare(std::vector<uint32_t> order);

  void read_one_by_one() override { place_.batch_size = 1; }
  std::string describe(uint32_t batch) const override;
  std::string describe_example(uint32_t batch, uint32_t example) const override;

 protected:
  // The records of a batch, as numbers within the block.
  std::span<const uint32_t> records_of(uint32_t batch) const;
  std::string_view line(uint32_t record) const {
    return {text_.data() + begins_[record], begins_[record + 1] - 1 - begins_[record]};
  }
  uint32_t epoch() const { return place_.epoch; }
  // Counted over all files of the pass.
  uint64_t number_in_pass(uint32_t record) const { return place_.block.number_in_pass(record); }
  // "path:line:column: what"
  Status refuse(uint32_t record, size_t column, const std::string& what) const;
  void prefetch(std::span<const uint32_t> records, size_t position) const;

 private:
  // The bytes of records `first` to `last` of the block, with their newlines.
  TextRange bytes_of(uint32_t first, uint32_t last) const;

  TextBlockPlace place_;
  const std::shared_ptr<BufferPool> pool_;
  Buffer<char> text_;
  std::vector<uint32_t> begins_;
  std::vector<uint32_t> order_;
};

}  // namespace flux
