#include "flux/client/key_plan.h"

#include <algorithm>

#include "flux/base/check.h"
#include "flux/base/key.h"

namespace flux {
namespace {
constexpr size_t kStartEntries = 1U << 12;
}  // namespace

KeyPlan::KeyPlan(uint32_t shards) : shards_(shards), table_(kStartEntries, Entry{0, 0, 0}) {
  FLUX_CHECK(shards >= 1 && shards <= 65536, "shards {}", shards);
}

void KeyPlan::grow() {
  std::vector<Entry> bigger(table_.size() * 2, Entry{0, 0, 0});
  const size_t mask = bigger.size() - 1;
  for (const Entry& entry : table_) {
    if (entry.stamp != stamp_) continue;
    size_t at = key_hash(entry.key) & mask;
    while (bigger[at].stamp == stamp_) at = (at + 1) & mask;
    bigger[at] = entry;
  }
  table_.swap(bigger);
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
void KeyPlan::build_from(std::span<const uint64_t> keys, std::span<const uint8_t> groups) {
  if (++stamp_ == 0) {  // wrapped: old stamps would look new
    std::fill(table_.begin(), table_.end(), Entry{0, 0, 0});
    stamp_ = 1;
  }
  const size_t n = keys.size();
  index_.resize(n);
  if (found_keys_.size() < n) {
    found_keys_.resize(n);
    found_counts_.resize(n);
    found_shard_.resize(n);
    position_.resize(n);
    if (kGroups) found_group_.resize(n);
  }
  begin_.assign(shards_ + 1, 0);
  uint32_t found = 0;
  size_t mask = table_.size() - 1;
  for (size_t i = 0; i < n; ++i) {
    const uint64_t key = keys[i];
    const uint64_t mixed = key_hash(key);
    size_t at = mixed & mask;
    // A key of two groups is two keys.
    while (table_[at].stamp == stamp_ &&
           (table_[at].key != key || (kGroups && found_group_[table_[at].id] != groups[i])))
      at = (at + 1) & mask;
    Entry& entry = table_[at];
    if (entry.stamp == stamp_) {
      ++found_counts_[entry.id];
      index_[i] = entry.id;
      continue;
    }
    entry = Entry{key, stamp_, found};
    found_keys_[found] = key;
    found_counts_[found] = 1;
    uint32_t shard;
    if constexpr (kGroups) {
      const ShardRange range = group_shards_[groups[i]];
      shard = range.begin + shard_of_hash(mixed, range.end - range.begin);
      found_group_[found] = groups[i];
    } else {
      shard = shard_of_hash(mixed, shards_);
    }
    found_shard_[found] = shard;
    ++begin_[shard + 1];
    index_[i] = found++;
    if (size_t{found} * 2 > table_.size()) {
      grow();
      mask = table_.size() - 1;
    }
  }
  unique_ = found;
  for (uint32_t s = 0; s < shards_; ++s) begin_[s + 1] += begin_[s];
  keys_.resize(found);
  counts_.resize(found);
  for (uint32_t id = 0; id < found; ++id) {
    const uint32_t at = begin_[found_shard_[id]]++;
    position_[id] = at;
    keys_[at] = found_keys_[id];
    counts_[at] = found_counts_[id];
  }
  for (uint32_t s = shards_; s > 0; --s) begin_[s] = begin_[s - 1];
  begin_[0] = 0;
  for (size_t i = 0; i < n; ++i) index_[i] = position_[index_[i]];
}

}  // namespace flux
