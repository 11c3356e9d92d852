// RowSlab: the rows of one shard in numbered places that never move.
//
// Row numbers are cut into chunks like the buckets of a logarithmic histogram: 64 chunks of 16
// numbers, then 32 of 32, 32 of 64 ... so the chunk in use is never more than 1/32 of a large slab,
// the list of chunks stays short enough for the cache (a few hundred pointers for 10^6 rows), and
// number -> address is a few shifts. Threads: none inside; reads may run concurrently. Ownership:
// chunks are returned to the arena.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "flux/table/row_arena.h"
#include "flux/table/row_layout.h"

namespace flux {

class RowSlab {
 public:
  RowSlab(const RowLayout& layout, std::shared_ptr<RowArena> arena)
      : layout_(layout), arena_(std::move(arena)) {}
  ~RowSlab() { clear(); }
  RowSlab(const RowSlab&) = delete;
  RowSlab& operator=(const RowSlab&) = delete;

  size_t size() const { return size_; }
  const RowLayout& layout() const { return layout_; }
  RowArena& arena() const { return *arena_; }
  size_t memory_bytes() const { return memory_bytes_; }

  char* row(uint32_t number) const {
    const Place place = place_of(number);
    return chunks_[place.chunk] + layout_.offset(place.number);
  }
  // Makes an uninitialised row and gives its number.
  uint32_t append() {
    const uint32_t number = next_;
    const Place place = place_of(number);
    if (place.chunk >= chunks_.size()) add_chunk();
    next_ = layout_.next(number);
    ++size_;
    return number;
  }
  void clear();

  // Calls visit(number, row) in order of creation.
  template <typename Visit>
  void for_each(const Visit& visit) const {
    uint32_t number = 0;
    for (size_t i = 0; i < size_; ++i, number = layout_.next(number)) visit(number, row(number));
  }

 private:
  static constexpr uint32_t kSplit = 5;  // 32 chunks per doubling
  static constexpr uint32_t kUnit = 4;   // the smallest chunk has 16 numbers
  static constexpr uint32_t kEven = 1U << (kUnit + kSplit + 1);  // below it all are the smallest

  struct Place {
    uint32_t chunk;
    uint32_t number;  // within the chunk
  };
  static Place place_of(uint32_t number) {
    const auto top = static_cast<uint32_t>(std::bit_width(number | (kEven - 1)));
    const uint32_t shift = top - 1 - kSplit;
    return {((shift - kUnit) << kSplit) + (number >> shift), number & ((1U << shift) - 1)};
  }
  void add_chunk();
  size_t chunk_bytes(size_t chunk) const;

  const RowLayout layout_;
  const std::shared_ptr<RowArena> arena_;
  std::vector<char*> chunks_;
  uint32_t next_ = 0;
  size_t size_ = 0;
  size_t memory_bytes_ = 0;
};

}  // namespace flux
