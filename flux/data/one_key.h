// data.one_key: every slot of every example has exactly one key, which models read faster.
// Pure functions over a batch; safe from any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "flux/data/batch.h"
#include "flux/data/dataset.h"

namespace flux {

struct WrongKeyCount {
  uint32_t example = 0, slot = 0, keys = 0;
  std::string text(const std::vector<SlotOptions>& slots) const;
};

// Takes the batch's counts of keys away if each of them is one; else says which is not.
std::optional<WrongKeyCount> take_one_key_each(Batch* batch);

}  // namespace flux
