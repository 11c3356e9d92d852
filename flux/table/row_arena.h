// RowArena: the memory behind the slabs and indexes of all shards of one table.
//
// Shards take many pieces of a few KiB to some MiB; the arena cuts them from blocks that are
// backed by huge pages, because random access through 4 KiB pages costs about twice as much. It
// starts with one block of 2 MiB, and blocks grow with the arena, so that a tiny table stays tiny
// and the unused end of the last block stays a small share. Freed pieces (an index that grew) are
// joined with their neighbours and used again.
// Threads: all methods, any thread. Ownership: pieces die with the arena; shards hold it shared.
// Failure: out of memory aborts.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

namespace flux {

class RowArena {
 public:
  RowArena() = default;
  ~RowArena();
  RowArena(const RowArena&) = delete;
  RowArena& operator=(const RowArena&) = delete;

  // 64-byte aligned, contents undefined; `bytes` is a multiple of 64 and not 0.
  char* allocate(size_t bytes);
  void release(char* piece, size_t bytes);

  // Bytes taken from the system, and those of them that are not handed out.
  size_t block_bytes() const;
  size_t free_bytes() const;

 private:
  void insert_free(char* start, size_t bytes);  // joins neighbours; needs the lock
  void add_block(size_t bytes);                 // needs the lock

  mutable std::mutex mutex_;
  std::vector<std::pair<char*, size_t>> blocks_;
  std::map<char*, size_t> free_by_address_;
  std::set<std::pair<size_t, char*>> free_by_size_;
  size_t block_bytes_ = 0;
  size_t free_bytes_ = 0;
};

}  // namespace flux
