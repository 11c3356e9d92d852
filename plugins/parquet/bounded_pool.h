// BoundedPool: memory of malloc for Arrow, up to a limit: a small file may announce pages that
// become very large.
//
// malloc keeps what pages leave; Arrow's own pool gives it back, to be cleared again.
// Threads: any. Failure: OutOfMemory that says how much was asked for.
#pragma once

#include <atomic>
#include <string>

#include <arrow/memory_pool.h>
#include <arrow/status.h>

namespace flux::parquet_plugin {

class BoundedPool final : public ::arrow::MemoryPool {
 public:
  explicit BoundedPool(int64_t bytes_max) : bytes_max_(bytes_max) {}
  using MemoryPool::Allocate;
  using MemoryPool::Free;
  using MemoryPool::Reallocate;

  ::arrow::Status Allocate(int64_t size, int64_t alignment, uint8_t** out) override {
    ARROW_RETURN_NOT_OK(check(size));
    ARROW_RETURN_NOT_OK(malloc_->Allocate(size, alignment, out));
    bytes_ += size;
    return ::arrow::Status::OK();
  }
  ::arrow::Status Reallocate(int64_t old_size, int64_t new_size, int64_t alignment,
                             uint8_t** bytes) override {
    ARROW_RETURN_NOT_OK(check(new_size - old_size));
    ARROW_RETURN_NOT_OK(malloc_->Reallocate(old_size, new_size, alignment, bytes));
    bytes_ += new_size - old_size;
    return ::arrow::Status::OK();
  }
  void Free(uint8_t* buffer, int64_t size, int64_t alignment) override {
    malloc_->Free(buffer, size, alignment);
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

  ::arrow::MemoryPool* const malloc_ = ::arrow::system_memory_pool();
  const int64_t bytes_max_;
  std::atomic<int64_t> bytes_ = 0;
};

}  // namespace flux::parquet_plugin
