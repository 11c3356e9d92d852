// NetMemory: all the memory of one Net that its members share, in few large blocks on huge pages
// (small pages cost the products a tenth of their speed in TLB misses).
// Handed-out memory is zeroed, 64-byte aligned, lives as long as the Net, and has 512 readable
// bytes behind it. Not thread-safe: kernels ask while they are made. A node has a kernel for each
// member of the team; those after the first one get again what the first one got, in the same order
// (mark(), replay()), so what a kernel asks for here is the node's, and its own vectors are the
// member's.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <vector>

#include "flux/base/buffer.h"

namespace flux {

class NetMemory {
 public:
  void* allocate(size_t bytes) {
    if (replayed_ < given_.size()) return given_[replayed_++];
    given_.push_back(take(bytes));
    replayed_ = given_.size();
    return given_.back();
  }
  template <typename T>
  T* allocate_array(size_t n) {
    return static_cast<T*>(allocate(n * sizeof(T)));
  }
  // What is asked for after replay(mark) is what was asked for after mark().
  size_t mark() const { return given_.size(); }
  void replay(size_t mark) { replayed_ = mark; }
  // Makes scratch() at least this large. Its contents last only through one call of one kernel;
  // ask for the pointer each time, since a later kernel may have made it grow.
  void reserve_scratch(size_t bytes) {
    if (bytes + 512 <= scratch_.size()) return;
    scratch_.resize_discard(std::max(bytes + 512, kBlock));
    std::memset(scratch_.data(), 0, scratch_.size());
  }
  void* scratch() { return scratch_.data(); }

 private:
  static constexpr size_t kBlock = 4U << 20;
  void* take(size_t bytes) {
    const size_t size = (bytes + 512 + 63) / 64 * 64;
    if (blocks_.empty() || used_ + size > blocks_.back().size()) {
      blocks_.emplace_back(std::max(size, kBlock));
      std::memset(blocks_.back().data(), 0, blocks_.back().size());
      used_ = 0;
    }
    char* memory = blocks_.back().data() + used_;
    used_ += size;
    return memory;
  }
  std::vector<Buffer<char>> blocks_;
  size_t used_ = 0;
  std::vector<void*> given_;
  size_t replayed_ = 0;
  Buffer<char> scratch_;
};

}  // namespace flux
