#include "flux/data/label_check.h"

#include <algorithm>

#include <fmt/format.h>

namespace flux {

std::string WrongLabel::text(const std::vector<std::string>& labels) const {
  const char* advice =
      value == -1 ? "where -1 means 0, set data.minus_one_is_zero (libsvm, libffm, vw, csv)"
                  : "give it a loss of numbers (mse_loss), or mend the data";
  return fmt::format("label '{}' is {}, but its loss needs 0, 1 or a probability between; {}",
                     labels[label], value, advice);
}

std::string WrongWeight::text() const {
  if (!(value >= 0)) return fmt::format("weight {} is not a number of at least 0", value);
  return fmt::format("weight {} is larger than {}, the most that an example may have", value,
                     kExampleWeightMax);
}

std::optional<WrongWeight> find_wrong_weight(const Batch& batch) {
  const auto at = std::find_if(batch.weights.begin(), batch.weights.end(), [](float weight) {
    return !(weight >= 0 && weight <= kExampleWeightMax);
  });
  if (at == batch.weights.end()) return std::nullopt;
  return WrongWeight{static_cast<uint32_t>(at - batch.weights.begin()), *at};
}

std::optional<WrongLabel> find_wrong_label(const Batch& batch,
                                           const std::vector<uint32_t>& unit_labels) {
  for (const uint32_t label : unit_labels) {
    const float* begin = batch.labels.data() + size_t{label} * batch.size;
    const float* end = begin + batch.size;
    const float* at = std::find_if(begin, end, [](float y) { return !(y >= 0 && y <= 1); });
    if (at != end) return WrongLabel{static_cast<uint32_t>(at - begin), label, *at};
  }
  return std::nullopt;
}

}  // namespace flux
