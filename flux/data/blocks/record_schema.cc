#include "flux/data/blocks/record_schema.h"

#include <set>

#include <nlohmann/json.hpp>

#include "flux/data/feature_check.h"

namespace flux {
namespace {

constexpr size_t kNamesMax = 1 << 16;

using Names = std::vector<std::string>;

Status take_names(const nlohmann::json& json, const char* what, std::set<std::string>* seen,
                  Names* out) {
  const auto list = json.find(what);
  if (list == json.end() || !list->is_array())
    return error(Code::kCorrupt, "its schema has no list of {}", what);
  if (list->size() > kNamesMax)
    return error(Code::kCorrupt, "its schema names {} {}", list->size(), what);
  for (const nlohmann::json& name : *list) {
    if (!name.is_string() || name.get_ref<const std::string&>().empty())
      return error(Code::kCorrupt, "its schema has {} without a name", what);
    out->push_back(name.get<std::string>());
    if (!seen->insert(out->back()).second)
      return error(Code::kCorrupt, "its schema names '{}' twice", out->back());
  }
  return Status::ok();
}

Status take_flag(const nlohmann::json& json, const char* what, bool* out) {
  const auto flag = json.find(what);
  if (flag == json.end() || !flag->is_boolean())
    return error(Code::kCorrupt, "its schema does not say {}", what);
  *out = flag->get<bool>();
  return Status::ok();
}

}  // namespace

uint32_t RecordSchema::fixed_bytes() const {
  return static_cast<uint32_t>((labels.size() + dense.size() + (weights ? 1 : 0)) * sizeof(float) +
                               (groups ? sizeof(uint64_t) : 0));
}

std::string RecordSchema::to_json() const {
  const nlohmann::ordered_json json = {
      {"labels", labels}, {"dense", dense},         {"slots", slots},  {"weights", weights},
      {"groups", groups}, {"many_keys", many_keys}, {"values", values}};
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Result<RecordSchema> RecordSchema::from_json(std::string_view text) {
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) return error(Code::kCorrupt, "its schema is not JSON");
  RecordSchema out;
  std::set<std::string> seen;
  FLUX_RETURN_IF_ERROR(take_names(json, "labels", &seen, &out.labels));
  FLUX_RETURN_IF_ERROR(take_names(json, "dense", &seen, &out.dense));
  FLUX_RETURN_IF_ERROR(take_names(json, "slots", &seen, &out.slots));
  FLUX_RETURN_IF_ERROR(take_flag(json, "weights", &out.weights));
  FLUX_RETURN_IF_ERROR(take_flag(json, "groups", &out.groups));
  FLUX_RETURN_IF_ERROR(take_flag(json, "many_keys", &out.many_keys));
  FLUX_RETURN_IF_ERROR(take_flag(json, "values", &out.values));
  return out;
}

RecordSchema schema_of(const DataOptions& options) {
  RecordSchema out;
  out.labels = options.labels;
  out.dense = raw_numbers(options);
  out.slots = raw_slots(options);
  out.weights = options.weights;
  out.groups = !options.group.empty();
  out.many_keys = options.format != "criteo_tsv" && !options.one_key;
  for (const SlotOptions& slot : options.slots) out.values = out.values || slot.values;
  return out;
}

DataOptions block_file_options(const DataOptions& source) {
  DataOptions out = source;
  const RecordSchema schema = schema_of(source);
  out.format = "blocks";
  out.global_shuffle = false;
  out.bad_records = 0;
  out.raw_keys = out.minus_one_is_zero = false;
  out.columns.clear();
  out.csv = {};
  out.pipe = {};
  out.one_key = !schema.many_keys;
  out.dense = schema.dense;
  out.slots.clear();
  for (const std::string& name : schema.slots)
    out.slots.push_back({name, "", false, schema.values});
  if (schema.groups) out.group = "sid";
  return out;
}

}  // namespace flux
