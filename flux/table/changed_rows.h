// ChangedRows: which rows of a shard changed since it was saved, one bit per row number.
//
// Two generations, because a save that has copied its rows may still fail: begin() sets the bits of
// the save under way aside and starts a new generation; then drop() forgets them (the save stands)
// or bring_back() joins them with what changed since (it was for nothing). Until one of the two the
// bits of the save stay.
//
//   generation since the last begin():  set() on every push
//   generation of the save under way:   read by visit_saving(), cleared or joined at its end
//
// Threads: none inside; the shard's owner holds its lock. Ownership: bits lie in the shard's arena.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "flux/table/row_arena.h"

namespace flux {

class ChangedRows {
 public:
  explicit ChangedRows(RowArena* arena) : arena_(arena) {}
  ~ChangedRows() { clear(); }
  ChangedRows(const ChangedRows&) = delete;
  ChangedRows& operator=(const ChangedRows&) = delete;

  // Makes room for row numbers below `numbers`; new ones are unchanged.
  void reserve(size_t numbers) {
    if (numbers > words_ * 64) grow(numbers);
  }
  void prefetch(uint32_t number) const { __builtin_prefetch(&now_[number / 64], 1); }
  // The number must have room.
  void set(uint32_t number) { now_[number / 64] |= uint64_t{1} << (number % 64); }
  // Nothing has changed, and no save is under way; gives the memory back.
  void clear();

  // What changed up to now belongs to the save under way; one before it must have ended.
  void begin();
  bool saving() const { return under_way_; }
  void drop();
  void bring_back();

  size_t count() const { return count(now_); }            // since the last begin()
  size_t count_saving() const { return count(saving_); }  // of the save under way
  // Visits the save under way from word `*word` on, a word at a time, until `most` rows or more
  // were visited or none is left; `*word` is where to go on. Says whether something may be left.
  template <typename Visit>
  bool visit_saving(size_t* word, size_t most, const Visit& visit) const {
    for (size_t done = 0; *word < words_ && done < most; ++*word)
      for (uint64_t bits = saving_[*word]; bits != 0; bits &= bits - 1, ++done)
        visit(static_cast<uint32_t>(*word * 64 + static_cast<size_t>(std::countr_zero(bits))));
    return *word < words_;
  }
  // Visits what changed since begin(); it belongs to the save under way from now on.
  template <typename Visit>
  void absorb(const Visit& visit) {
    for (size_t w = 0; w < words_; ++w) {
      for (uint64_t bits = now_[w]; bits != 0; bits &= bits - 1)
        visit(static_cast<uint32_t>(w * 64 + static_cast<size_t>(std::countr_zero(bits))));
      saving_[w] |= now_[w];
      now_[w] = 0;
    }
  }
  size_t memory_bytes() const { return words_ * 2 * sizeof(uint64_t); }

 private:
  void grow(size_t numbers);
  size_t count(const uint64_t* bits) const;

  RowArena* arena_;
  char* piece_ = nullptr;  // of the arena; the generations are its halves and change places
  uint64_t* now_ = nullptr;
  uint64_t* saving_ = nullptr;
  size_t words_ = 0;  // of each
  bool under_way_ = false;
};

}  // namespace flux
