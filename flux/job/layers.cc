#include "flux/job/layers.h"

#include <algorithm>
#include <map>

#include "flux/base/check.h"
#include "flux/base/text.h"
#include "flux/job/schema.h"
#include "flux/job/validate.h"

namespace flux {
namespace {

const OperatorInfo* find_operator(std::string_view name) {
  const std::vector<OperatorInfo>& infos = operator_infos();
  const auto found = std::find_if(infos.begin(), infos.end(),
                                  [&](const OperatorInfo& info) { return info.name == name; });
  return found == infos.end() ? nullptr : &*found;
}

std::vector<std::string> field_names(const OperatorInfo& info) {
  std::vector<std::string> names = {"name", "op", "inputs"};
  for (const AttrSpec& attribute : info.attrs) names.push_back(attribute.name);
  for (const AttrSpec* attribute : shared_attributes(info)) names.push_back(attribute->name);
  return names;
}

struct ToAttr {
  AttrValue operator()(Integer value) const { return static_cast<int64_t>(value); }
  AttrValue operator()(double value) const { return value; }
  AttrValue operator()(bool value) const { return value; }
  AttrValue operator()(const std::string& value) const { return value; }
  AttrValue operator()(const std::vector<std::string>& value) const { return value; }
  AttrValue operator()(const std::vector<double>&) const {
    FLUX_CHECK(false, "no attribute is a list of numbers");
    return false;
  }
};

// Reads the layers of one model; knows which names exist so far.
class LayerReader {
 public:
  LayerReader(const YamlNode& list, const std::vector<std::string>& sources,
              std::vector<NodeSpec>* layers, Problems* problems)
      : sources_(sources), layers_(layers), problems_(problems) {
    for (const YamlNode& layer : list.items) {
      if (const YamlNode* name = scalar_of(layer, "name")) all_.emplace(name->text, name->origin);
    }
  }

  void read(const YamlNode& layer) {
    if (!layer.is_map()) {
      problems_->add(layer.origin,
                     fmt::format("a layer must be a map, not {}", describe_node(layer)),
                     "for example {name: fc1, op: fc, inputs: [x], units: 400}");
      return;
    }
    NodeSpec spec;
    spec.origin = problems_->place(layer.origin);
    read_name(layer, &spec);
    const OperatorInfo* info = read_op(layer, &spec);
    read_inputs(layer, info, &spec);
    if (info != nullptr) read_attributes(layer, *info, &spec);
    if (!spec.name.empty()) defined_.emplace(spec.name, layer.origin);
    layers_->push_back(std::move(spec));
  }

 private:
  void add_missing(const YamlNode& layer, const char* name, const std::string& hint) {
    problems_->add(layer.origin, fmt::format("field '{}' of the layer is missing", name), hint);
  }

  void read_name(const YamlNode& layer, NodeSpec* spec) {
    const YamlEntry* entry = layer.find("name");
    if (entry == nullptr) {
      add_missing(layer, "name", "other layers name it in their inputs");
      return;
    }
    const auto value = read_value(entry->value, "name", layer_name_spec(), problems_);
    if (!value) return;
    const std::string& name = std::get<std::string>(*value);
    if (std::find(sources_.begin(), sources_.end(), name) != sources_.end()) {
      problems_->add(entry->value.origin, fmt::format("layer name '{}' is reserved", name),
                     fmt::format("the data provides {}", join(sources_, ", ")));
    } else if (const auto found = defined_.find(name); found != defined_.end()) {
      problems_->add(
          entry->value.origin, fmt::format("layer '{}' is declared twice", name),
          fmt::format("first at {}; give each its own name", problems_->place(found->second)));
    } else {
      spec->name = name;
    }
  }

  const OperatorInfo* read_op(const YamlNode& layer, NodeSpec* spec) {
    const YamlEntry* entry = layer.find("op");
    if (entry == nullptr) {
      add_missing(layer, "op", fmt::format("operators: {}", join(layer_op_spec().choices, ", ")));
      return nullptr;
    }
    const auto value = read_value(entry->value, "op", layer_op_spec(), problems_);
    if (!value) return nullptr;
    spec->op = std::get<std::string>(*value);
    return find_operator(spec->op);
  }

  void read_inputs(const YamlNode& layer, const OperatorInfo* info, NodeSpec* spec) {
    const YamlEntry* entry = layer.find("inputs");
    if (entry != nullptr) {
      const auto value = read_value(entry->value, "inputs", layer_inputs_spec(), problems_);
      if (!value) return;
      spec->inputs = std::get<std::vector<std::string>>(*value);
    }
    for (size_t i = 0; i < spec->inputs.size(); ++i) {
      check_input(entry->value.is_list() ? entry->value.items[i].origin : entry->value.origin,
                  spec->inputs[i], layer);
    }
    if (info != nullptr) {
      check_input_count(entry != nullptr ? entry->value.origin : layer.origin, *info,
                        spec->inputs.size());
    }
  }

  void check_input_count(const Origin& origin, const OperatorInfo& info, size_t given) {
    const auto min = static_cast<size_t>(info.inputs_min);
    const auto max = static_cast<size_t>(info.inputs_max);
    if (given >= min && given <= max) return;
    const std::string wanted = max == 0     ? "no inputs"
                               : min == max ? fmt::format("{} input{}", min, min == 1 ? "" : "s")
                                            : fmt::format("{} to {} inputs", min, max);
    problems_->add(origin, fmt::format("'{}' takes {}, not {}", info.name, wanted, given),
                   info.doc);
  }

  void check_input(const Origin& origin, const std::string& name, const YamlNode& layer) {
    if (defined_.contains(name)) return;
    if (std::find(sources_.begin(), sources_.end(), name) != sources_.end()) return;
    const YamlNode* own = scalar_of(layer, "name");
    if (own != nullptr && own->text == name) {
      problems_->add(origin, fmt::format("layer '{}' takes itself as input", shorten(name)),
                     "inputs are layers above it");
      return;
    }
    if (const auto later = all_.find(name); later != all_.end()) {
      problems_->add(origin, fmt::format("input '{}' is defined only later", shorten(name)),
                     fmt::format("at {}; move that layer above this one (a model has no cycles)",
                                 problems_->place(later->second)));
      return;
    }
    std::vector<std::string> known = sources_;
    for (const auto& [defined, where] : defined_) known.push_back(defined);
    problems_->add(origin,
                   fmt::format("unknown input '{}'{}", shorten(name), did_you_mean(name, known)),
                   fmt::format("defined so far: {}", join(known, ", ")));
  }

  void read_attribute(const YamlEntry& entry, const AttrSpec& attribute, NodeSpec* spec) {
    const auto value =
        read_value(entry.value, attribute.name, attribute_spec(attribute), problems_);
    if (value) spec->attrs[attribute.name] = std::visit(ToAttr{}, *value);
  }

  void read_attributes(const YamlNode& layer, const OperatorInfo& info, NodeSpec* spec) {
    for (const YamlEntry& entry : layer.entries) {
      const std::vector<std::string> names = field_names(info);
      if (std::find(names.begin(), names.end(), entry.name) != names.end()) continue;
      add_unknown_field(entry, names,
                        {{"type", "op"},
                         {"input", "inputs"},
                         {"from", "inputs"},
                         {"size", "units"},
                         {"dim", "units"},
                         {"act", "activation"}},
                        problems_);
    }
    for (const AttrSpec& attribute : info.attrs) {
      const YamlEntry* entry = layer.find(attribute.name);
      if (entry == nullptr && attribute.required) {
        add_missing(layer, attribute.name.c_str(), attribute.doc);
      } else if (entry == nullptr) {
        spec->attrs[attribute.name] = attribute.default_value;
      } else {
        read_attribute(*entry, attribute, spec);
      }
    }
    for (const AttrSpec* attribute : shared_attributes(info)) {
      if (const YamlEntry* entry = layer.find(attribute->name))
        read_attribute(*entry, *attribute, spec);
    }
    if (info.name == "embedding") check_sequence(layer);
  }

  // Attributes of an embedding that only a sequence has.
  void check_sequence(const YamlNode& layer) {
    const YamlNode* combine = scalar_of(layer, "combine");
    if (combine != nullptr && combine->text == "sequence") return;
    for (const char* name : {"length", "keep"})
      if (const YamlEntry* entry = layer.find(name))
        problems_->add(entry->origin, fmt::format("'{}' needs combine: sequence", name),
                       "the rows of a slot are pooled otherwise; add it, or remove this");
  }

  const std::vector<std::string>& sources_;
  std::vector<NodeSpec>* layers_;
  Problems* problems_;
  std::map<std::string, Origin> all_;      // every name in the list
  std::map<std::string, Origin> defined_;  // names of the layers read so far
};

}  // namespace

std::vector<const AttrSpec*> shared_attributes(const OperatorInfo& info) {
  std::vector<const AttrSpec*> shared;
  for (const AttrSpec& attribute : parameter_attributes()) {
    const bool is_own = std::any_of(info.attrs.begin(), info.attrs.end(), [&](const AttrSpec& own) {
      return own.name == attribute.name;
    });
    if (!is_own) shared.push_back(&attribute);
  }
  return shared;
}

ValueSpec attribute_spec(const AttrSpec& attribute) {
  ValueSpec spec;
  switch (attribute.type) {
    case AttrType::kInt:
      spec.type = ValueSpec::Type::kInt;
      break;
    case AttrType::kFloat:
      spec.type = ValueSpec::Type::kFloat;
      break;
    case AttrType::kBool:
      spec.type = ValueSpec::Type::kBool;
      break;
    case AttrType::kString:
      spec.type = ValueSpec::Type::kText;
      break;
    case AttrType::kStrings:
      spec.type = ValueSpec::Type::kTexts;
      break;
  }
  spec.min = attribute.min;
  spec.max = attribute.max;
  spec.choices = attribute.choices;
  return spec;
}

const ValueSpec& layer_name_spec() {
  static const ValueSpec spec = [] {
    ValueSpec s;
    s.is_name = true;
    return s;
  }();
  return spec;
}

const ValueSpec& layer_op_spec() {
  static const ValueSpec spec = [] {
    ValueSpec s;
    for (const OperatorInfo& info : operator_infos()) s.choices.push_back(info.name);
    return s;
  }();
  return spec;
}

const ValueSpec& layer_inputs_spec() {
  static const ValueSpec spec = [] {
    ValueSpec s;
    s.type = ValueSpec::Type::kTexts;
    s.is_name = true;
    return s;
  }();
  return spec;
}

void read_layers(const YamlNode& list, const std::vector<std::string>& sources,
                 std::vector<NodeSpec>* layers, Problems* problems) {
  if (!list.is_list() || list.items.empty()) {
    problems->add(list.origin,
                  list.is_list()
                      ? "'layers' is empty"
                      : fmt::format("'layers' must be a list, not {}", describe_node(list)),
                  "for example - {name: fc1, op: fc, inputs: [dense], units: 400}");
    return;
  }
  LayerReader reader(list, sources, layers, problems);
  for (const YamlNode& layer : list.items) reader.read(layer);
}

}  // namespace flux
