// HugePages: up to 64 MiB of memory in huge pages, given out in powers of two and used again.
//
// Pages of many columns are unpacked and read by turns: small pages of memory cost a fault each,
// and more entries of the CPU's tables of addresses than it has. Where there are no huge pages it
// is as good as other memory. What is given back stays here until the end.
// Threads: one. Ownership: what was taken is valid until it is given back, or the end.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <new>

#include <sys/mman.h>

namespace flux::parquet_plugin {

class HugePages {
 public:
  static constexpr int64_t kAlignment = 4 << 10;  // of all that is taken

  HugePages() = default;
  HugePages(const HugePages&) = delete;
  HugePages& operator=(const HugePages&) = delete;
  ~HugePages() {
    if (mapped_ != nullptr) ::munmap(mapped_, kMapped);
  }

  // Null where `size` is too small or too large to be worth it, or nothing is left.
  uint8_t* take(int64_t size) {
    if (size < kSmallest || size > kLargest || !map()) return nullptr;
    Unused** const unused = &unused_[which(size)];
    if (*unused != nullptr) {
      Unused* const out = *unused;
      *unused = out->next;
      return reinterpret_cast<uint8_t*>(out);
    }
    const int64_t room = room_of(size);
    if (room > begin_ + kBytes - next_) return nullptr;
    next_ += room;
    return next_ - room;
  }

  // Whether `taken` is of take().
  bool has(const uint8_t* taken) const {
    return begin_ != nullptr && taken >= begin_ && taken < next_;
  }

  // Whether what was taken for `size` bytes is what take() has for `other`.
  static bool is_room_for(int64_t size, int64_t other) { return room_of(size) == room_of(other); }

  // `size`: what it was taken for.
  void give_back(uint8_t* taken, int64_t size) {
    Unused** const unused = &unused_[which(size)];
    *unused = new (taken) Unused{*unused};
  }

 private:
  struct Unused {
    Unused* next;
  };

  static constexpr int64_t kSmallest = 16 << 10, kLargest = 8 << 20;
  static constexpr int64_t kBytes = 64 << 20, kHugePage = 2 << 20;
  static constexpr size_t kMapped = kBytes + kHugePage;  // from any address on
  static constexpr size_t kRooms = 10;                   // kSmallest to kLargest

  static int64_t room_of(int64_t size) {
    return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max(size, kSmallest))));
  }
  static size_t which(int64_t size) {
    return static_cast<size_t>(std::countr_zero(static_cast<uint64_t>(room_of(size) / kSmallest)));
  }

  // The memory is the system's until it is written.
  bool map() {
    if (begin_ != nullptr) return true;
    void* const got = ::mmap(nullptr, kMapped, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (got == MAP_FAILED) return false;
    mapped_ = got;
    const auto behind = static_cast<int64_t>(reinterpret_cast<uintptr_t>(got) % kHugePage);
    begin_ = next_ = static_cast<uint8_t*>(got) + (kHugePage - behind);
    ::madvise(begin_, kBytes, MADV_HUGEPAGE);
    return true;
  }

  void* mapped_ = nullptr;
  uint8_t* begin_ = nullptr;  // kBytes from here
  uint8_t* next_ = nullptr;   // what was never taken
  std::array<Unused*, kRooms> unused_{};
};

}  // namespace flux::parquet_plugin
