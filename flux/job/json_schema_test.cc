// The generated schema and reference page equal their golden files, and the schema agrees with the
// parser: a small checker of the keywords in use accepts the examples and refuses bad jobs.
#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "flux/job/job.h"
#include "flux/job/yaml_document.h"

namespace flux {
namespace {

using Json = nlohmann::json;

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream out;
  out << in.rdbuf();
  return out.str();
}

// On a difference the new text is left in a temporary file; if it is as it should be, copy it over
// the golden file with the command shown and review the diff.
void expect_golden(const std::string& path, const std::string& text) {
  const std::string golden = FLUX_SOURCE_DIR "/" + path;
  if (read_file(golden) == text) return;
  std::string folder = ::testing::TempDir() + "flux_golden.XXXXXX";  // nobody else writes there
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const std::string fresh = folder + path.substr(path.rfind('/'));
  std::ofstream(fresh, std::ios::binary) << text;
  ADD_FAILURE() << path << " is not what the schema table gives now. To accept:\n  cp " << fresh
                << " " << golden;
}

TEST(JobSchema, IsTheGoldenFile) {
  expect_golden("tests/golden/job_schema.json", job_json_schema());
}
TEST(JobReference, IsThePageInDocs) {
  expect_golden("docs/using/job.md", job_reference_markdown());
}

// A YAML tree as an editor sees it: plain scalars become numbers and booleans where they can.
Json to_json(const YamlNode& node) {
  Json out;
  if (node.is_scalar() && !node.quoted && Json::accept(node.text)) return Json::parse(node.text);
  if (node.is_scalar()) return node.text;
  if (node.is_list()) out = Json::array();
  if (node.is_map()) out = Json::object();
  for (const YamlNode& item : node.items) out.push_back(to_json(item));
  for (const YamlEntry& entry : node.entries) out[entry.name] = to_json(entry.value);
  return out;
}

// Checks a value against the keywords that job_json_schema() uses.
class Checker {
 public:
  explicit Checker(const Json& root) : root_(root) {}

  bool accepts(const Json& schema, const Json& value) const {
    if (schema.contains("$ref")) return accepts(resolve(schema["$ref"]), value);
    return type_ok(schema, value) && number_ok(schema, value) && text_ok(schema, value) &&
           array_ok(schema, value) && object_ok(schema, value) && one_of_ok(schema, value) &&
           all_of_ok(schema, value);
  }

 private:
  const Json& resolve(const std::string& ref) const {
    return root_.at(Json::json_pointer(ref.substr(1)));
  }
  static bool type_ok(const Json& schema, const Json& value) {
    if (schema.contains("const") && schema["const"] != value) return false;
    if (!schema.contains("type")) return true;
    const std::string type = schema["type"];
    return (type == "string" && value.is_string()) || (type == "boolean" && value.is_boolean()) ||
           (type == "integer" && value.is_number_integer()) ||
           (type == "number" && value.is_number()) || (type == "array" && value.is_array()) ||
           (type == "object" && value.is_object());
  }
  static bool number_ok(const Json& schema, const Json& value) {
    if (!value.is_number()) return true;
    return !(schema.contains("minimum") && value < schema["minimum"]) &&
           !(schema.contains("maximum") && value > schema["maximum"]) &&
           !(schema.contains("exclusiveMinimum") && value <= schema["exclusiveMinimum"]) &&
           !(schema.contains("exclusiveMaximum") && value >= schema["exclusiveMaximum"]);
  }
  static bool text_ok(const Json& schema, const Json& value) {
    if (!value.is_string()) return true;
    const std::string text = value;
    if (schema.contains("minLength") && text.empty()) return false;
    if (schema.contains("pattern") && !matches(schema["pattern"], text)) return false;
    if (!schema.contains("enum")) return true;
    const Json& all = schema["enum"];
    return std::find(all.begin(), all.end(), value) != all.end();
  }
  static bool matches(const std::string& pattern, const std::string& text) {
    EXPECT_EQ(pattern, "^[A-Za-z0-9_][A-Za-z0-9_-]{0,63}$") << "the only pattern known here";
    return !text.empty() && text.size() <= 64 && text[0] != '-' &&
           std::all_of(text.begin(), text.end(), [](unsigned char c) {
             return std::isalnum(c) != 0 || c == '_' || c == '-';
           });
  }
  bool array_ok(const Json& schema, const Json& value) const {
    if (!value.is_array()) return true;
    if (schema.contains("minItems") && value.size() < schema["minItems"]) return false;
    if (schema.contains("maxItems") && value.size() > schema["maxItems"]) return false;
    if (!schema.contains("items")) return true;
    return std::all_of(value.begin(), value.end(),
                       [&](const Json& item) { return accepts(schema["items"], item); });
  }
  bool object_ok(const Json& schema, const Json& value) const {
    if (!value.is_object()) return true;
    for (const auto& name : schema.value("required", Json::array())) {
      if (!value.contains(name.get<std::string>())) return false;
    }
    const Json properties = schema.value("properties", Json::object());
    for (const auto& [name, inner] : value.items()) {
      if (properties.contains(name) ? !accepts(properties[name], inner)
                                    : schema.contains("additionalProperties")) {
        return false;
      }
    }
    return true;
  }
  bool all_of_ok(const Json& schema, const Json& value) const {
    if (!schema.contains("allOf")) return true;
    const Json& all = schema["allOf"];
    return std::all_of(all.begin(), all.end(),
                       [&](const Json& one) { return accepts(one, value); });
  }
  bool one_of_ok(const Json& schema, const Json& value) const {
    if (!schema.contains("oneOf")) return true;
    const Json& all = schema["oneOf"];
    return std::count_if(all.begin(), all.end(),
                         [&](const Json& one) { return accepts(one, value); }) == 1;
  }

  const Json& root_;
};

bool schema_accepts(const std::string& path) {
  const std::string text = read_file(path);
  Problems problems(path, text);
  YamlNode root;
  EXPECT_TRUE(parse_yaml(text, &problems, &root)) << path;
  const Json schema = Json::parse(job_json_schema());
  return Checker(schema).accepts(schema, to_json(root));
}

TEST(JobSchema, AcceptsTheExamples) {
  for (const std::string name : {"ctr_dnn", "lr", "counting"}) {
    EXPECT_TRUE(schema_accepts(FLUX_SOURCE_DIR "/examples/" + name + "/job.yaml")) << name;
  }
}

TEST(JobSchema, RefusesWhatASchemaCanSee) {
  for (const std::string name : {"unknown_top",
                                 "unknown_in_optimizer",
                                 "attribute_unknown",
                                 "attribute_of_other_op",
                                 "batch_zero",
                                 "lr_zero",
                                 "beta1_one",
                                 "dim_too_large",
                                 "deterministic_number",
                                 "no_train",
                                 "no_model",
                                 "train_and_passes",
                                 "op_unknown",
                                 "units_missing",
                                 "units_zero",
                                 "activation_unknown",
                                 "inputs_missing",
                                 "inputs_too_many",
                                 "inputs_too_few",
                                 "inputs_of_embedding",
                                 "precision_unknown",
                                 "phase_not_a_map",
                                 "phases_and_model",
                                 "stop_metric_unknown",
                                 "name_with_slash",
                                 "tables_is_map",
                                 "layers_is_empty",
                                 "pass_without_train",
                                 "seed_fraction"}) {
    EXPECT_FALSE(schema_accepts(FLUX_SOURCE_DIR "/tests/bad_jobs/" + name + ".yaml")) << name;
  }
}

TEST(JobSchema, KnowsEveryOperator) {
  const Json schema = Json::parse(job_json_schema());
  EXPECT_EQ(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
  for (const OperatorInfo& info : operator_infos()) {
    ASSERT_TRUE(schema["$defs"].contains("layer_" + info.name)) << info.name;
    const Json& properties = schema["$defs"]["layer_" + info.name]["properties"];
    EXPECT_EQ(properties.size(), 3 + info.attrs.size() + parameter_attributes().size())
        << info.name;
  }
}

}  // namespace
}  // namespace flux
