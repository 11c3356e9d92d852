// Where the values of columns are put by a read: keys or numbers, and where each row's begin.
//
// It only grows. Of some hundred thousand rows it is large, and written from end to end by turns of
// the columns: huge pages cost fewer faults, and nothing is cleared that is written anyway.
// Threads: one at a time. Ownership: the pages outlive the columns. Failure: std::bad_alloc.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "flux/data/parquet/plugin_api.h"
#include "plugins/parquet/huge_pages.h"

namespace flux::parquet_plugin {

// Room for values; what is in it at first is nobody's.
template <typename T>
class Room {
 public:
  explicit Room(HugePages* pages) : pages_(pages) {}
  Room(Room&& other) noexcept
      : pages_(other.pages_),
        own_(std::move(other.own_)),
        data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)) {}
  Room& operator=(Room&&) = delete;
  ~Room() { give_back(); }

  T* data() { return data_; }
  const T* data() const { return data_; }
  size_t size() const { return size_; }

  // Room for `size` values, more than there was; the first `kept` stay as they are.
  void grow(size_t size, size_t kept) {
    auto* to = reinterpret_cast<T*>(pages_->take(bytes_of(size)));
    std::unique_ptr<T[]> own(to == nullptr ? new T[size] : nullptr);
    if (to == nullptr) to = own.get();
    std::copy_n(data_, kept, to);
    give_back();
    own_ = std::move(own);
    data_ = to;
    size_ = size;
  }

 private:
  static int64_t bytes_of(size_t size) { return static_cast<int64_t>(size * sizeof(T)); }
  void give_back() {
    if (data_ != nullptr && own_ == nullptr)
      pages_->give_back(reinterpret_cast<uint8_t*>(data_), bytes_of(size_));
  }

  HugePages* const pages_;
  std::unique_ptr<T[]> own_;  // null: the memory is of pages_
  T* data_ = nullptr;
  size_t size_ = 0;
};

// The first values of each that count.
struct ColumnMemory {
  explicit ColumnMemory(HugePages* pages) : keys(pages), numbers(pages) {}
  Room<uint64_t> keys;
  Room<float> numbers;
  std::vector<uint32_t> begin;
  std::vector<LargeNumber> large;
};

}  // namespace flux::parquet_plugin
