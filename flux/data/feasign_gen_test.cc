#include "flux/data/feasign_gen.h"

#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "flux/data/made_truth.h"
#include "flux/data/test_files.h"
#include "flux/data/text/feasign.h"
#include "flux/data/text/test_lines.h"

namespace flux {
namespace {

std::string text_of(const std::string& path) {
  std::ostringstream out;
  out << std::ifstream(path, std::ios::binary).rdbuf();
  return out.str();
}

// The options that the truth's own YAML declares, read with the simplest means.
DataOptions declared(const MadeTruth& truth) {
  DataOptions options;
  options.format = "feasign";
  options.labels = truth.labels();
  std::istringstream yaml(truth.yaml());
  for (std::string line; std::getline(yaml, line);) {
    const size_t at = line.find("{name: ");
    if (at == std::string::npos) continue;
    const size_t end = line.find_first_of(",}", at);
    SlotOptions slot{line.substr(at + 7, end - at - 7), ""};
    const size_t keys = line.find("keys: ");
    if (keys != std::string::npos) slot.keys = line.substr(keys + 6, line.size() - keys - 7);
    options.slots.push_back(slot);
  }
  return options;
}

TEST(FeasignGen, EveryKindReadsBackAndHasAKnownTruth) {
  const TestDirectory folder;
  for (const std::string& kind : made_truth_kinds()) {
    const std::string path = folder.path(kind + ".txt");
    const auto made = generate_feasign({kind, 12'000, 1, 7}, path, 2, {});
    ASSERT_TRUE(made.is_ok()) << made.status().message();
    const auto truth = make_truth(kind, 7);
    ASSERT_TRUE(truth.is_ok());
    const FeasignParser parser(declared(*truth.value()));
    LineRecord record;
    std::vector<uint64_t> positives(made.value().labels.size());
    uint64_t lines = 0;
    std::istringstream text(text_of(path));
    for (std::string line; std::getline(text, line); ++lines) {
      const auto wrong = parser.parse(PaddedLine(line).view(), &record);
      ASSERT_FALSE(wrong) << kind << " line " << lines + 1 << ": " << wrong->what;
      for (size_t l = 0; l < positives.size(); ++l) positives[l] += record.labels[l] > 0 ? 1 : 0;
    }
    EXPECT_EQ(lines, 12'000U) << kind;
    for (size_t l = 0; l < positives.size(); ++l) {
      const FeasignGenReport::Label& label = made.value().labels[l];
      EXPECT_DOUBLE_EQ(label.share, static_cast<double>(positives[l]) / 12'000) << kind;
      EXPECT_GT(label.oracle_auc, 0.7) << kind << " has little to be learnt";
      EXPECT_LT(label.oracle_auc, 0.98) << kind << " is too easy";
    }
  }
}

TEST(FeasignGen, TheBytesDependOnTheOptionsAlone) {
  const TestDirectory folder;
  const auto bytes = [&](const FeasignGenOptions& options, unsigned threads) {
    const std::string path = folder.path("made.txt");
    EXPECT_TRUE(generate_feasign(options, path, threads, {}).is_ok());
    return text_of(path);
  };
  const FeasignGenOptions options{"sequence", 25'000, 3, 7};
  const std::string first = bytes(options, 1);
  EXPECT_EQ(first, bytes(options, 3));
  FeasignGenOptions other = options;
  other.seed = 4;
  EXPECT_NE(first, bytes(other, 1));
}

TEST(FeasignGen, MistakesAreNamed) {
  const TestDirectory folder;
  const auto problem = [&](const FeasignGenOptions& options) {
    return generate_feasign(options, folder.path("x"), 1, {}).status().message();
  };
  EXPECT_EQ(
      problem({"field", 1, 1, 1}),
      "no data of kind 'field' can be made, did you mean 'field_pairs'?; kinds: bends, crosses, "
      "field_pairs, fields, sequence, tasks, towers");
  EXPECT_NE(problem({"fields", 0, 1, 1}).find("at least 1"), std::string::npos);
}

}  // namespace
}  // namespace flux
