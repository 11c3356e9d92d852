#include "flux/coordinator/lease_order.h"

#include <utility>

#include "flux/base/hash.h"
#include "flux/base/random.h"

namespace flux {

std::vector<uint32_t> lease_order(const Geometry& geometry, const BlockId& section) {
  std::vector<uint32_t> order;
  std::vector<uint32_t> behind(geometry.blocks.size(), 0);  // of the same unit
  for (uint32_t b = 0, first = 0; b < geometry.blocks.size(); ++b) {
    const uint32_t file = geometry.blocks[b].file;
    const bool same = b > 0 && geometry.files[file].in_order && geometry.blocks[b - 1].file == file;
    first = same ? first : b;
    if (same)
      ++behind[first];
    else
      order.push_back(b);
  }
  if (geometry.shuffle_seed != 0) {
    Random random(hash_pair(hash_pair(geometry.shuffle_seed, section.pass),
                            (static_cast<uint64_t>(section.phase) << 16) | section.epoch));
    for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  }
  std::vector<uint32_t> out;
  for (const uint32_t first : order)
    for (uint32_t i = 0; i <= behind[first]; ++i) out.push_back(first + i);
  return out;
}

}  // namespace flux
