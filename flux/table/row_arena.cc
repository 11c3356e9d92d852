#include "flux/table/row_arena.h"

#include <algorithm>

#include "flux/base/buffer.h"
#include "flux/base/check.h"

namespace flux {
namespace {
constexpr size_t kHugePage = 2U << 20;
constexpr size_t kBlockMax = 64U << 20;
constexpr size_t kBlockShare = 64;  // a block is about this part of what the arena holds

size_t round_to_huge(size_t bytes) {
  return (bytes + kHugePage - 1) / kHugePage * kHugePage;
}
}  // namespace

RowArena::~RowArena() {
  for (const auto& [start, bytes] : blocks_) free_aligned(start, bytes);
}

char* RowArena::allocate(size_t bytes) {
  FLUX_CHECK(bytes > 0 && bytes % 64 == 0, "a piece of {} bytes", bytes);
  const std::lock_guard lock(mutex_);
  auto best = free_by_size_.lower_bound({bytes, nullptr});
  if (best == free_by_size_.end()) {
    add_block(bytes);
    best = free_by_size_.lower_bound({bytes, nullptr});
  }
  const auto [size, start] = *best;
  free_by_size_.erase(best);
  free_by_address_.erase(start);
  free_bytes_ -= size;
  if (size > bytes) insert_free(start + bytes, size - bytes);
  return start;
}

void RowArena::release(char* piece, size_t bytes) {
  const std::lock_guard lock(mutex_);
  insert_free(piece, bytes);
}

void RowArena::insert_free(char* start, size_t bytes) {
  free_bytes_ += bytes;
  auto after = free_by_address_.lower_bound(start);
  if (after != free_by_address_.end() && start + bytes == after->first) {
    bytes += after->second;
    free_by_size_.erase({after->second, after->first});
    after = free_by_address_.erase(after);
  }
  if (after != free_by_address_.begin()) {
    const auto before = std::prev(after);
    FLUX_CHECK(before->first + before->second <= start, "a piece was released twice");
    if (before->first + before->second == start) {
      start = before->first;
      bytes += before->second;
      free_by_size_.erase({before->second, before->first});
      free_by_address_.erase(before);
    }
  }
  free_by_address_.emplace(start, bytes);
  free_by_size_.emplace(bytes, start);
}

void RowArena::add_block(size_t bytes) {
  const size_t share = std::clamp(round_to_huge(block_bytes_ / kBlockShare), kHugePage, kBlockMax);
  const size_t size = std::max(round_to_huge(bytes), share);
  auto* start = static_cast<char*>(allocate_aligned(size));
  blocks_.emplace_back(start, size);
  block_bytes_ += size;
  insert_free(start, size);
}

size_t RowArena::block_bytes() const {
  const std::lock_guard lock(mutex_);
  return block_bytes_;
}
size_t RowArena::free_bytes() const {
  const std::lock_guard lock(mutex_);
  return free_bytes_;
}

}  // namespace flux
