#include "flux/table/key_index.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "flux/base/check.h"

namespace flux {
namespace {
constexpr uint32_t kNumberBitsMin = 16;
constexpr uint32_t kNumberBitsMax = 31;
// Load factor 4/5.
constexpr size_t rows_of(size_t lines) {
  return lines * KeyIndex::kLineEntries * 4 / 5;
}
}  // namespace

size_t KeyIndex::lines_for(size_t rows) {
  size_t lines = (rows * 5 + kLineEntries * 4 - 1) / (kLineEntries * 4);
  while (rows_of(lines) < rows) ++lines;
  return std::max<size_t>(lines, 2);
}

void KeyIndex::resize(size_t lines, size_t numbers) {
  release();
  number_bits_ = std::max(kNumberBitsMin, static_cast<uint32_t>(std::bit_width(numbers)));
  FLUX_CHECK(number_bits_ <= kNumberBitsMax, "a shard of {} rows; use more shards", numbers);
  char* data = arena_->allocate(lines * 64);
  std::memset(data, 0, lines * 64);
  data_.store(data, std::memory_order_relaxed);
  lines_.store(lines, std::memory_order_relaxed);
  capacity_ = rows_of(lines);
}

void KeyIndex::release() {
  if (lines() > 0) arena_->release(data_.load(std::memory_order_relaxed), memory_bytes());
  data_.store(nullptr, std::memory_order_relaxed);
  lines_.store(0, std::memory_order_relaxed);
  capacity_ = 0;
}

size_t KeyIndex::lines_read(uint64_t hash, uint32_t number) const {
  const uint32_t value = tag_of(hash) | (number + 1);
  size_t line = line_of(hash, lines());
  for (size_t read = 1; read <= lines(); ++read) {
    if (matches(data_.load(std::memory_order_relaxed) + line * 64, ~0U, value) != 0) return read;
    line = line + 1 < lines() ? line + 1 : 0;
  }
  FLUX_CHECK(false, "row {} is not in the index", number);
}

void KeyIndex::insert(uint64_t hash, uint32_t number) {
  const uint32_t value = tag_of(hash) | (number + 1);
  const size_t count = lines();
  size_t line = line_of(hash, count);
  for (;;) {
    char* at = data_.load(std::memory_order_relaxed) + line * 64;
    const uint32_t empty = matches(at, ~0U, 0);
    if (empty != 0) {
      std::memcpy(at + 4 * __builtin_ctz(empty), &value, 4);
      return;
    }
    line = line + 1 < count ? line + 1 : 0;
  }
}

}  // namespace flux
