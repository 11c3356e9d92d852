// Runs tests/scripts/models_*.txt (base/script_test.h): each line is a layer that cannot be, and
// below it stands the refusal, which names the file, the line, the operator and the shapes.
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

// Why the job is refused with this layer; "" if it is not.
std::string refusal_of(const std::string& layer) {
  const auto job = parse_job("model.yaml", kJob + ("    " + layer) + "\n", {});
  if (!job.is_ok()) return job.status().message();
  const auto graph = build_graph(job.value(), 26, 13);
  return graph.is_ok() ? "" : graph.status().message();
}

class ModelsTest : public testing::TestWithParam<std::string> {};

TEST_P(ModelsTest, EachLayerIsRefusedWithItsLineOperatorAndShapes) {
  run_script(FLUX_SOURCE_DIR, GetParam(), [](const std::string& line) {
    const std::string message = refusal_of(line);
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

}  // namespace
}  // namespace flux
