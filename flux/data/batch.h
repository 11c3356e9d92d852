// Batch: some examples in columns, the unit that is trained, pushed and marked.
// A plain value owned by one trainer thread and reused; never shared while it is being filled.
#pragma once

#include <cstdint>
#include <vector>

namespace flux {

struct Batch {
  uint32_t size = 0;                // examples
  uint32_t slots = 0;               // sparse features per example, one key each
  uint32_t dense = 0;               // dense features per example
  std::vector<float> labels;        // [size]
  std::vector<float> dense_values;  // [size][dense]
  std::vector<uint64_t> keys;       // [size][slots]
};

}  // namespace flux
