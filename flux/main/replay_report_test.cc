#include "flux/main/replay_report.h"

#include <gtest/gtest.h>

namespace flux {
namespace {

ReplayResult replayed(uint32_t staleness, double auc) {
  ReplayResult result;
  result.staleness = staleness;
  result.examples = 10'000;
  result.traffic = {100, 1000, 500};
  MetricValues values;
  values.auc = auc;
  result.test.rows.push_back({{}, values});
  return result;
}

TEST(ReplayReport, QualityFallsBetweenTheAgesThatWereTried) {
  // Drops of 0, 0.0005 and 0.0025 with 1, 5 and 17 workers: 0.001 is a quarter of the way up.
  const std::vector<ReplayResult> results = {replayed(0, 0.8), replayed(4, 0.7995),
                                             replayed(16, 0.7975)};
  const auto from = quality_falls_from(results, 0.001);
  ASSERT_TRUE(from.has_value());
  EXPECT_NEAR(*from, 8, 1e-9);
  EXPECT_FALSE(quality_falls_from(results, 0.01).has_value());
  EXPECT_FALSE(quality_falls_from({results.data(), 1}, 0.001).has_value());
}

TEST(ReplayReport, AModelThatDivergedRanksNothing) {
  ReplayResult bad = replayed(4, 0.9);
  bad.diverged = "nan in a.tsv";
  EXPECT_NEAR(auc_drop(replayed(0, 0.8), bad), 0.3, 1e-9);
  const std::vector<ReplayResult> results = {replayed(0, 0.8), bad};
  ReplaySetting setting;
  setting.batch = 1000;
  const std::string text = replay_text(setting, results);
  EXPECT_NE(text.find("diverged"), std::string::npos) << text;
  EXPECT_NE(text.find("nan in a.tsv"), std::string::npos);
  EXPECT_NE(replay_json(setting, results).find("\"diverged\": \"nan in a.tsv\""),
            std::string::npos);
}

TEST(ReplayReport, BytesOfABatch) {
  // 100 keys of 20 bytes both ways, and 1,500 values twice.
  EXPECT_EQ(replayed(0, 0.8).traffic.bytes(4), 2000 + 2 * 4 * 1500);
  EXPECT_EQ(replayed(0, 0.8).traffic.bytes(2), 2000 + 2 * 2 * 1500);
  EXPECT_NEAR(batches_per_link({}, replayed(0, 0.8).traffic), 3.125e9 / 14000, 1e-6);
}

}  // namespace
}  // namespace flux
