#include "flux/main/metric_json.h"

#include <fmt/format.h>

namespace flux {
namespace {

using Json = nlohmann::ordered_json;

Json values_json(const MetricReport::Row& row) {
  const MetricValues& values = row.values;
  Json out;
  if (!row.key.phase.empty()) out["phase"] = row.key.phase;
  out["head"] = row.key.head;
  out["slice"] = row.key.slice;
  out["examples"] = values.examples;
  out["weight"] = values.weight;
  out["exact"] = values.exact;
  for (const MetricField& field : metric_fields()) {
    const std::optional<double>& value = values.*field.value;
    out[field.name] = value ? Json(*value) : Json(nullptr);
  }
  out["groups"] = values.groups;
  out["at"] = Json::array();
  for (const AtK& at : values.at)
    out["at"].push_back({{"k", at.k}, {"precision", at.precision}, {"recall", at.recall}});
  out["calibration"] = Json::array();
  for (const CalibrationBin& bin : values.calibration)
    out["calibration"].push_back(
        {{"weight", bin.weight}, {"predicted", bin.predicted}, {"actual", bin.actual}});
  return out;
}

}  // namespace

Json metrics_json(const MetricReport& report) {
  Json out;
  out["examples"] = report.examples;
  out["loss"] = report.loss;
  out["heads"] = Json::array();
  for (const MetricReport::Row& row : report.rows) out["heads"].push_back(values_json(row));
  return out;
}

}  // namespace flux
