// Numbers of a batch that are none (NaN, infinity), in files that hold floats as bytes: text is
// refused where it is parsed.
// Pure function over a batch, at the speed of memory; safe from any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "flux/data/batch.h"

namespace flux {

// What the columns of a batch are called.
struct BatchNames {
  std::vector<std::string> labels, dense, slots;
};

struct WrongNumber {
  uint32_t example = 0;
  std::string text;  // "dense feature 'price' is nan; it must be a number"
};
std::optional<WrongNumber> find_wrong_number(const Batch& batch, const BatchNames& names);

}  // namespace flux
