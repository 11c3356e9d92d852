// DictionaryMemory: the dictionaries of all columns of a row group, side by side in huge pages.
//
// Columns are read by turns, some thousand rows each, and values are looked up at random, all over
// the dictionaries: huge pages need fewer entries of the CPU's tables of addresses.
// Threads: one. Ownership: what was taken is valid until clear(). Failure: that of the pool, as an
// exception of Arrow.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <arrow/buffer.h>
#include <parquet/exception.h>
#include <sys/mman.h>

namespace flux::parquet_plugin {

class DictionaryMemory {
 public:
  explicit DictionaryMemory(::arrow::MemoryPool* pool) : pool_(pool) {}

  // The memory is kept for the dictionaries of the next row group.
  void clear() {
    chunk_ = 0;
    used_ = 0;
  }

  uint8_t* take(int64_t bytes) {
    const int64_t size = (bytes + kLine - 1) / kLine * kLine;
    for (; chunk_ < chunks_.size() && chunks_[chunk_]->size() - used_ < size; ++chunk_) used_ = 0;
    if (chunk_ == chunks_.size()) chunks_.push_back(new_chunk(size));
    used_ += size;
    return chunks_[chunk_]->mutable_data() + used_ - size;
  }

 private:
  static constexpr int64_t kLine = 64;
  static constexpr int64_t kHugePage = 2 << 20;
  static constexpr int64_t kSmall = 64 << 10;  // the first one: most files need no huge page

  std::unique_ptr<::arrow::Buffer> new_chunk(int64_t size) const {
    const bool small = chunks_.empty() && size <= kSmall;
    const int64_t room = small ? kSmall : (size + kHugePage - 1) / kHugePage * kHugePage;
    PARQUET_ASSIGN_OR_THROW(auto out,
                            ::arrow::AllocateBuffer(room, small ? kLine : kHugePage, pool_));
    // Where there are no huge pages it is as good as it was.
    if (!small) madvise(out->mutable_data(), static_cast<size_t>(room), MADV_HUGEPAGE);
    return out;
  }

  ::arrow::MemoryPool* const pool_;
  std::vector<std::unique_ptr<::arrow::Buffer>> chunks_;
  size_t chunk_ = 0;  // what is taken next is in it, or behind
  int64_t used_ = 0;  // of that
};

}  // namespace flux::parquet_plugin
