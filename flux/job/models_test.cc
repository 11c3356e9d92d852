// Runs tests/scripts/models_*.txt (base/script_test.h): each line is a layer that cannot be, and
// below it stands the refusal, which names the file, the line, the operator and the shapes. And the
// layers that docs/using/layers.md shows are accepted.
#include <fstream>

#include <gtest/gtest.h>

#include "flux/base/script_test.h"
#include "flux/job/job.h"

namespace flux {
namespace {

constexpr const char* kJob = R"(name: model
data:
  format: criteo_tsv
  train: train.tsv
tables:
  - {name: t, dim: 8}
model:
  layers:
    - {name: all, op: embedding, table: t}
    - {name: e, op: slice, inputs: all, begin: 0, end: 3, over: positions}
    - {name: s, op: slice, inputs: all, begin: 3, end: 8, over: positions}
    - {name: u, op: slice, inputs: all, begin: 8, end: 9, over: positions}
    - {name: m, op: reduce_sum, inputs: s}
    - {name: d, op: slice, inputs: dense, begin: 0, end: 4}
    - {name: z, op: fc, inputs: u, units: 1}
    - {name: w, op: slice, inputs: dense, begin: 4, end: 5}
)";
constexpr const char* kPlace = "model.yaml:17:7: ";  // of the layer that is tried

// Why a job is refused; "" if it is not.
std::string refusal_of(const std::string& text) {
  const auto job = parse_job("model.yaml", text, {});
  if (!job.is_ok()) return job.status().message();
  const auto graph = build_graph(job.value(), features_of(job.value().data));
  return graph.is_ok() ? "" : graph.status().message();
}

class ModelsTest : public testing::TestWithParam<std::string> {};

TEST_P(ModelsTest, EachLayerIsRefusedWithItsLineOperatorAndShapes) {
  run_script(FLUX_SOURCE_DIR, GetParam(), [](const std::string& line) {
    const std::string message = refusal_of(kJob + ("    " + line) + "\n");
    const size_t op = line.find("op: ") + 4;
    const std::string name = line.substr(op, line.find(',', op) - op);
    EXPECT_TRUE(message.starts_with(kPlace + ("node 'x' (" + name + "): "))) << line << "\n"
                                                                             << message;
    EXPECT_NE(message.find("[B,"), std::string::npos) << line << "\n" << message;
    return "> " + message + "\n";
  });
}

INSTANTIATE_TEST_SUITE_P(Scripts, ModelsTest,
                         testing::ValuesIn(script_names(FLUX_SOURCE_DIR, "models_")),
                         [](const auto& info) { return info.param; });

TEST(Models, AHundredMalformedLayersAreTried) {
  size_t layers = 0;
  for (const std::string& name : script_names(FLUX_SOURCE_DIR, "models_")) {
    std::ifstream in(FLUX_SOURCE_DIR "/tests/scripts/" + name + ".txt");
    for (std::string line; std::getline(in, line);) layers += line.starts_with("- ") ? 1 : 0;
  }
  EXPECT_GE(layers, 100U);
}

std::vector<std::string> yaml_blocks(const std::string& path) {
  std::ifstream in(path);
  std::vector<std::string> blocks;
  bool inside = false;
  for (std::string line; std::getline(in, line);) {
    const bool begins = line == "```yaml", ends = line == "```";
    if (begins) blocks.emplace_back();
    if (inside && !ends) blocks.back() += line + "\n";
    inside = begins || (inside && !ends);
  }
  return blocks;
}

// The first block is a job without its model; each of the others is a whole list of layers.
TEST(Models, LayersOfTheDocumentationAreAccepted) {
  const auto blocks = yaml_blocks(FLUX_SOURCE_DIR "/docs/using/layers.md");
  ASSERT_GT(blocks.size(), 10U);
  for (size_t i = 1; i < blocks.size(); ++i)
    EXPECT_EQ("", refusal_of(blocks[0] + "model:\n  layers:\n" + blocks[i])) << blocks[i];
}

}  // namespace
}  // namespace flux
