// Replays cases that scikit-learn and numpy answered (tests/compare/metrics.py), to 1e-9.
#include <cstdlib>
#include <fstream>
#include <map>

#include <gtest/gtest.h>

#include "flux/metrics/metric_set.h"

namespace flux {
namespace {

struct Case {
  std::vector<float> predictions, labels, weights;
  std::vector<uint64_t> groups;
  std::map<std::string, double> expected;
};

bool read_case(std::istream& in, Case* out) {
  std::string word, number;
  size_t rows = 0, values = 0;
  bool grouped = false;
  if (!(in >> word >> rows >> grouped)) return false;
  EXPECT_EQ(word, "case");
  for (size_t i = 0; i < rows; ++i) {
    uint64_t group = 0;
    float label = 0;
    std::string prediction, weight;
    in >> prediction >> label >> weight >> group;
    out->predictions.push_back(std::strtof(prediction.c_str(), nullptr));
    out->labels.push_back(label);
    out->weights.push_back(std::strtof(weight.c_str(), nullptr));
    if (grouped) out->groups.push_back(group);
  }
  in >> word >> values;
  EXPECT_EQ(word, "values");
  for (size_t i = 0; i < values; ++i) {
    in >> word >> number;
    out->expected[word] = std::strtod(number.c_str(), nullptr);
  }
  return static_cast<bool>(in);
}

std::map<std::string, double> values_of(const Case& one) {
  MetricSet set;
  const KeyedBatch batch{{}, {one.predictions, one.labels, one.weights, one.groups}};
  EXPECT_TRUE(set.add(static_cast<uint32_t>(one.labels.size()), 0, {&batch, 1}).is_ok());
  const MetricReport report = set.report();
  const MetricValues& values = report.rows.at(0).values;
  std::map<std::string, double> out;
  for (const MetricField& field : metric_fields())
    if (values.*field.value) out[field.name] = *(values.*field.value);
  for (const AtK& at : values.at) {
    out["precision@" + std::to_string(at.k)] = at.precision;
    out["recall@" + std::to_string(at.k)] = at.recall;
  }
  return out;
}

// --cases=FILE, or the small file of the tree.
std::string cases_file() {
  const std::string flag = "--cases=";
  for (const std::string& word : testing::internal::GetArgvs())
    if (word.starts_with(flag)) return word.substr(flag.size());
  return FLUX_SOURCE_DIR "/tests/golden/metric_cases.txt";
}

TEST(MetricCases, AgreeWithScikitLearnAndNumpy) {
  const std::string path = cases_file();
  std::ifstream in(path);
  ASSERT_TRUE(in) << path;
  size_t cases = 0, compared = 0;
  for (Case one; read_case(in, &one); one = {}) {
    ++cases;
    const std::map<std::string, double> values = values_of(one);
    EXPECT_EQ(values.size(), one.expected.size());
    for (const auto& [name, expected] : one.expected) {
      ASSERT_TRUE(values.contains(name)) << name << " of case " << cases;
      EXPECT_NEAR(values.at(name), expected, 1e-9) << name << " of case " << cases;
      ++compared;
    }
  }
  EXPECT_GE(cases, 10U);
  std::printf("%zu values of %zu cases agree to 1e-9\n", compared, cases);
}

}  // namespace
}  // namespace flux
