#include "flux/nn/attributes.h"

#include <algorithm>
#include <cmath>

#include "flux/base/text.h"

namespace flux {
namespace {

const char* type_text(AttrType type) {
  switch (type) {
    case AttrType::kInt:
      return "an integer";
    case AttrType::kFloat:
      return "a number";
    case AttrType::kBool:
      return "true or false";
    case AttrType::kString:
      return "a string";
    case AttrType::kStrings:
      return "a list of strings";
  }
  return "?";
}

Status check_range(const AttrSpec& spec, double value, const std::string& where) {
  if (spec.min < spec.max && !(value >= spec.min && value <= spec.max))
    return invalid("{}'{}' must be between {} and {}, got {}", where, spec.name, spec.min, spec.max,
                   value);
  return Status::ok();
}

Result<AttrValue> check_one(const AttrSpec& spec, const AttrValue& given,
                            const std::string& where) {
  AttrValue value = given;
  if (spec.type == AttrType::kFloat && std::holds_alternative<int64_t>(given))
    value = static_cast<double>(std::get<int64_t>(given));
  if (value.index() != static_cast<size_t>(spec.type))
    return invalid("{}'{}' must be {}, got {}", where, spec.name, type_text(spec.type),
                   attr_text(given));
  if (const auto* number = std::get_if<int64_t>(&value))
    FLUX_RETURN_IF_ERROR(check_range(spec, static_cast<double>(*number), where));
  if (const auto* number = std::get_if<double>(&value))
    FLUX_RETURN_IF_ERROR(check_range(spec, *number, where));
  if (const auto* text = std::get_if<std::string>(&value); text && !spec.choices.empty()) {
    if (std::find(spec.choices.begin(), spec.choices.end(), *text) == spec.choices.end())
      return invalid("{}'{}' must be one of {}, got '{}'{}", where, spec.name,
                     join(spec.choices, ", "), *text, did_you_mean(*text, spec.choices));
  }
  return value;
}

}  // namespace

std::string attr_text(const AttrValue& value) {
  switch (value.index()) {
    case 0:
      return fmt::format("{}", std::get<int64_t>(value));
    case 1:
      return fmt::format("{}", std::get<double>(value));
    case 2:
      return std::get<bool>(value) ? "true" : "false";
    case 3:
      return std::get<std::string>(value);
    default:
      return fmt::format("[{}]", join(std::get<std::vector<std::string>>(value), ", "));
  }
}

std::string node_prefix(const std::string& origin, const std::string& name, const std::string& op) {
  const std::string place = origin.empty() ? "" : origin + ": ";
  return fmt::format("{}node '{}' ({}): ", place, name, op);
}

Result<std::map<std::string, AttrValue>> check_attributes(
    const std::vector<AttrSpec>& specs, const std::map<std::string, AttrValue>& given,
    const std::string& where) {
  std::vector<std::string> known;
  for (const AttrSpec& spec : specs) known.push_back(spec.name);
  for (const auto& [key, value] : given) {
    if (std::find(known.begin(), known.end(), key) == known.end())
      return invalid("{}unknown attribute '{}'{}; known: {}", where, key, did_you_mean(key, known),
                     known.empty() ? "none" : join(known, ", "));
  }
  std::map<std::string, AttrValue> result;
  for (const AttrSpec& spec : specs) {
    const auto it = given.find(spec.name);
    if (it == given.end()) {
      if (spec.required) return invalid("{}'{}' is required: {}", where, spec.name, spec.doc);
      result[spec.name] = spec.default_value;
      continue;
    }
    FLUX_ASSIGN_OR_RETURN(result[spec.name], check_one(spec, it->second, where));
  }
  return result;
}

}  // namespace flux
