#include "flux/server/sync_merger.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "flux/base/hash.h"

namespace flux {
namespace {

void add_scaled(float* sum, const float* values, size_t n, float weight) {
  for (size_t i = 0; i < n; ++i) sum[i] = std::fma(weight, values[i], sum[i]);
}

void scale(float* out, const float* values, size_t n, float weight) {
  for (size_t i = 0; i < n; ++i) out[i] = weight * values[i];
}

}  // namespace

void SyncMerger::begin_rows(size_t keys_max, std::span<const uint32_t> dims) {
  dims_ = dims;
  keys_.clear();
  counts_.clear();
  for (size_t t = 0; t < dims_.size(); ++t)
    tables_[t].resize(std::max(tables_[t].size(), keys_max * dims_[t]));
  slots_.assign(std::bit_ceil(keys_max * 2 + 1), 0);
}

uint32_t SyncMerger::find_or_add(Key key, bool* added) {
  const size_t mask = slots_.size() - 1;
  size_t at = key_hash(key) & mask;
  for (; slots_[at] != 0; at = (at + 1) & mask)
    if (keys_[slots_[at] - 1] == key) return slots_[at] - 1;
  *added = true;
  keys_.push_back(key);
  counts_.push_back(0);
  slots_[at] = static_cast<uint32_t>(keys_.size());
  return slots_[at] - 1;
}

void SyncMerger::add_rows(std::span<const Key> keys, const uint32_t* counts,
                          std::span<const float* const> rows, float weight) {
  for (size_t i = 0; i < keys.size(); ++i) {
    bool added = false;
    const uint32_t at = find_or_add(keys[i], &added);
    counts_[at] += counts[i];
    for (size_t t = 0; t < dims_.size(); ++t) {
      if (dims_[t] == 0) continue;
      float* sum = tables_[t].data() + size_t{at} * dims_[t];
      const float* row = rows[t] + i * dims_[t];
      if (added) {
        scale(sum, row, dims_[t], weight);
      } else {
        add_scaled(sum, row, dims_[t], weight);
      }
    }
  }
}

void SyncMerger::add_dense(const float* gradient, float weight, uint64_t first,
                           std::span<const FlatRange> sums) {
  for_each_part(sums, first, first + dense_.size(), [&](uint64_t begin, uint64_t end, bool is_sum) {
    add_scaled(dense_.data() + (begin - first), gradient + (begin - first), end - begin,
               is_sum ? 1.0F : weight);
  });
}

uint64_t SyncMerger::rows_hash() const {
  if (keys_.empty()) return 0;
  uint64_t h = hash_bytes(keys_.data(), keys_.size() * sizeof(Key));
  h = hash_bytes(counts_.data(), counts_.size() * sizeof(uint32_t), h);
  for (size_t t = 0; t < dims_.size(); ++t)
    if (dims_[t] > 0) h = hash_bytes(tables_[t].data(), keys_.size() * dims_[t] * sizeof(float), h);
  return h;
}

uint64_t SyncMerger::dense_hash() const {
  return hash_bytes(dense_.data(), dense_.size() * sizeof(float));
}

}  // namespace flux
