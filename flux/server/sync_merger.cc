#include "flux/server/sync_merger.h"

#include <bit>
#include <cmath>

#include "flux/base/hash.h"

namespace flux {
namespace {

void add_scaled(float* sum, const float* values, size_t n, float weight) {
  for (size_t i = 0; i < n; ++i) sum[i] = std::fma(weight, values[i], sum[i]);
}

}  // namespace

void SyncMerger::begin_rows(size_t keys_max) {
  keys_.clear();
  counts_.clear();
  for (std::vector<float>& table : tables_) table.clear();
  slots_.assign(std::bit_ceil(keys_max * 2 + 1), 0);
}

uint32_t SyncMerger::find_or_add(Key key) {
  const size_t mask = slots_.size() - 1;
  for (size_t at = key_hash(key) & mask;; at = (at + 1) & mask) {
    const uint32_t found = slots_[at];
    if (found != 0 && keys_[found - 1] == key) return found - 1;
    if (found != 0) continue;
    keys_.push_back(key);
    counts_.push_back(0);
    for (size_t t = 0; t < dims_.size(); ++t) tables_[t].resize(keys_.size() * dims_[t], 0.0F);
    slots_[at] = static_cast<uint32_t>(keys_.size());
    return slots_[at] - 1;
  }
}

void SyncMerger::add_rows(std::span<const Key> keys, const uint32_t* counts,
                          std::span<const float* const> tables, size_t first, float weight) {
  for (size_t i = 0; i < keys.size(); ++i) {
    const uint32_t at = find_or_add(keys[i]);
    counts_[at] += counts[i];
    for (size_t t = 0; t < dims_.size(); ++t)
      add_scaled(tables_[t].data() + size_t{at} * dims_[t], tables[t] + (first + i) * dims_[t],
                 dims_[t], weight);
  }
}

void SyncMerger::add_dense(const float* gradient, float weight) {
  add_scaled(dense_.data(), gradient, dense_.size(), weight);
}

uint64_t SyncMerger::rows_hash() const {
  if (keys_.empty()) return 0;
  uint64_t h = hash_bytes(keys_.data(), keys_.size() * sizeof(Key));
  h = hash_bytes(counts_.data(), counts_.size() * sizeof(uint32_t), h);
  for (const std::vector<float>& table : tables_)
    h = hash_bytes(table.data(), table.size() * sizeof(float), h);
  return h;
}

uint64_t SyncMerger::dense_hash() const {
  return hash_bytes(dense_.data(), dense_.size() * sizeof(float));
}

}  // namespace flux
