#include "flux/data/number_check.h"

#include <algorithm>

#include <fmt/format.h>

#include "flux/base/finite.h"

namespace flux {
namespace {

WrongNumber wrong(size_t example, const char* what, const std::string& name, float value) {
  return {static_cast<uint32_t>(example),
          fmt::format("{} '{}' is {}; it must be a number", what, name, float_text(value))};
}

// The place [example][slot] of key `key`.
size_t place_of(const Batch& batch, size_t key) {
  if (batch.begin.empty()) return key;
  const auto behind = std::upper_bound(batch.begin.begin(), batch.begin.end(), key);
  return static_cast<size_t>(behind - batch.begin.begin()) - 1;
}

}  // namespace

std::optional<WrongNumber> find_wrong_number(const Batch& batch, const BatchNames& names) {
  size_t at = first_not_finite(batch.labels.data(), batch.labels.size());
  if (at < batch.labels.size())
    return wrong(at % batch.size, "label", names.labels[at / batch.size], batch.labels[at]);
  at = first_not_finite(batch.dense_values.data(), batch.dense_values.size());
  if (at < batch.dense_values.size())
    return wrong(at / batch.dense, "dense feature", names.dense[at % batch.dense],
                 batch.dense_values[at]);
  at = first_not_finite(batch.values.data(), batch.values.size());
  if (at == batch.values.size()) return std::nullopt;
  const size_t place = place_of(batch, at);
  return wrong(place / batch.slots, "a value of slot", names.slots[place % batch.slots],
               batch.values[at]);
}

}  // namespace flux
