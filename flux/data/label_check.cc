#include "flux/data/label_check.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace flux {
namespace {

bool fits(float label, uint32_t classes) {
  if (classes == 0) return label >= 0 && label <= 1;
  return label >= 0 && label <= static_cast<float>(classes - 1) && label == std::floor(label);
}

}  // namespace

std::string WrongLabel::text(const std::vector<std::string>& labels) const {
  if (rule.classes > 0)
    return fmt::format(
        "label '{}' is {}, but its loss needs the number of one of {} classes, from 0 to {}; give "
        "its logits more units, or mend the data",
        labels[rule.label], value, rule.classes, rule.classes - 1);
  const char* advice =
      value == -1 ? "where -1 means 0, set data.minus_one_is_zero (libsvm, libffm, vw, csv)"
                  : "give it a loss of numbers (mse_loss), or mend the data";
  return fmt::format("label '{}' is {}, but its loss needs 0, 1 or a probability between; {}",
                     labels[rule.label], value, advice);
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
                                           const std::vector<LabelRule>& rules) {
  for (const LabelRule& rule : rules) {
    const float* begin = batch.labels.data() + size_t{rule.label} * batch.size;
    const float* end = begin + batch.size;
    const float* at = std::find_if(begin, end, [&](float y) { return !fits(y, rule.classes); });
    if (at != end) return WrongLabel{static_cast<uint32_t>(at - begin), rule, *at};
  }
  return std::nullopt;
}

}  // namespace flux
