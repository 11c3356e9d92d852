// job_reference_markdown(): the schema table as a page for people.
#include "flux/base/text.h"
#include "flux/job/layers.h"
#include "flux/job/schema.h"

namespace flux {
namespace {

constexpr const char* kIntroduction =
    R"(# The job file

This page is generated from the table that checks job files (`flux/job/schema.cc`); a test keeps it
up to date.

A job is one YAML file. Every field has a default unless it is marked **required**; an unknown,
repeated, ill-typed or out-of-range field is refused with its line and column. `flux check job.yaml`
checks a file without running it. Whole jobs to start from: `examples/ctr_dnn/job.yaml`,
`examples/lr/job.yaml`, `examples/counting/job.yaml`.

Any field can be set from the command line with `--set path=value`, as if the file said so:

| to set | write |
|---|---|
| a field of a section | `--set data.batch=500` |
| a list of files | `--set data.train=a.tsv,b.tsv` |
| an element of a list by its number, from 0 | `--set tables.0.dim=16` |
| an element of a list by its name | `--set model.layers.fc1.units=64` |

Text that looks like a number or like `true` needs no quotes where text is expected; numbers and
`true`/`false` are written without quotes. YAML anchors and aliases work; merge keys (`<<`) and tags
do not. A file has at most 1 MiB and 32 levels.
)";

std::string cell(std::string text) {
  for (size_t at = text.find('|'); at != std::string::npos; at = text.find('|', at + 2)) {
    text.insert(at, "\\");
  }
  return text;
}

std::string row(const std::string& name, const std::string& type, const std::string& preset,
                const std::string& doc) {
  return fmt::format("| `{}` | {} | {} | {} |\n", name, cell(type), cell(preset), cell(doc));
}

constexpr const char* kTableHead = "\n| field | value | default | meaning |\n|---|---|---|---|\n";

std::string field_type(const Field& field) {
  if (field.layers) return "a list of layers, see below";
  if (field.is_list()) return "a list of maps, see below";
  if (field.section != nullptr) return "a map, see below";
  return describe_value(field.spec);
}

std::string field_default(const Field& field, void* defaults) {
  if (field.required) return "**required**";
  if (!field.default_note.empty()) return field.default_note;
  if (field.section != nullptr) return "the defaults of its fields";
  return fmt::format("`{}`", default_text(field, defaults));
}

// A heading, the section's fields, then the sections inside it.
std::string section_text(const std::string& path, const Section& section, void* defaults) {
  std::string out =
      path.empty() ? "\n## Fields\n" : fmt::format("\n## `{}`\n\n{}\n", path, section.doc);
  out += kTableHead;
  for (const Field& field : section.fields) {
    out += row(field.name, field_type(field), field_default(field, defaults), field.doc);
  }
  for (const Field& field : section.fields) {
    if (field.section == nullptr) continue;
    const std::string inner = (path.empty() ? "" : path + ".") + field.name;
    out += field.is_list()
               ? section_text(inner + "[]", *field.section, field.append(defaults))
               : section_text(inner, *field.section, std::get<void*>(field.slot(defaults)));
  }
  return out;
}

struct AttrText {
  std::string operator()(const std::string& x) const { return x; }
  std::string operator()(const std::vector<std::string>& x) const {
    return fmt::format("[{}]", join(x, ", "));
  }
  template <typename T>
  std::string operator()(const T& x) const {
    return fmt::format("{}", x);
  }
};

std::string inputs_text(const OperatorInfo& info) {
  if (info.inputs_max == 0) return "none";
  if (info.inputs_min == info.inputs_max) return fmt::format("{}", info.inputs_min);
  return fmt::format("{} to {}", info.inputs_min, info.inputs_max);
}

std::string operator_text(const OperatorInfo& info) {
  std::string out =
      fmt::format("\n### `{}`\n\n{} Inputs: {}.\n", info.name, info.doc, inputs_text(info));
  if (info.attrs.empty()) return out;
  out += kTableHead;
  for (const AttrSpec& attribute : info.attrs) {
    out += row(attribute.name, describe_value(attribute_spec(attribute)),
               attribute.required
                   ? "**required**"
                   : fmt::format("`{}`", std::visit(AttrText{}, attribute.default_value)),
               attribute.doc);
  }
  return out;
}

}  // namespace

std::string job_reference_markdown() {
  JobDraft defaults;
  std::string out = kIntroduction;
  out += section_text("", job_section(), &defaults);
  out +=
      "\n## Layers\n\nEach layer has a `name`, an `op` and, where the operator takes any, "
      "`inputs`: "
      "one name or a\nlist of names, each of a layer above it or of what the data offers: `dense` "
      "(the dense features)\nor `label`. All other fields are the operator's own, but for three "
      "that every layer with parameters takes:\n";
  out += kTableHead;
  for (const AttrSpec& attribute : parameter_attributes())
    out += row(attribute.name, describe_value(attribute_spec(attribute)), "the operator's choice",
               attribute.doc);
  for (const OperatorInfo& info : operator_infos()) out += operator_text(info);
  return out;
}

}  // namespace flux
