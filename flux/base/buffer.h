// Buffer<T>: uninitialised, 64-byte aligned memory for plain numbers; large ones ask the kernel
// for huge pages, which halve the cost of random access. Moves, never copies, never shrinks.
// Not thread-safe. Allocation failure aborts (the process cannot go on; failover takes over).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>

namespace flux {

// 64-byte aligned; from 2 MiB on a private mapping advised for huge pages. Zeroed only if mapped.
void* allocate_aligned(size_t bytes);
void free_aligned(void* memory, size_t bytes);

template <typename T>
class Buffer {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  Buffer() = default;
  explicit Buffer(size_t size) { resize_discard(size); }
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    swap(other);
    return *this;
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { free_aligned(data_, capacity_ * sizeof(T)); }

  // Makes room for `size` elements; contents are undefined afterwards.
  void resize_discard(size_t size) {
    if (size > capacity_) {
      free_aligned(data_, capacity_ * sizeof(T));
      data_ = static_cast<T*>(allocate_aligned(size * sizeof(T)));
      capacity_ = size;
    }
    size_ = size;
  }
  T* data() { return data_; }
  const T* data() const { return data_; }
  size_t size() const { return size_; }
  T& operator[](size_t i) { return data_[i]; }
  const T& operator[](size_t i) const { return data_[i]; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  std::span<T> span() { return {data_, size_}; }
  std::span<const T> span() const { return {data_, size_}; }
  void fill(T value) {
    for (size_t i = 0; i < size_; ++i) data_[i] = value;
  }

 private:
  void swap(Buffer& other) {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
  }
  T* data_ = nullptr;
  size_t size_ = 0;
  size_t capacity_ = 0;
};

}  // namespace flux
