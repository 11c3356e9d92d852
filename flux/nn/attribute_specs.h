// Short ways to write the attributes of an operator (AttrSpec), one line each.
// Pure functions.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "flux/nn/graph.h"

namespace flux {

inline AttrSpec int_attribute(std::string name, int64_t value, double min, double max,
                              std::string doc) {
  return {std::move(name), AttrType::kInt, false, value, min, max, {}, std::move(doc)};
}
inline AttrSpec float_attribute(std::string name, double value, double min, double max,
                                std::string doc) {
  return {std::move(name), AttrType::kFloat, false, value, min, max, {}, std::move(doc)};
}
inline AttrSpec bool_attribute(std::string name, bool value, std::string doc) {
  return {std::move(name), AttrType::kBool, false, value, 0, 0, {}, std::move(doc)};
}
// One of `choices`; the first is the default.
inline AttrSpec choice_attribute(std::string name, std::vector<std::string> choices,
                                 std::string doc) {
  AttrValue first = choices.at(0);
  return {std::move(name),    AttrType::kString, false, std::move(first), 0, 0,
          std::move(choices), std::move(doc)};
}
inline AttrSpec texts_attribute(std::string name, std::string doc) {
  return {std::move(name), AttrType::kStrings, false, std::vector<std::string>{}, 0, 0, {},
          std::move(doc)};
}
inline AttrSpec required(AttrSpec spec) {
  spec.required = true;
  return spec;
}
// `over: features | positions`, for operators that work along one of them.
inline AttrSpec over_attribute() {
  return choice_attribute("over", {"features", "positions"},
                          "along the features of each position, or along the positions");
}

}  // namespace flux
