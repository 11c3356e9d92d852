// KeyPlan: the distinct keys of a batch, grouped by shard, made once and used by pull, pooling
// and push.
//
// build() removes repeats with a small hash table that stays in the L2 cache: 4 bytes per entry, at
// most a third of them taken, asked for a block of keys ahead. Whether a key is new is arithmetic,
// not a branch: nobody could predict it. Then the distinct keys are ordered by shard (counting
// sort), so that each shard gets one contiguous range. Threads: one owner. Memory is reused from
// batch to batch.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "flux/api/model_shape.h"
#include "flux/api/server.h"

namespace flux {

class KeyPlan {
 public:
  explicit KeyPlan(uint32_t shards);
  // Each group of keys has its own shards (api/model_shape.h).
  explicit KeyPlan(const ModelShape& shape);

  void build(std::span<const uint64_t> keys);
  // The same where keys have groups: that of each key, counted from 0.
  void build(std::span<const uint64_t> keys, std::span<const uint8_t> groups);

  size_t unique() const { return unique_; }
  const std::vector<uint64_t>& keys() const { return keys_; }      // [unique], by shard
  const std::vector<uint32_t>& counts() const { return counts_; }  // occurrences of each
  const std::vector<uint32_t>& begin() const { return begin_; }    // [shards + 1]
  const std::vector<uint32_t>& index() const { return index_; }    // occurrence -> position
  // The way back, if it is wanted before build(): position p has the occurrences
  // occurrences()[first()[p]] up to, but not including, occurrences()[first()[p + 1]], rising.
  void want_occurrences(bool wanted) { wants_occurrences_ = wanted; }
  const std::vector<uint32_t>& first() const { return first_; }  // [unique + 1]
  const std::vector<uint32_t>& occurrences() const { return occurrences_; }
  ShardedKeys sharded() const { return {keys_.data(), begin_.data()}; }

 private:
  static constexpr size_t kBlock = 32;  // keys whose entries are fetched at a time

  void make_room(size_t keys, bool groups);
  void grow();
  // One group, whose shards are all, unless kGroups.
  template <bool kGroups>
  void build_from(std::span<const uint64_t> keys, std::span<const uint8_t> groups);
  // Finds or adds the keys of one block, whose hashes are given; `groups` of them if kGroups.
  template <bool kGroups>
  void add_block(std::span<const uint64_t> keys, const uint64_t* hashes, const uint8_t* groups,
                 uint32_t* index);
  template <bool kGroups>
  uint32_t shard_of_found(size_t id) const;
  template <bool kGroups>
  void order_by_shard();
  void find_occurrences();

  uint32_t shards_;
  bool wants_occurrences_ = false;
  std::vector<ShardRange> group_shards_;  // of several groups
  size_t unique_ = 0;
  std::vector<uint32_t> table_;  // 0: empty, else the place of a key in found_*
  // By order of first occurrence, from place 1 on; place 0 stands for an empty entry.
  std::vector<uint64_t> found_keys_, found_hash_;
  std::vector<uint32_t> found_counts_, found_shard_, position_;
  std::vector<uint8_t> found_group_;
  // By shard.
  std::vector<uint64_t> keys_;
  std::vector<uint32_t> counts_, begin_, index_, first_, occurrences_;
};

}  // namespace flux
