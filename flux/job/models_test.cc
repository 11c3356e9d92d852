// Runs tests/scripts/models_*.txt (base/script_test.h): each line is a layer that cannot be, and
// below it stands the refusal, which names the file, the line, the operator and, where it has
// inputs, the shapes. And the layers that docs/using/layers.md shows are accepted.
#include <algorithm>
#include <fstream>

#include <fmt/format.h>
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
// The same for layers that read slots and tables by themselves.
constexpr const char* kSlotsJob = R"(name: model
data:
  format: feasign
  train: train.txt
  slots: [{name: user}, {name: item}, {name: history}]
tables:
  - {name: t, dim: 8}
  - {name: odd, dim: 3}
model:
  layers:
    - {name: u, op: embedding, table: t, slots: [user], combine: sum}
    - {name: o, op: embedding, table: odd, slots: [user], combine: sum}
)";

// Where a layer below this job is, but for its column.
std::string place_below(const std::string& job) {
  return fmt::format("model.yaml:{}:", std::count(job.begin(), job.end(), '\n') + 1);
}

// Why a job is refused; "" if it is not.
std::string refusal_of(const std::string& text) {
  const auto job = parse_job("model.yaml", text, {});
  if (!job.is_ok()) return job.status().message();
  const auto graph = build_graphs(job.value(), features_of(job.value().data));
  return graph.is_ok() ? "" : graph.status().message();
}

class ModelsTest : public testing::TestWithParam<std::string> {};

TEST_P(ModelsTest, EachLayerIsRefusedWithItsLineOperatorAndShapes) {
  const bool reads_slots = GetParam() == "models_slots";
  const std::string job = reads_slots ? kSlotsJob : kJob;
  run_script(FLUX_SOURCE_DIR, GetParam(), [&](const std::string& line) {
    const std::string message = refusal_of(job + "    " + line + "\n");
    const size_t op = line.find("op: ") + 4;
    const std::string name = line.substr(op, line.find_first_of(",}", op) - op);
    const std::string node = place_below(job) + "7: node 'x' (" + name + "): ";
    // A wrong attribute has a place of its own, and its line is shown.
    const bool shows_line = reads_slots && message.starts_with(place_below(job)) &&
                            message.find(line) != std::string::npos;
    EXPECT_TRUE(message.starts_with(node) || shows_line) << line << "\n" << message;
    EXPECT_TRUE(reads_slots || message.find("[B,") != std::string::npos) << line << "\n" << message;
    return "> " + message.substr(0, message.find('\n')) + "\n";
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

TEST(Models, ALayerOfAPhaseIsRefusedLikeAnyOther) {
  const std::string job = R"(name: model
data:
  format: feasign
  train: train.txt
  slots: [{name: user}, {name: item}]
tables:
  - {name: t, dim: 7}
phases:
  - name: join
    layers:
      - {name: e, op: embedding, table: t}
      - {name: z, op: fc, inputs: e, units: 1}
      - {name: loss, op: logistic_loss, inputs: [z, label]}
  - name: update
    layers:
      - {name: e, op: embedding, table: t}
)";
  EXPECT_EQ(
      "model.yaml:17:9: node 'x' (ffm): each of the 2 slots must have a multiple of 2 "
      "features, one vector for each slot, got e[B,2,7]",
      refusal_of(job + "      - {name: x, op: ffm, inputs: e}\n"));
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
