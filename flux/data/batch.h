// Batch: some examples in columns, the unit that is trained, pushed and marked.
// A plain value owned by one trainer thread and reused; never shared while it is being filled.
#pragma once

#include <cstdint>
#include <vector>

namespace flux {

struct Batch {
  uint32_t size = 0;                // examples
  uint32_t slots = 0;               // sparse features per example
  uint32_t dense = 0;               // dense features per example
  std::vector<float> labels;        // [labels][size]
  std::vector<float> dense_values;  // [size][dense]
  std::vector<uint64_t> keys;       // of slot after slot of example after example
  // Where slots may have any number of keys: [size * slots + 1], slot s of example i has the keys
  // from begin[i * slots + s] on. Empty: each slot has one key.
  std::vector<uint32_t> begin;
  std::vector<float> values;     // [keys], or empty: all 1; what each key's row is multiplied by
  std::vector<float> weights;    // [size], or empty: all 1
  std::vector<uint64_t> groups;  // [size], or empty: whose examples they are (a user, a search)
  // [DataOptions::slices][size]: the first key of that slot as the line has it; ~0: none.
  std::vector<uint64_t> slices;
};

}  // namespace flux
