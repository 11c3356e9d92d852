#include "flux/metrics/slices.h"

#include <algorithm>

#include <fmt/format.h>

namespace flux {

std::vector<Slice> split_slices(const SliceSlot& slot, std::span<const uint64_t> values) {
  std::vector<uint64_t> kept(values.begin(), values.end());
  std::sort(kept.begin(), kept.end());
  kept.erase(std::unique(kept.begin(), kept.end()), kept.end());
  if (!kept.empty() && kept.back() == kNoSlice) kept.pop_back();
  kept.resize(std::min<size_t>(kept.size(), slot.values_max));
  std::vector<Slice> out(kept.size() + 2);
  for (size_t s = 0; s < kept.size(); ++s) out[s].name = fmt::format("{}={}", slot.name, kept[s]);
  out[kept.size()].name = slot.name + "=none";
  out[kept.size() + 1].name = slot.name + "=other";
  for (uint32_t i = 0; i < values.size(); ++i) {
    const auto at = std::lower_bound(kept.begin(), kept.end(), values[i]);
    auto place = static_cast<size_t>(at - kept.begin());
    if (at == kept.end() || *at != values[i]) place = kept.size() + (values[i] == kNoSlice ? 0 : 1);
    out[place].examples.push_back(i);
  }
  std::erase_if(out, [](const Slice& slice) { return slice.examples.empty(); });
  return out;
}

namespace {

// Whether it is the slice of one value, not of "none" or "other".
bool is_value(const std::string& slice) {
  const size_t mark = slice.find('=');
  return mark != std::string::npos && mark + 1 < slice.size() && slice[mark + 1] >= '0' &&
         slice[mark + 1] <= '9';
}

}  // namespace

std::vector<std::pair<MetricKey, MetricKey>> beyond_smallest(uint32_t max,
                                                             std::span<const MetricKey> keys) {
  std::map<MetricKey, std::vector<MetricKey>> slots;  // by the key of "other"
  for (const MetricKey& key : keys) {
    if (!is_value(key.slice)) continue;
    MetricKey other = key;
    other.slice = key.slice.substr(0, key.slice.find('=')) + "=other";
    slots[other].push_back(key);
  }
  std::vector<std::pair<MetricKey, MetricKey>> out;
  for (auto& [other, values] : slots) {
    // In the order of numbers.
    std::sort(values.begin(), values.end(), [](const MetricKey& a, const MetricKey& b) {
      return a.slice.size() != b.slice.size() ? a.slice.size() < b.slice.size() : a.slice < b.slice;
    });
    for (size_t i = max; i < values.size(); ++i) out.emplace_back(values[i], other);
  }
  return out;
}

}  // namespace flux
