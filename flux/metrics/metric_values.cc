#include "flux/metrics/metric_values.h"

#include <algorithm>

#include <fmt/format.h>

namespace flux {
namespace {

using V = MetricValues;
constexpr MetricField kFields[] = {
    {"auc", "area under the ROC curve: chance that a positive is ranked above a negative", &V::auc},
    {"log_loss", "mean of -log of the probability given to what happened", &V::log_loss},
    {"label_mean", "mean label; of clicks: the actual rate (CTR)", &V::label_mean},
    {"prediction_mean", "mean prediction; of clicks: the predicted rate", &V::prediction_mean},
    {"copc", "clicks over predicted clicks: label_mean / prediction_mean, 1 is right", &V::copc},
    {"mae", "mean absolute difference of prediction and label", &V::mae},
    {"rmse", "root of the mean squared difference of prediction and label", &V::rmse},
    {"bucket_error", "mean relative error of the predicted rate where enough was seen to tell",
     &V::bucket_error},
    {"calibration_error", "mean distance of predicted and actual rate over the calibration bins",
     &V::calibration_error},
    {"gauc", "AUC inside each group, averaged by impressions (also called WUAUC)", &V::gauc},
    {"uauc", "AUC inside each group, averaged over groups", &V::uauc},
    {"accuracy", "share of examples whose class is predicted, of a head with many", &V::accuracy},
};

}  // namespace

std::span<const MetricField> metric_fields() {
  return kFields;
}

const MetricValues* MetricReport::whole() const {
  for (const Row& row : rows)
    if (row.key.slice.empty()) return &row.values;
  return nullptr;
}

void MetricReport::add_phase(const std::string& phase, MetricReport other) {
  examples = std::max(examples, other.examples);
  loss += other.loss;
  for (Row& row : other.rows) {
    row.key.phase = phase;
    rows.push_back(std::move(row));
  }
}

std::string to_string(const MetricKey& key) {
  std::string text;
  for (const std::string& part : {key.phase, key.head, key.slice})
    if (!part.empty()) text += (text.empty() ? "" : "/") + part;
  return text;
}

std::string metric_line(const MetricValues& values) {
  std::string out;
  const auto put = [&](const std::string& name, double value) {
    out += fmt::format("{}{} {:.5f}", out.empty() ? "" : " · ", name, value);
  };
  for (const MetricField& field : metric_fields())
    if (values.*field.value) put(field.name, *(values.*field.value));
  for (const AtK& at : values.at) {
    put(fmt::format("precision@{}", at.k), at.precision);
    put(fmt::format("recall@{}", at.k), at.recall);
  }
  return out;
}

}  // namespace flux
