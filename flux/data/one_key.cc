#include "flux/data/one_key.h"

#include "flux/base/text.h"

namespace flux {

std::string WrongKeyCount::text(const std::vector<SlotOptions>& slots) const {
  return fmt::format("slot '{}' has {} keys; data.one_key says that every slot has one",
                     slots[slot].name, keys == 0 ? "no" : std::to_string(keys));
}

std::optional<WrongKeyCount> take_one_key_each(Batch* batch) {
  for (uint32_t i = 0; i + 1 < batch->begin.size(); ++i)
    if (batch->begin[i + 1] != i + 1)
      return WrongKeyCount{i / batch->slots, i % batch->slots, batch->begin[i + 1] - i};
  batch->begin.clear();
  return std::nullopt;
}

}  // namespace flux
