#include "flux/data/criteo_gen.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>
#include <zlib.h>

#include "flux/data/criteo_truth.h"
#include "flux/storage/atomic_file.h"

namespace flux {
namespace {

class CriteoGen : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = join_path(::testing::TempDir(), "criteo_gen_XXXXXX");
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { EXPECT_TRUE(remove_all(folder_).is_ok()); }

  std::string path(const std::string& name) const { return join_path(folder_, name); }
  CriteoGenReport generate(const CriteoGenOptions& options, const std::string& name,
                           unsigned threads = 2) {
    const auto made = generate_criteo(options, path(name), threads, {});
    EXPECT_TRUE(made.is_ok()) << made.status().message();
    return made.is_ok() ? made.value() : CriteoGenReport{};
  }
  std::string content(const std::string& name) const {
    auto bytes = read_whole_file(path(name), uint64_t{1} << 30);
    EXPECT_TRUE(bytes.is_ok()) << bytes.status().message();
    return bytes.is_ok() ? std::move(bytes).value() : std::string();
  }

  std::string folder_;
};

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == separator) {
      parts.emplace_back();
    } else {
      parts.back().push_back(c);
    }
  }
  return parts;
}

std::vector<std::string> lines_of(const std::string& text) {
  auto lines = split(text, '\n');
  EXPECT_EQ(lines.back(), "");  // the last line ends, too
  lines.pop_back();
  return lines;
}

TEST_F(CriteoGen, SameBytesAndReportForAnyThreads) {
  const CriteoGenOptions options{.examples = 64'321, .seed = 7};
  const CriteoGenReport one = generate(options, "1.tsv", 1);
  const std::string bytes = content("1.tsv");
  ASSERT_FALSE(bytes.empty());
  for (const unsigned threads : {0U, 2U, 5U}) {
    const CriteoGenReport report = generate(options, "n.tsv", threads);
    EXPECT_TRUE(content("n.tsv") == bytes) << threads << " threads";
    EXPECT_EQ(report.distinct_ids, one.distinct_ids);
    EXPECT_EQ(report.ctr, one.ctr);
    EXPECT_EQ(report.oracle_auc, one.oracle_auc);
  }
  EXPECT_EQ(list_folder(folder_), (std::vector<std::string>{"1.tsv", "n.tsv"}));
}

// A change here changes everybody's data: the numbers of past runs could not be repeated.
TEST_F(CriteoGen, BytesArePartOfTheContract) {
  generate({.examples = 1}, "one.tsv");
  EXPECT_EQ(content("one.tsv"),
            "0\t0.2571\t0.8724\t3.5510\t0.3056\t0.4023\t1.4119\t0.1323\t0.4392\t0.4575\t0.7627\t0."
            "4564\t1.4184\t0.9187\t"
            "e47ce2df\t9ac5fdb2\tef733931\t0e6f8c17\tdbb6ea87\t7e98ef8a\tfbf0b20c\t0e443c83\t"
            "5c395a8d\ta57b1345\t12d61713\t4f67a81e\t1a9f7c34\tde5f9eb9\t8900eea4\tf46f91fa\t"
            "21696cf2\te0adcbdc\t1fa21a9f\t951487c1\t401d35e2\t62a413d5\t775157b7\t61625d3b\t"
            "44e50ae4\t52d2d361\n");
}

TEST_F(CriteoGen, AShorterFileIsThePrefixOfALongerOne) {
  generate({.examples = 20'000}, "long.tsv");
  generate({.examples = 12'345}, "short.tsv");
  const std::string brief = content("short.tsv");
  EXPECT_TRUE(content("long.tsv").substr(0, brief.size()) == brief);
  EXPECT_EQ(lines_of(brief).size(), 12'345U);
}

TEST_F(CriteoGen, LinesHaveTheCriteoShape) {
  generate({.examples = 2'000}, "a.tsv");
  double sum = 0;
  for (const std::string& line : lines_of(content("a.tsv"))) {
    const auto fields = split(line, '\t');
    ASSERT_EQ(fields.size(), 40U) << line;
    EXPECT_TRUE(fields[0] == "0" || fields[0] == "1") << line;
    for (int i = 1; i <= 13; ++i) {
      const double value = std::stod(fields[i]);
      char printed[32];
      std::snprintf(printed, sizeof(printed), "%.4f", value);
      EXPECT_EQ(fields[i], printed);
      sum += value;
    }
    for (int i = 14; i < 40; ++i) {
      EXPECT_EQ(fields[i].size(), 8U);
      EXPECT_EQ(fields[i].find_first_not_of("0123456789abcdef"), std::string::npos) << line;
    }
  }
  EXPECT_NEAR(sum / (2'000 * 13), 1.0, 0.03);  // deviation of the mean: 0.0062
}

// Report and file tell the same: counted again from the text alone.
TEST_F(CriteoGen, ReportMatchesTheFile) {
  const CriteoGenReport report = generate({.examples = 30'000}, "a.tsv");
  std::set<std::string> tokens;
  uint64_t positives = 0;
  for (const std::string& line : lines_of(content("a.tsv"))) {
    const auto fields = split(line, '\t');
    positives += fields[0] == "1";
    tokens.insert(fields.begin() + 14, fields.end());
  }
  EXPECT_EQ(report.examples, 30'000U);
  EXPECT_EQ(report.distinct_ids, tokens.size());
  EXPECT_DOUBLE_EQ(report.ctr, static_cast<double>(positives) / 30'000);
}

TEST_F(CriteoGen, AnotherSeedIsOtherExamplesOfTheSameTruth) {
  const CriteoGenReport one = generate({.examples = 100'000, .seed = 1}, "1.tsv");
  const CriteoGenReport two = generate({.examples = 100'000, .seed = 2}, "2.tsv");
  const CriteoGenReport other =
      generate({.examples = 100'000, .seed = 1, .truth_seed = 3}, "3.tsv");
  EXPECT_FALSE(content("1.tsv") == content("2.tsv"));
  for (const CriteoGenReport& report : {one, two}) {
    EXPECT_GT(report.ctr, 0.24);
    EXPECT_LT(report.ctr, 0.31);
    EXPECT_GT(report.oracle_auc, 0.84);
    EXPECT_LT(report.oracle_auc, 0.86);
    EXPECT_GT(report.distinct_ids, 150'000U);
    EXPECT_LT(report.distinct_ids, 350'000U);
  }
  EXPECT_NEAR(one.ctr, two.ctr, 0.008);                // deviation of the difference: 0.002
  EXPECT_NEAR(one.oracle_auc, two.oracle_auc, 0.008);  // likewise
  // Another truth shows in the labels of the same ids, though the click rate is much the same.
  EXPECT_FALSE(content("1.tsv") == content("3.tsv"));
  EXPECT_NEAR(one.ctr, other.ctr, 0.03);
}

// The AUC against its definition: the share of (positive, negative) pairs in the right order, with
// logits computed from ids and values read back from the text.
TEST_F(CriteoGen, OracleAucMatchesPairsCountedFromTheText) {
  const CriteoGenOptions options{.examples = 1'500};
  const CriteoGenReport report = generate(options, "a.tsv");
  const CriteoTruth truth(options.truth_seed);
  std::array<std::map<std::string, uint32_t>, CriteoTruth::kSlots> id_of;
  for (uint32_t s = 0; s < CriteoTruth::kSlots; ++s)
    for (uint32_t id = 0; id < CriteoTruth::kCardinality[s]; ++id)
      id_of[s].emplace(fmt::format("{:08x}", CriteoTruth::token(s, id)), id);
  std::array<std::vector<double>, 2> logits;
  for (const std::string& line : lines_of(content("a.tsv"))) {
    const auto fields = split(line, '\t');
    std::array<double, CriteoTruth::kDense> dense{};
    CriteoTruth::Ids ids;
    for (uint32_t d = 0; d < dense.size(); ++d) dense[d] = std::stod(fields[1 + d]);
    for (uint32_t s = 0; s < ids.size(); ++s) {
      const auto found = id_of[s].find(fields[14 + s]);
      ASSERT_NE(found, id_of[s].end()) << "slot " << s << ": " << fields[14 + s];
      ids[s] = {found->second, 0};
    }
    logits[fields[0] == "1"].push_back(truth.logit(dense, ids));
  }
  double won = 0;
  for (const double positive : logits[1])
    for (const double negative : logits[0])
      won += positive > negative ? 1.0 : (positive == negative ? 0.5 : 0.0);
  const double pairs = static_cast<double>(logits[0].size() * logits[1].size());
  EXPECT_NEAR(report.oracle_auc, won / pairs, 1e-12);
}

TEST(CriteoTruth, TokensAreUniqueOverSlots) {
  std::vector<uint32_t> tokens;
  for (uint32_t s = 0; s < CriteoTruth::kSlots; ++s)
    for (uint32_t id = 0; id < CriteoTruth::kCardinality[s]; ++id)
      tokens.push_back(CriteoTruth::token(s, id));
  std::sort(tokens.begin(), tokens.end());
  EXPECT_EQ(std::adjacent_find(tokens.begin(), tokens.end()), tokens.end());
}

// Draws on an even grid meet each id in proportion to rank^-1.1.
TEST(CriteoTruth, IdsFollowZipf) {
  const CriteoTruth truth(1);
  for (const uint32_t slot : {0U, 9U, 10U}) {
    const uint32_t cardinality = CriteoTruth::kCardinality[slot];
    double sum = 0;
    for (uint32_t id = 0; id < cardinality; ++id) sum += std::pow(id + 1.0, -1.1);
    std::vector<uint32_t> counts(cardinality);
    constexpr uint32_t kStep = 1U << 10;
    for (uint64_t draw = 0; draw < uint64_t{1} << 32; draw += kStep)
      ++counts[truth.sample(slot, static_cast<uint32_t>(draw))];
    for (uint32_t id = 0; id < cardinality; ++id)
      ASSERT_NEAR(counts[id], std::pow(id + 1.0, -1.1) / sum * (0x1p32 / kStep), 1.01)
          << "slot " << slot << " id " << id;
    EXPECT_EQ(truth.sample(slot, 0), 0U);
    EXPECT_EQ(truth.sample(slot, UINT32_MAX), cardinality - 1);
  }
}

TEST_F(CriteoGen, GzipInflatesToThePlainBytes) {
  const CriteoGenOptions options{.examples = 25'000};
  generate(options, "a.tsv");
  generate(options, "a.tsv.gz", 1);
  generate(options, "b.tsv.gz", 3);
  EXPECT_TRUE(content("a.tsv.gz") == content("b.tsv.gz"));
  const std::string plain = content("a.tsv");
  EXPECT_LT(content("a.tsv.gz").size(), plain.size());

  gzFile file = gzopen(path("a.tsv.gz").c_str(), "rb");
  ASSERT_NE(file, nullptr);
  EXPECT_EQ(gzdirect(file), 0);
  std::string inflated(plain.size() + 100, '\0');
  inflated.resize(static_cast<size_t>(
      std::max(0, gzread(file, inflated.data(), static_cast<unsigned>(inflated.size())))));
  EXPECT_EQ(gzeof(file), 1);
  EXPECT_EQ(gzclose(file), Z_OK);  // checksum and length agree
  EXPECT_TRUE(inflated == plain);
}

TEST_F(CriteoGen, ProgressGrowsToTheEnd) {
  std::vector<uint64_t> seen;
  const auto made = generate_criteo({.examples = 43'210}, path("a.tsv"), 3,
                                    [&](uint64_t done) { seen.push_back(done); });
  ASSERT_TRUE(made.is_ok()) << made.status().message();
  EXPECT_EQ(seen, (std::vector<uint64_t>{10'000, 20'000, 30'000, 40'000, 43'210}));
}

TEST_F(CriteoGen, NothingToWriteIsRefused) {
  const auto made = generate_criteo({}, path("a.tsv"), 1, {});
  ASSERT_FALSE(made.is_ok());
  EXPECT_EQ(made.status().code(), Code::kInvalid);
  EXPECT_TRUE(list_folder(folder_).empty());
}

TEST_F(CriteoGen, UnwritablePathsAreNamedAndLeaveNothing) {
  const auto absent = generate_criteo({.examples = 10}, path("no/such/a.tsv"), 1, {});
  ASSERT_FALSE(absent.is_ok());
  EXPECT_NE(absent.status().message().find(path("no/such/a.tsv")), std::string::npos);
  EXPECT_NE(absent.status().message().find("No such file"), std::string::npos);

  const auto folder = generate_criteo({.examples = 10}, folder_, 1, {});
  ASSERT_FALSE(folder.is_ok());
  EXPECT_EQ(folder.status().code(), Code::kInvalid);
  EXPECT_NE(folder.status().message().find("folder"), std::string::npos);
  EXPECT_TRUE(list_folder(folder_).empty());
  EXPECT_FALSE(path_exists(folder_ + ".tmp"));
}

// The temporary file leads to a device that is always full: every write fails, on every thread.
TEST_F(CriteoGen, AFullDiskEndsAllThreadsAndKeepsTheOldFile) {
  ASSERT_TRUE(write_file_atomic(path("a.tsv"), "old").is_ok());
  ASSERT_EQ(::symlink("/dev/full", path("a.tsv.tmp").c_str()), 0);
  const auto made = generate_criteo({.examples = 100'000}, path("a.tsv"), 4, {});
  ASSERT_FALSE(made.is_ok());
  EXPECT_EQ(made.status().code(), Code::kIo);
  EXPECT_NE(made.status().message().find(path("a.tsv")), std::string::npos);
  EXPECT_NE(made.status().message().find("No space"), std::string::npos);
  EXPECT_EQ(list_folder(folder_), (std::vector<std::string>{"a.tsv"}));
  EXPECT_EQ(content("a.tsv"), "old");
}

}  // namespace
}  // namespace flux
