// The Criteo TSV record: label, 13 dense and 26 categorical fields between tabs, and the keys that
// its tokens become. Plain constants and values; both parsers and the generator share them.
#pragma once

#include <cstdint>

namespace flux {

constexpr uint32_t kCriteoDense = 13;
constexpr uint32_t kCriteoSlots = 26;
constexpr uint32_t kCriteoFields = 1 + kCriteoDense + kCriteoSlots;
constexpr uint32_t kCriteoLineBytesMax = 1U << 20;

// Keys of different slots never meet, and no token can look like a missing field.
constexpr uint64_t criteo_key(uint32_t slot, uint32_t token) {
  return (uint64_t{slot + 1} << 32) | token;
}
constexpr uint64_t criteo_missing_key(uint32_t slot) {
  return (uint64_t{slot + 1} << 32) | (1ULL << 48);
}
// The counting model's key: one per record of the pass.
constexpr uint64_t criteo_example_key(uint64_t record) {
  return record | (1ULL << 56);
}

// One parsed line before the dense transform; padded so that vectors may be stored whole.
struct CriteoRecord {
  float label = 0;
  alignas(32) float dense[16] = {};
  alignas(32) uint64_t keys[28] = {};
};

}  // namespace flux
