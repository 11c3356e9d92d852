#include "flux/table/changed_rows.h"

#include <algorithm>
#include <cstring>

#include "flux/base/check.h"

namespace flux {

void ChangedRows::grow(size_t numbers) {
  constexpr size_t kLineWords = 8;  // the arena hands out whole lines
  const size_t least = std::max((numbers + 63) / 64, words_ + words_ / 2);
  const size_t words = (least + kLineWords - 1) / kLineWords * kLineWords;
  char* piece = arena_->allocate(words * 2 * sizeof(uint64_t));
  std::memset(piece, 0, words * 2 * sizeof(uint64_t));
  auto* halves = reinterpret_cast<uint64_t*>(piece);
  if (words_ > 0) {
    std::memcpy(halves, now_, words_ * sizeof(uint64_t));
    std::memcpy(halves + words, saving_, words_ * sizeof(uint64_t));
    arena_->release(piece_, memory_bytes());
  }
  piece_ = piece;
  now_ = halves;
  saving_ = halves + words;
  words_ = words;
}

void ChangedRows::clear() {
  if (words_ > 0) arena_->release(piece_, memory_bytes());
  piece_ = nullptr;
  now_ = saving_ = nullptr;
  words_ = 0;
  under_way_ = false;
}

void ChangedRows::begin() {
  FLUX_CHECK(!under_way_, "a save begins before the one before it has ended");
  std::swap(now_, saving_);  // the other generation is empty
  under_way_ = true;
}

void ChangedRows::drop() {
  if (words_ > 0) std::memset(saving_, 0, words_ * sizeof(uint64_t));
  under_way_ = false;
}

void ChangedRows::bring_back() {
  for (size_t w = 0; w < words_; ++w) now_[w] |= saving_[w];
  drop();
}

size_t ChangedRows::count(const uint64_t* bits) const {
  size_t sum = 0;
  for (size_t w = 0; w < words_; ++w) sum += static_cast<size_t>(std::popcount(bits[w]));
  return sum;
}

}  // namespace flux
