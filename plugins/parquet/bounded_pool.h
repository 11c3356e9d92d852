// BoundedPool: memory for Arrow, up to a limit: a small file may announce pages that become very
// large.
//
// It is of HugePages, or else of malloc. Both keep what pages leave; Arrow's own pool gives it
// back, to be cleared again. The limit is of what is in use.
// Threads: one at a time. Failure: OutOfMemory that says how much was asked for.
#pragma once

#include <algorithm>
#include <cstring>
#include <string>

#include <arrow/memory_pool.h>
#include <arrow/status.h>

#include "plugins/parquet/huge_pages.h"

namespace flux::parquet_plugin {

class BoundedPool final : public ::arrow::MemoryPool {
 public:
  explicit BoundedPool(int64_t bytes_max) : bytes_max_(bytes_max) {}
  using MemoryPool::Allocate;
  using MemoryPool::Free;
  using MemoryPool::Reallocate;

  ::arrow::Status Allocate(int64_t size, int64_t alignment, uint8_t** out) override {
    ARROW_RETURN_NOT_OK(check(size));
    ARROW_RETURN_NOT_OK(take(size, alignment, out));
    bytes_ += size;
    return ::arrow::Status::OK();
  }
  ::arrow::Status Reallocate(int64_t old_size, int64_t new_size, int64_t alignment,
                             uint8_t** bytes) override {
    ARROW_RETURN_NOT_OK(check(new_size - old_size));
    if (!huge_.has(*bytes) || !HugePages::is_room_for(old_size, new_size)) {
      uint8_t* to = nullptr;
      ARROW_RETURN_NOT_OK(take(new_size, alignment, &to));
      std::memcpy(to, *bytes, static_cast<size_t>(std::min(old_size, new_size)));
      give_back(*bytes, old_size, alignment);
      *bytes = to;
    }
    bytes_ += new_size - old_size;
    return ::arrow::Status::OK();
  }
  void Free(uint8_t* buffer, int64_t size, int64_t alignment) override {
    give_back(buffer, size, alignment);
    bytes_ -= size;
  }
  int64_t bytes_allocated() const override { return bytes_; }
  int64_t total_bytes_allocated() const override { return malloc_->total_bytes_allocated(); }
  int64_t num_allocations() const override { return malloc_->num_allocations(); }
  std::string backend_name() const override { return malloc_->backend_name(); }

 private:
  ::arrow::Status check(int64_t more) const {
    if (more <= bytes_max_ - bytes_) return ::arrow::Status::OK();
    return ::arrow::Status::OutOfMemory("pages of ", (bytes_ + more) >> 20,
                                        " MiB at once; at most ", bytes_max_ >> 20, " are read");
  }

  ::arrow::Status take(int64_t size, int64_t alignment, uint8_t** out) {
    *out = alignment <= HugePages::kAlignment ? huge_.take(size) : nullptr;
    return *out != nullptr ? ::arrow::Status::OK() : malloc_->Allocate(size, alignment, out);
  }
  void give_back(uint8_t* buffer, int64_t size, int64_t alignment) {
    if (huge_.has(buffer))
      huge_.give_back(buffer, size);
    else
      malloc_->Free(buffer, size, alignment);
  }

  ::arrow::MemoryPool* const malloc_ = ::arrow::system_memory_pool();
  const int64_t bytes_max_;
  int64_t bytes_ = 0;
  HugePages huge_;
};

}  // namespace flux::parquet_plugin
