#include "flux/worker/key_groups.h"

#include <algorithm>

namespace flux {

void find_key_groups(const Batch& batch, std::span<const uint8_t> slot_groups,
                     std::vector<uint8_t>* out) {
  if (slot_groups.empty()) return;
  out->resize(batch.keys.size());
  uint8_t* to = out->data();
  for (uint32_t i = 0; i < batch.size; ++i) {
    if (batch.begin.empty()) {
      to = std::copy(slot_groups.begin(), slot_groups.end(), to);
      continue;
    }
    const uint32_t* begin = batch.begin.data() + size_t{i} * batch.slots;
    for (size_t s = 0; s < slot_groups.size(); ++s)
      to = std::fill_n(to, begin[s + 1] - begin[s], slot_groups[s]);
  }
}

}  // namespace flux
