#include <algorithm>

#include <fmt/ranges.h>

#include "flux/base/check.h"
#include "flux/base/text.h"
#include "flux/job/schema.h"

namespace flux {

Field& Field::between(double min, double max) {
  spec.min = min;
  spec.max = max;
  spec.any_uint64 = false;
  return *this;
}

Field& Field::above(double min, double max) {
  spec.min_open = true;
  return between(min, max);
}

Field& Field::below(double min, double max) {
  spec.max_open = true;
  return between(min, max);
}

Field& Field::one_of(std::vector<std::string> choices) {
  spec.choices = std::move(choices);
  return *this;
}

Field& Field::a_name() {
  spec.is_name = true;
  return *this;
}

Field& Field::not_empty() {
  spec.items_min = 1;
  return *this;
}

Field& Field::or_empty_text() {
  spec.may_be_empty = true;
  return *this;
}

Field& Field::needed() {
  required = true;
  return *this;
}

Field& Field::tried_as(std::vector<std::string> names) {
  also = std::move(names);
  return *this;
}

Field& Field::defaults_to(std::string text) {
  default_note = std::move(text);
  return *this;
}

const Field* Section::find(std::string_view name) const {
  const auto found = std::find_if(fields.begin(), fields.end(),
                                  [&](const Field& field) { return field.name == name; });
  return found == fields.end() ? nullptr : &*found;
}

std::vector<std::string> Section::names() const {
  std::vector<std::string> names;
  for (const Field& field : fields) names.push_back(field.name);
  return names;
}

Field& Section::add(std::string name, std::string doc) {
  Field field;
  field.name = std::move(name);
  field.doc = std::move(doc);
  fields.push_back(std::move(field));
  return fields.back();
}

void Section::set_type(Field* field, const std::string&) {
  field->spec.type = ValueSpec::Type::kText;
}
void Section::set_type(Field* field, uint32_t) {
  field->spec.type = ValueSpec::Type::kInt;
}
void Section::set_type(Field* field, uint64_t) {
  field->spec.type = ValueSpec::Type::kInt;
  field->spec.any_uint64 = true;
}
void Section::set_type(Field* field, float) {
  field->spec.type = ValueSpec::Type::kFloat;
  field->spec.single = true;
}
void Section::set_type(Field* field, double) {
  field->spec.type = ValueSpec::Type::kFloat;
}
void Section::set_type(Field* field, bool) {
  field->spec.type = ValueSpec::Type::kBool;
}
void Section::set_type(Field* field, const std::optional<float>&) {
  set_type(field, float{});
}
void Section::set_type(Field* field, const std::optional<bool>&) {
  set_type(field, bool{});
}
void Section::set_type(Field* field, const std::vector<std::string>&) {
  field->spec.type = ValueSpec::Type::kTexts;
}
void Section::set_type(Field* field, const std::vector<double>&) {
  field->spec.type = ValueSpec::Type::kNumbers;
}
void Section::set_type(Field* field, const std::vector<NodeSpec>&) {
  field->layers = true;
}

namespace {

struct Store {
  const Value& value;

  void operator()(std::string* to) const { *to = std::get<std::string>(value); }
  void operator()(uint32_t* to) const { *to = static_cast<uint32_t>(std::get<Integer>(value)); }
  void operator()(uint64_t* to) const { *to = static_cast<uint64_t>(std::get<Integer>(value)); }
  void operator()(float* to) const { *to = static_cast<float>(std::get<double>(value)); }
  void operator()(double* to) const { *to = std::get<double>(value); }
  void operator()(bool* to) const { *to = std::get<bool>(value); }
  void operator()(std::optional<float>* to) const {
    *to = static_cast<float>(std::get<double>(value));
  }
  void operator()(std::optional<bool>* to) const { *to = std::get<bool>(value); }
  void operator()(std::vector<std::string>* to) const {
    *to = std::get<std::vector<std::string>>(value);
  }
  void operator()(std::vector<double>* to) const { *to = std::get<std::vector<double>>(value); }
  void operator()(std::vector<NodeSpec>*) const { FLUX_CHECK(false, "layers are no value"); }
  void operator()(void*) const { FLUX_CHECK(false, "a section is no value"); }
};

struct Show {
  std::string operator()(const std::string* from) const { return *from; }
  std::string operator()(const bool* from) const { return *from ? "true" : "false"; }
  std::string operator()(const std::vector<std::string>* from) const {
    std::vector<std::string> shown = *from;
    for (std::string& one : shown)
      if (one.empty()) one = "\"\"";
    return shown.empty() ? "" : fmt::format("[{}]", join(shown, ", "));
  }
  std::string operator()(const std::vector<double>* from) const {
    return from->empty() ? "" : fmt::format("[{}]", fmt::join(*from, ", "));
  }
  std::string operator()(const std::vector<NodeSpec>*) const { return ""; }
  std::string operator()(const void*) const { return ""; }
  // Nothing is the default of what need not be given; its default_note says what that means.
  template <typename T>
  std::string operator()(const std::optional<T>*) const {
    return "";
  }
  template <typename Number>
  std::string operator()(const Number* from) const {
    return fmt::format("{}", *from);
  }
};

}  // namespace

void store(const Value& value, const Slot& slot) {
  std::visit(Store{value}, slot);
}

std::string default_text(const Field& field, void* object) {
  if (!field.default_note.empty() || field.required || !field.is_value()) return "";
  return std::visit(Show{}, field.slot(object));
}

}  // namespace flux
