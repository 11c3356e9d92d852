// LineRecord: one line of any text format, as numbers. Reused from line to line, so that nothing is
// allocated for an example. A plain value of one thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace flux {

struct LineRecord {
  std::vector<float> labels, dense;
  std::vector<uint8_t> has_dense;  // which dense features the line names
  float weight = 1;
  uint64_t group = 0;
  bool has_weight = false, has_session = false, has_name = false;  // what the line has said
  std::vector<uint64_t> slices;  // of DataOptions::slices; ~0: the line has no such key
  // The first `count` of each are the line's; what is behind is left over.
  uint32_t count = 0;
  std::vector<uint32_t> slots;  // of each key
  std::vector<uint64_t> keys;   // as they are in tables
  std::vector<float> values;    // of each key
  bool ordered = true;          // slots never fall
  // Which feature came behind which in the lines before: what a parser looks for first.
  std::vector<uint32_t> follows;

  // Room for so many keys in all.
  void reserve(size_t n) {
    if (keys.size() >= n) return;
    slots.resize(n);
    keys.resize(n);
    values.resize(n);
  }
  std::span<const uint32_t> line_slots() const { return {slots.data(), count}; }
  std::span<const uint64_t> line_keys() const { return {keys.data(), count}; }
  std::span<const float> line_values() const { return {values.data(), count}; }
};

}  // namespace flux
