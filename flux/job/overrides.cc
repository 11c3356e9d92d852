#include "flux/job/overrides.h"

#include <charconv>

#include "flux/base/text.h"
#include "flux/job/utf8.h"
#include "flux/job/validate.h"

namespace flux {
namespace {

void set_origins(const Origin& origin, YamlNode* node) {
  node->origin = origin;
  for (YamlNode& item : node->items) set_origins(origin, &item);
  for (YamlEntry& entry : node->entries) {
    entry.origin = origin;
    set_origins(origin, &entry.value);
  }
}

// Quotes, [..] and {..} are read as YAML; anything else is one plain word, whatever it holds.
Result<YamlNode> parse_override_value(const std::string& text) {
  YamlNode node;
  if (text.find_first_of("[{\"'") == 0) {
    Problems problems("the value", text);
    if (!parse_yaml(text, &problems, &node) || !problems.empty()) return problems.to_status();
  } else if (!text.empty() && text != "~" && text != "null") {
    node.kind = YamlNode::Kind::kScalar;
    node.text = text;
  }
  return node;
}

class PathWalker {
 public:
  PathWalker(const Origin& origin, Problems* problems) : origin_(origin), problems_(problems) {}

  // The node that one more step leads to, made if it is a missing field; nullptr with a problem.
  YamlNode* step(YamlNode* at, const std::string& name, bool last) {
    if (at->is_null()) {  // "data:" without a value
      at->kind = YamlNode::Kind::kMap;
      at->origin = origin_;
    }
    if (at->is_map()) return step_into_map(at, name, last);
    if (at->is_list()) return step_into_list(at, name);
    problems_->add(origin_, fmt::format("there is no '{}' inside the value {}", shorten(name),
                                        describe_node(*at)));
    return nullptr;
  }

 private:
  YamlNode* step_into_map(YamlNode* map, const std::string& name, bool last) {
    YamlEntry* entry = map->find(name);
    if (entry == nullptr) {
      map->entries.push_back({name, origin_, {}});
      entry = &map->entries.back();
      if (!last) entry->value.kind = YamlNode::Kind::kMap;
      entry->value.origin = origin_;
    } else if (last) {
      entry->origin = origin_;
    }
    return &entry->value;
  }

  YamlNode* step_into_list(YamlNode* list, const std::string& name) {
    std::vector<std::string> names;
    for (YamlNode& item : list->items) {
      const YamlNode* own = scalar_of(item, "name");
      if (own == nullptr) continue;
      if (own->text == name) return &item;
      names.push_back(own->text);
    }
    size_t index = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), index);
    const bool is_number = error == std::errc() && end == name.data() + name.size();
    if (is_number && index < list->items.size()) return &list->items[index];
    std::string hint = fmt::format("it has {} elements, counted from 0", list->items.size());
    if (!names.empty() && names.size() <= 50) hint += fmt::format("; names: {}", join(names, ", "));
    problems_->add(origin_,
                   fmt::format("the list has no element '{}'{}", shorten(name),
                               is_number ? "" : did_you_mean(name, names)),
                   hint);
    return nullptr;
  }

  Origin origin_;
  Problems* problems_;
};

void apply_override(const Override& override, const Origin& origin, YamlNode* root,
                    Problems* problems) {
  Result<YamlNode> value = parse_override_value(override.value);
  if (!value.is_ok()) {
    problems->add(origin, fmt::format("the value cannot be read: {}", value.status().message()));
    return;
  }
  const std::vector<std::string> steps = split(override.path, '.');
  if (steps.size() > kYamlDepthMax) {
    problems->add(origin, fmt::format("deeper than {} levels", kYamlDepthMax));
    return;
  }
  PathWalker walker(origin, problems);
  YamlNode* at = root;
  for (size_t i = 0; i < steps.size() && at != nullptr; ++i) {
    at = walker.step(at, steps[i], i + 1 == steps.size());
  }
  if (at == nullptr) return;
  *at = std::move(value).value();
  set_origins(origin, at);
}

}  // namespace

std::string override_label(const Override& override) {
  return fmt::format("--set {}={}", override.path, shorten(override.value));
}

void apply_overrides(std::span<const Override> overrides, YamlNode* root, Problems* problems) {
  std::vector<std::string> labels;
  for (const Override& override : overrides) labels.push_back(override_label(override));
  problems->name_overrides(std::move(labels));
  for (size_t i = 0; i < overrides.size(); ++i) {
    Origin origin;
    origin.override_index = static_cast<int>(i);
    apply_override(overrides[i], origin, root, problems);
  }
}

Result<Override> parse_override(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos) {
    return invalid("--set {}: there is no '='; write --set a.b=value, for example --set epochs=2",
                   shorten(text));
  }
  Override override{text.substr(0, equals), text.substr(equals + 1)};
  for (const std::string& step : split(override.path, '.')) {
    if (step.empty()) {
      return invalid(
          "--set {}: the path has an empty step; write names with single dots between "
          "them, for example --set data.batch=500",
          shorten(text));
    }
  }
  Problems problems("--set", text);
  if (!check_text(text, &problems)) return problems.to_status();
  return override;
}

}  // namespace flux
