#include "flux/client/key_plan.h"

#include <algorithm>
#include <array>
#include <bit>

#include "flux/base/check.h"
#include "flux/base/key.h"

namespace flux {
namespace {
constexpr size_t kStartEntries = 1U << 12;
}  // namespace

KeyPlan::KeyPlan(uint32_t shards) : shards_(shards), table_(kStartEntries) {
  FLUX_CHECK(shards >= 1 && shards <= 65536, "shards {}", shards);
}

void KeyPlan::make_room(size_t keys, bool groups) {
  index_.resize(keys);
  if (found_keys_.size() < keys + 1) {
    for (auto* numbers : {&found_keys_, &found_hash_}) numbers->resize(keys + 1);
    for (auto* numbers : {&found_counts_, &found_shard_, &position_}) numbers->resize(keys + 1);
  }
  if (groups && found_group_.size() < keys + 1) found_group_.resize(keys + 1);
}

void KeyPlan::grow() {
  table_.assign(table_.size() * 2, 0);
  const size_t mask = table_.size() - 1;
  for (size_t place = 1; place <= unique_; ++place) {
    size_t at = found_hash_[place] & mask;
    while (table_[at] != 0) at = (at + 1) & mask;
    table_[at] = static_cast<uint32_t>(place);
  }
}

KeyPlan::KeyPlan(const ModelShape& shape) : KeyPlan(shape.sparse_shards) {
  for (uint32_t g = 0; g < shape.groups && shape.groups > 1; ++g)
    group_shards_.push_back(shape.group_shards(g));
}

void KeyPlan::build(std::span<const uint64_t> keys) {
  FLUX_CHECK(group_shards_.empty(), "{} groups of keys, and none is given", group_shards_.size());
  build_from<false>(keys, {});
}

void KeyPlan::build(std::span<const uint64_t> keys, std::span<const uint8_t> groups) {
  if (group_shards_.empty()) return build_from<false>(keys, {});
  FLUX_CHECK(groups.size() == keys.size(), "{} groups of {} keys", groups.size(), keys.size());
  build_from<true>(keys, groups);
}

template <bool kGroups>
void KeyPlan::add_block(std::span<const uint64_t> keys, const uint64_t* hashes,
                        const uint8_t* groups, uint32_t* index) {
  uint32_t* const table = table_.data();
  uint64_t* const found_keys = found_keys_.data();
  const size_t mask = table_.size() - 1;
  auto found = static_cast<uint32_t>(unique_);
  for (size_t i = 0; i < keys.size(); ++i) {
    const uint64_t key = keys[i];
    size_t at = hashes[i] & mask;
    uint32_t place = table[at];
    // A key of two groups is two keys. One test for both ends of the search.
    const auto ends = [&] {
      bool same = found_keys[place] == key;
      if constexpr (kGroups) same &= found_group_[place] == groups[i];
      return static_cast<bool>(static_cast<unsigned>(place == 0) | static_cast<unsigned>(same));
    };
    while (!ends()) [[unlikely]] {
        at = (at + 1) & mask;
        place = table[at];
      }
    const auto is_new = static_cast<uint32_t>(place == 0);
    found += is_new;
    place += is_new * found;
    table[at] = place;
    found_keys[place] = key;
    found_hash_[place] = hashes[i];
    if constexpr (kGroups) found_group_[place] = groups[i];
    found_counts_[place] = found_counts_[place] * (1 - is_new) + 1;
    index[i] = place;
  }
  unique_ = found;
}

template <bool kGroups>
uint32_t KeyPlan::shard_of_found(size_t place) const {
  if constexpr (!kGroups) return shard_of_hash(found_hash_[place], shards_);
  const ShardRange range = group_shards_[found_group_[place]];
  return range.begin + shard_of_hash(found_hash_[place], range.end - range.begin);
}

template <bool kGroups>
void KeyPlan::order_by_shard() {
  begin_.assign(shards_ + 1, 0);
  for (size_t place = 1; place <= unique_; ++place) {
    found_shard_[place] = shard_of_found<kGroups>(place);
    ++begin_[found_shard_[place] + 1];
  }
  for (uint32_t s = 0; s < shards_; ++s) begin_[s + 1] += begin_[s];
  keys_.resize(unique_);
  counts_.resize(unique_);
  for (size_t place = 1; place <= unique_; ++place) {
    const uint32_t at = begin_[found_shard_[place]]++;
    position_[place] = at;
    keys_[at] = found_keys_[place];
    counts_[at] = found_counts_[place];
  }
  for (uint32_t s = shards_; s > 0; --s) begin_[s] = begin_[s - 1];
  begin_[0] = 0;
}

template <bool kGroups>
void KeyPlan::build_from(std::span<const uint64_t> keys, std::span<const uint8_t> groups) {
  make_room(keys.size(), kGroups);
  // Emptied each time, so it must not stay as large as one large batch made it.
  table_.assign(std::min(table_.size(), std::bit_ceil(keys.size() * 4 + kStartEntries)), 0);
  unique_ = 0;
  std::array<uint64_t, kBlock> hashes[2];
  const auto block = [&](size_t begin) {
    return keys.subspan(begin, std::min(kBlock, keys.size() - begin));
  };
  const auto hash_block = [&](size_t begin) {
    const size_t mask = table_.size() - 1;
    uint64_t* to = hashes[begin / kBlock % 2].data();
    for (const uint64_t key : block(begin)) {
      *to = key_hash(key);
      __builtin_prefetch(&table_[*to++ & mask], 1);
    }
  };
  if (!keys.empty()) hash_block(0);
  for (size_t begin = 0; begin < keys.size(); begin += kBlock) {
    if ((unique_ + kBlock) * 3 > table_.size()) grow();
    if (begin + kBlock < keys.size()) hash_block(begin + kBlock);
    add_block<kGroups>(block(begin), hashes[begin / kBlock % 2].data(),
                       kGroups ? groups.data() + begin : nullptr, index_.data() + begin);
  }
  order_by_shard<kGroups>();
  find_occurrences();
}

// From places to positions, and back.
void KeyPlan::find_occurrences() {
  if (!wants_occurrences_) {
    for (uint32_t& place : index_) place = position_[place];
    return;
  }
  first_.resize(unique_ + 1);
  occurrences_.resize(index_.size());
  uint32_t sum = 0;
  for (size_t p = 0; p < unique_; ++p) {
    first_[p] = sum;
    sum += counts_[p];
  }
  first_[unique_] = sum;
  for (uint32_t i = 0; i < index_.size(); ++i) {
    const uint32_t position = position_[index_[i]];
    index_[i] = position;
    occurrences_[first_[position]++] = i;
  }
  for (size_t p = unique_; p > 0; --p) first_[p] = first_[p - 1];
  first_[0] = 0;
}

}  // namespace flux
