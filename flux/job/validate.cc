#include "flux/job/validate.h"

#include <algorithm>

#include "flux/base/text.h"
#include "flux/job/layers.h"

namespace flux {
namespace {

void read_list(const YamlEntry& entry, const Field& field, const SectionObject& into,
               Problems* problems) {
  if (!entry.value.is_list()) {
    problems->add(
        entry.value.origin,
        fmt::format("'{}' must be a list, not {}", field.name, describe_node(entry.value)),
        fmt::format("begin each element with '- '; fields of an element: {}",
                    join(field.section->names(), ", ")));
    return;
  }
  if (entry.value.items.empty()) {
    problems->add(entry.value.origin, fmt::format("'{}' is empty", field.name),
                  "give at least one element or leave the field out");
  }
  for (const YamlNode& item : entry.value.items) {
    void* element = field.append(into.object);
    if (item.is_map()) {
      read_section(item, *field.section, {element, into.draft}, problems);
    } else {
      problems->add(
          item.origin,
          fmt::format("an element of '{}' must be a map, not {}", field.name, describe_node(item)),
          fmt::format("fields: {}", join(field.section->names(), ", ")));
    }
  }
}

void read_map(const YamlEntry& entry, const Field& field, const SectionObject& into,
              Problems* problems) {
  if (entry.value.is_map()) {
    void* inner = std::get<void*>(field.slot(into.object));
    read_section(entry.value, *field.section, {inner, into.draft}, problems);
    return;
  }
  problems->add(entry.value.origin,
                fmt::format("'{}' must be a map, not {}", field.name, describe_node(entry.value)),
                fmt::format("fields: {}", join(field.section->names(), ", ")));
}

void read_field(const YamlEntry& entry, const Field& field, const SectionObject& into,
                Problems* problems) {
  if (field.layers) {
    read_layers(entry.value, model_sources(into.draft->job.data),
                std::get<std::vector<NodeSpec>*>(field.slot(into.object)), problems);
  } else if (field.is_list()) {
    read_list(entry, field, into, problems);
  } else if (field.section != nullptr) {
    read_map(entry, field, into, problems);
  } else if (const auto value = read_value(entry.value, field.name, field.spec, problems)) {
    store(*value, field.slot(into.object));
  }
}

// The layers use names that the data section declares, so they are read last.
bool has_layers(const Field* field) {
  return field != nullptr && field->section != nullptr &&
         std::any_of(field->section->fields.begin(), field->section->fields.end(),
                     [](const Field& inner) { return inner.layers; });
}

}  // namespace

void add_unknown_field(const YamlEntry& entry, const std::vector<std::string>& names,
                       const std::vector<std::pair<std::string, std::string>>& also,
                       Problems* problems) {
  std::vector<std::string> candidates = names;
  for (const auto& [tried, name] : also) candidates.push_back(tried);
  std::string near = nearest_name(entry.name, candidates);
  for (const auto& [tried, name] : also) {
    if (near == tried) near = name;
  }
  problems->add(entry.origin,
                fmt::format("unknown field '{}'{}", shorten(entry.name),
                            near.empty() ? "" : fmt::format(", did you mean '{}'?", near)),
                fmt::format("allowed here: {}", join(names, ", ")));
}

void read_section(const YamlNode& map, const Section& section, const SectionObject& into,
                  Problems* problems) {
  for (const YamlEntry& entry : map.entries) {
    if (const Field* field = section.find(entry.name)) {
      if (!has_layers(field)) read_field(entry, *field, into, problems);
      continue;
    }
    std::vector<std::pair<std::string, std::string>> also;
    for (const Field& field : section.fields) {
      for (const std::string& tried : field.also) also.emplace_back(tried, field.name);
    }
    add_unknown_field(entry, section.names(), also, problems);
  }
  for (const YamlEntry& entry : map.entries) {
    const Field* field = section.find(entry.name);
    if (has_layers(field)) read_field(entry, *field, into, problems);
  }
  for (const Field& field : section.fields) {
    if (field.required && map.find(field.name) == nullptr) {
      problems->add(map.origin, fmt::format("field '{}' is missing", field.name), field.doc);
    }
  }
}

const YamlNode* scalar_of(const YamlNode& map, std::string_view name) {
  const YamlEntry* entry = map.find(name);
  return entry != nullptr && entry->value.is_scalar() ? &entry->value : nullptr;
}

}  // namespace flux
