// Drifting data against calculations from its text alone: positives and ids are counted, logits
// computed again by the formulas that the documents give.
#include "flux/data/drift_gen.h"

#include <array>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include <gtest/gtest.h>

#include "flux/data/criteo_truth.h"
#include "flux/data/made_truth.h"
#include "flux/data/test_files.h"
#include "flux/data/truths/hidden_rows.h"
#include "flux/storage/atomic_file.h"

namespace flux {
namespace {

std::string text_of(const std::string& path) {
  std::ostringstream out;
  out << std::ifstream(path, std::ios::binary).rdbuf();
  return out.str();
}

std::vector<std::vector<std::string>> fields_of(const std::string& path, char separator) {
  std::vector<std::vector<std::string>> lines;
  std::istringstream text(text_of(path));
  for (std::string line; std::getline(text, line);) {
    lines.emplace_back();
    std::istringstream fields(line);
    for (std::string field; std::getline(fields, field, separator);) lines.back().push_back(field);
  }
  return lines;
}

std::vector<DriftHour> generate(const DriftGenOptions& options, unsigned threads = 2) {
  std::vector<DriftHour> hours;
  const Status made =
      generate_drift(options, threads, [&](const DriftHour& hour) { hours.push_back(hour); }, {});
  EXPECT_TRUE(made.is_ok()) << made.message();
  EXPECT_EQ(hours.size(), options.drift.hours);
  hours.resize(options.drift.hours);
  return hours;
}

DriftGenOptions options_for(const std::string& folder, uint32_t hours, uint64_t examples) {
  DriftGenOptions options;
  options.folder = folder;
  options.examples = examples;
  options.drift.hours = hours;
  options.drift.start = parse_start("2026-01-01T20").value();
  return options;
}

// The share of pairs of a positive and a negative that are in the right order.
double auc_by_pairs(const std::array<std::vector<double>, 2>& logits) {
  double won = 0;
  for (const double positive : logits[1])
    for (const double negative : logits[0])
      won += positive > negative ? 1.0 : (positive == negative ? 0.5 : 0.0);
  return won / static_cast<double>(logits[0].size() * logits[1].size());
}

TEST(DriftGen, BytesDependOnTheOptionsAlone) {
  const TestDirectory folder;
  for (const std::string kind : {"", "sequence"}) {
    DriftGenOptions options = options_for(folder.path("a" + kind), 5, 10'500);
    options.kind = kind;
    const auto hours = generate(options, 1);
    options.folder = folder.path("b" + kind);
    options.drift.hours = 3;  // an hour does not depend on those after it
    const auto again = generate(options, 3);
    EXPECT_EQ(hours[4].path,
              folder.path("a" + kind) + "/20260102/00" + (kind.empty() ? ".tsv" : ".txt"));
    for (uint32_t h = 0; h < 3; ++h) {
      EXPECT_TRUE(text_of(hours[h].path) == text_of(again[h].path)) << kind << " hour " << h;
      EXPECT_EQ(hours[h].labels[0].best_auc, again[h].labels[0].best_auc);
    }
    EXPECT_FALSE(text_of(hours[0].path) == text_of(hours[1].path));
  }
}

TEST(DriftGen, CompressedWhenAsked) {
  const TestDirectory folder;
  DriftGenOptions options = options_for(folder.path("plain"), 1, 100);
  const std::string plain = text_of(generate(options)[0].path);
  options.folder = folder.path("packed");
  options.gzip = true;
  const std::string path = generate(options)[0].path;
  EXPECT_TRUE(path.ends_with("/20260101/20.tsv.gz"));
  const std::string bytes = text_of(path);
  EXPECT_EQ(bytes.substr(0, 2), "\x1f\x8b");
  EXPECT_LT(bytes.size(), plain.size());
}

// Every kind: the reported share is that of the lines, and it follows the hour of the day.
TEST(DriftGen, TheClickRateHasAWave) {
  const TestDirectory folder;
  std::vector<std::string> kinds = made_truth_kinds();
  kinds.emplace_back("");
  for (const std::string& kind : kinds) {
    DriftGenOptions options = options_for(folder.path("wave" + kind), 25, 2'000);
    options.kind = kind;
    options.drift.wave = 1.5;
    const auto hours = generate(options);
    std::vector<double> share;
    for (const DriftHour& hour : hours) {
      double positives = 0;
      for (const auto& fields : fields_of(hour.path, kind.empty() ? '\t' : ' '))
        positives += fields[0][0] == '1' ? 1 : 0;
      share.push_back(positives / 2'000);
      EXPECT_DOUBLE_EQ(hour.labels[0].share, share.back()) << hour.path;
    }
    // From 20 h: most, least twelve hours later, most again.
    EXPECT_GT(share[0], share[12] + 0.2) << kind;
    EXPECT_GT(share[24], share[12] + 0.2) << kind;
    EXPECT_GT(share[3], share[9]) << kind;
    EXPECT_LT(share[15], share[21]) << kind;
  }
}

// CriteoTruth::token() undone.
struct Place {
  uint32_t slot, place, life;
};
uint32_t unshift(uint32_t x, int by) {
  uint32_t y = x;
  for (int i = 0; i < 4; ++i) y = x ^ (y >> by);
  return y;
}
uint32_t inverse(uint32_t odd) {  // modulo 2^32, by Newton's steps
  uint32_t x = odd;
  for (int i = 0; i < 5; ++i) x *= 2 - odd * x;
  return x;
}
Place place_of(const std::string& token) {
  uint32_t x = static_cast<uint32_t>(std::strtoul(token.c_str(), nullptr, 16));
  x = unshift(x, 15) * inverse(0x297a2d39U);
  x = unshift(x, 12) * inverse(0x2c1b3c6dU);
  x = unshift(x, 15);
  return {((x >> 19) & 31) - 1, x & ((1U << 19) - 1), x >> 24};
}

TEST(DriftGen, IdsOfLargeSlotsAreRenewed) {
  const TestDirectory folder;
  DriftGenOptions options = options_for(folder.path("ids"), 25, 500);
  options.drift.churn = 0.125;
  const auto hours = generate(options);
  std::vector<std::set<std::string>> large(hours.size()), small(hours.size());
  for (size_t h = 0; h < hours.size(); ++h)
    for (const auto& fields : fields_of(hours[h].path, '\t'))
      for (size_t s = 0; s < 26; ++s) (s < 10 ? small : large)[h].insert(fields.at(14 + s));
  const auto common = [](const std::set<std::string>& a, const std::set<std::string>& b) {
    size_t n = 0;
    for (const std::string& token : a) n += b.count(token);
    return n;
  };
  EXPECT_GT(common(large[0], large[1]), 2 * common(large[0], large[8]));
  EXPECT_GT(common(large[0], large[8]), 0U);
  EXPECT_EQ(common(large[0], large[16]), 0U);  // two lives
  EXPECT_EQ(common(large[8], large[24]), 0U);
  EXPECT_GT(common(small[0], small[24]), small[0].size() / 2);
}

// Hidden numbers of the Criteo truth, as criteo_truth.h and truth_moment.h describe them.
double criteo_normal(uint64_t seed, double angle, uint64_t stream, uint64_t slot, uint64_t index) {
  const auto of = [&](uint64_t s) {
    return Random(hash_pair(hash_pair(hash_pair(s, stream), slot), index)).normal();
  };
  return std::cos(angle) * of(seed) + std::sin(angle) * of(TruthMoment::second_seed(seed));
}

double criteo_logit(uint64_t seed, double angle, const std::vector<std::string>& fields) {
  std::array<Place, 26> at;
  double logit = 0;  // but for a constant
  for (uint32_t s = 0; s < 26; ++s) {
    at[s] = place_of(fields.at(14 + s));
    EXPECT_EQ(at[s].slot, s);
    logit += 0.27 * criteo_normal(seed, angle, 1, s, (uint64_t{at[s].life} << 32) + at[s].place);
  }
  for (uint32_t d = 0; d < 13; ++d)
    logit += 0.13 * criteo_normal(seed, angle, 2, d, 0) * std::stod(fields.at(1 + d));
  const uint32_t pairs[6][2] = {{2, 5}, {3, 8}, {4, 9}, {6, 7}, {1, 9}, {5, 8}};
  for (const auto& [p, q] : pairs)
    for (uint32_t k = 0; k < 4; ++k)
      logit += 0.46 * criteo_normal(seed, angle, 3, p, at[p].place * 4 + k) * 0.46 *
               criteo_normal(seed, angle, 3, q, at[q].place * 4 + k);
  return logit;
}

TEST(DriftGen, TheBestAucOfAnHourIsThatOfTheTurnedTruth) {
  const TestDirectory folder;
  DriftGenOptions options = options_for(folder.path("auc"), 21, 1'000);
  options.drift.turn = 0.05;
  options.drift.churn = 0.1;
  const auto hours = generate(options);
  for (const uint32_t hour : {0U, 20U}) {
    std::array<std::vector<double>, 2> logits, stale;
    for (const auto& fields : fields_of(hours[hour].path, '\t')) {
      logits[fields[0] == "1"].push_back(criteo_logit(options.truth_seed, 0.05 * hour, fields));
      stale[fields[0] == "1"].push_back(criteo_logit(options.truth_seed, 0, fields));
    }
    // Weights are kept with 24 bits: a pair that all but ties may turn.
    EXPECT_NEAR(hours[hour].labels[0].best_auc, auc_by_pairs(logits), 1e-4);
    EXPECT_GT(hours[hour].labels[0].best_auc, 0.78);
    if (hour == 20) {
      EXPECT_LT(auc_by_pairs(stale), auc_by_pairs(logits) - 0.08);
    }
  }
}

// `fields` keeps its structure: pairs of hidden vectors, all turned.
TEST(DriftGen, TheBestAucOfFieldsIsThatOfTurnedVectors) {
  const TestDirectory folder;
  DriftGenOptions options = options_for(folder.path("fields"), 21, 1'000);
  options.kind = "fields";
  options.drift.turn = 0.05;
  options.drift.churn = 0.1;
  const DriftHour hour = generate(options).back();
  const auto hidden = [&](uint64_t purpose, uint64_t index) {
    const uint64_t seed = options.truth_seed;
    return std::cos(1.0) * hidden_normal(seed, purpose, index) +
           std::sin(1.0) * hidden_normal(TruthMoment::second_seed(seed), purpose, index);
  };
  std::array<std::vector<double>, 2> logits;
  std::set<uint64_t> lives;
  for (const auto& fields : fields_of(hour.path, ' ')) {
    double logit = 0, vectors[8][4];
    for (uint64_t s = 0; s < 8; ++s) {
      const uint64_t key = std::stoull(fields.at(1 + s).substr(3));
      lives.insert(key / 300);
      const uint64_t row = key / 300 * 2400 + s * 300 + key % 300;
      logit += 0.25 * hidden(1, row);
      for (uint64_t d = 0; d < 4; ++d) vectors[s][d] = 0.35 * hidden(2, row * 4 + d);
    }
    for (int i = 0; i < 8; ++i)
      for (int j = i + 1; j < 8; ++j)
        for (int d = 0; d < 4; ++d) logit += vectors[i][d] * vectors[j][d];
    logits[fields[0] == "1"].push_back(logit);
  }
  EXPECT_EQ(lives, (std::set<uint64_t>{2, 3}));
  EXPECT_NEAR(hour.labels[0].best_auc, auc_by_pairs(logits), 1e-9);
  EXPECT_GT(hour.labels[0].best_auc, 0.7);
}

TEST(DriftGen, MistakesAreNamedAndLeaveNothing) {
  const TestDirectory folder;
  DriftGenOptions options = options_for(folder.path("x"), 2, 10);
  options.kind = "sequences";
  EXPECT_NE(generate_drift(options, 1, {}, {}).message().find("did you mean 'sequence'?"),
            std::string::npos);
  options.kind = "";
  options.examples = 0;
  EXPECT_NE(generate_drift(options, 1, {}, {}).message().find("at least 1"), std::string::npos);
  options.examples = 1;
  options.folder = folder.path("file");
  ASSERT_TRUE(write_file_atomic(options.folder, "text").is_ok());
  EXPECT_EQ(generate_drift(options, 1, {}, {}).message(),
            "cannot write hours to " + options.folder + ": it is a file; name a folder");
}

TEST(DriftGen, TheJobReadsADayAsAPass) {
  DriftGenOptions options = options_for("data/drift", 6, 10);
  options.gzip = true;
  EXPECT_EQ(drift_yaml(options).value(),
            "data:\n  format: criteo_tsv\npasses:\n"
            "  - {name: day-20260101, train: data/drift/20260101/*.tsv.gz}\n"
            "  - {name: day-20260102, train: data/drift/20260102/*.tsv.gz}\n");
}

}  // namespace
}  // namespace flux
