// job_json_schema(): the schema table as JSON Schema, for editors that complete and check YAML.
#include <nlohmann/json.hpp>

#include "flux/base/check.h"
#include "flux/job/layers.h"
#include "flux/job/schema.h"

namespace flux {
namespace {

using Json = nlohmann::ordered_json;

// 64.0 as 64: JSON Schema needs no fractions where a range has none.
Json number(const ValueSpec& spec, double x) {
  if (spec.type == ValueSpec::Type::kInt) return static_cast<int64_t>(x);
  return x;
}

void add_range(const ValueSpec& spec, Json* out) {
  if (spec.any_uint64) {
    (*out)["minimum"] = 0;
    (*out)["maximum"] = UINT64_MAX;
  } else if (spec.min < spec.max) {
    (*out)[spec.min_open ? "exclusiveMinimum" : "minimum"] = number(spec, spec.min);
    (*out)[spec.max_open ? "exclusiveMaximum" : "maximum"] = number(spec, spec.max);
  }
}

Json text_schema(const ValueSpec& spec) {
  Json out = {{"type", "string"}};
  if (!spec.choices.empty()) {
    out["enum"] = spec.choices;
  } else if (spec.is_name) {
    out["pattern"] = kNamePattern;
  } else {
    out["minLength"] = spec.may_be_empty ? 0 : 1;
  }
  return out;
}

Json value_schema(const ValueSpec& spec) {
  Json out;
  switch (spec.type) {
    case ValueSpec::Type::kInt:
    case ValueSpec::Type::kFloat:
      out["type"] = spec.type == ValueSpec::Type::kInt ? "integer" : "number";
      add_range(spec, &out);
      return out;
    case ValueSpec::Type::kBool:
      return {{"type", "boolean"}};
    case ValueSpec::Type::kText:
      return text_schema(spec);
    case ValueSpec::Type::kNumbers:
      out = {{"type", "array"}, {"items", {{"type", "number"}}}};
      if (spec.items_min > 0) out["minItems"] = spec.items_min;
      return out;
    case ValueSpec::Type::kTexts:
      break;
  }
  Json list = {{"type", "array"}, {"items", text_schema(spec)}};
  if (spec.items_min > 0) list["minItems"] = spec.items_min;
  return {{"oneOf", Json::array({text_schema(spec), std::move(list)})}};
}

struct ToJson {
  Json operator()(const std::string* from) const { return *from; }
  Json operator()(const float* from) const {
    return std::stod(fmt::format("{}", *from));  // 0.05, not 0.0500000007
  }
  Json operator()(const std::vector<NodeSpec>*) const { return nullptr; }
  Json operator()(const void*) const { return nullptr; }
  template <typename T>
  Json operator()(const std::optional<T>*) const {
    return nullptr;  // no fixed default
  }
  template <typename T>
  Json operator()(const T* from) const {
    return *from;
  }
};

Json attribute_default(const AttrValue& value) {
  return std::visit([](const auto& x) -> Json { return x; }, value);
}

Json layer_schema(const OperatorInfo& info) {
  Json inputs = value_schema(layer_inputs_spec());
  Json& list = inputs["oneOf"][1];
  list["minItems"] = info.inputs_min;
  list["maxItems"] = info.inputs_max;
  if (info.inputs_min > 1 || info.inputs_max == 0) inputs = Json(list);
  inputs["description"] = "Layers above this one, or dense or label.";
  Json properties;
  properties["name"] = value_schema(layer_name_spec());
  properties["op"] = {{"const", info.name}, {"description", info.doc}};
  properties["inputs"] = std::move(inputs);
  Json required = {"name", "op"};
  if (info.inputs_min > 0) required.push_back("inputs");
  for (const AttrSpec& attribute : info.attrs) {
    Json schema = value_schema(attribute_spec(attribute));
    schema["description"] = attribute.doc;
    if (attribute.required) {
      required.push_back(attribute.name);
    } else {
      schema["default"] = attribute_default(attribute.default_value);
    }
    properties[attribute.name] = std::move(schema);
  }
  for (const AttrSpec* attribute : shared_attributes(info)) {
    properties[attribute->name] = value_schema(attribute_spec(*attribute));
    properties[attribute->name]["description"] = attribute->doc;
  }
  return {{"type", "object"},
          {"description", info.doc},
          {"properties", std::move(properties)},
          {"required", std::move(required)},
          {"additionalProperties", false}};
}

Json layers_schema() {
  Json one_of = Json::array();
  for (const OperatorInfo& info : operator_infos()) {
    one_of.push_back({{"$ref", "#/$defs/layer_" + info.name}});
  }
  return {{"type", "array"}, {"minItems", 1}, {"items", {{"oneOf", std::move(one_of)}}}};
}

Json section_schema(const Section& section, void* defaults);

Json field_schema(const Field& field, void* defaults) {
  Json out;
  if (field.layers) {
    out = layers_schema();
  } else if (field.is_list()) {
    out = {{"type", "array"},
           {"minItems", 1},
           {"items", section_schema(*field.section, field.append(defaults))}};
  } else if (field.section != nullptr) {
    out = section_schema(*field.section, std::get<void*>(field.slot(defaults)));
  } else {
    out = value_schema(field.spec);
    if (field.default_note.empty() && !field.required) {
      out["default"] = std::visit(ToJson{}, field.slot(defaults));
    }
  }
  out["description"] = field.doc;
  return out;
}

Json section_schema(const Section& section, void* defaults) {
  Json properties;
  Json required = Json::array();
  for (const Field& field : section.fields) {
    properties[field.name] = field_schema(field, defaults);
    if (field.required) required.push_back(field.name);
  }
  Json out = {
      {"type", "object"}, {"properties", std::move(properties)}, {"additionalProperties", false}};
  if (!required.empty()) out["required"] = std::move(required);
  return out;
}

}  // namespace

std::string job_json_schema() {
  JobDraft defaults;
  Json out = {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
              {"title", "flux job"},
              {"description", job_section().doc}};
  out.update(section_schema(job_section(), &defaults));
  const Json has_train = {{"required", {"data"}},
                          {"properties", {{"data", {{"required", {"train"}}}}}}};
  const auto has = [](const char* field) { return Json{{"required", Json::array({field})}}; };
  out["allOf"] = Json::array({Json{{"oneOf", Json::array({has_train, has("passes")})}},
                              Json{{"oneOf", Json::array({has("model"), has("phases")})}}});
  for (const OperatorInfo& info : operator_infos()) {
    out["$defs"]["layer_" + info.name] = layer_schema(info);
  }
  return out.dump(2) + "\n";
}

}  // namespace flux
