// Slices: the examples of a batch by the value of a slot, with a bound on the values.
//
// Of all values that come, those `max` are told apart that are the smallest numbers; the rest is
// "other". A batch tells its own `max` smallest, and whoever adds up keeps the smallest of all: a
// value that a batch did not tell has `max` smaller ones and is dropped in the end, so what is
// known of a value that stays is all of it, whoever saw what when. A slot with at most `max` values
// has each of them. Pure.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "flux/metrics/metric_values.h"

namespace flux {

constexpr uint64_t kNoSlice = std::numeric_limits<uint64_t>::max();  // the example has no value

// A slot by which examples are told apart.
struct SliceSlot {
  std::string name;
  uint32_t values_max = 16;
};

// The examples of one value.
struct Slice {
  std::string name;                // "country=17", "country=none", "country=other"
  std::vector<uint32_t> examples;  // positions in the batch, rising
};

// The slices of a batch; `values`: of each example; kNoSlice: none.
std::vector<Slice> split_slices(const SliceSlot& slot, std::span<const uint64_t> values);

// Keys of metrics that belong to values beyond `max` of their slot (by phase and head), each with
// that of the slot's "other".
std::vector<std::pair<MetricKey, MetricKey>> beyond_smallest(uint32_t max,
                                                             std::span<const MetricKey> keys);

// Moves what goes beyond `max` values of a slot into its "other".
template <typename Metrics>
void keep_smallest(uint32_t max, std::map<MetricKey, Metrics>* all) {
  std::vector<MetricKey> keys;
  for (const auto& [key, metrics] : *all)
    if (!key.slice.empty()) keys.push_back(key);
  if (keys.size() <= max) return;
  for (const auto& [key, other] : beyond_smallest(max, keys)) {
    auto node = all->extract(key);
    const auto [at, is_new] = all->try_emplace(other, node.mapped());
    if (!is_new) at->second.merge(node.mapped());
  }
}

}  // namespace flux
