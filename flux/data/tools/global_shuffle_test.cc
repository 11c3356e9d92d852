#include "flux/data/tools/global_shuffle.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <numeric>

#include <gtest/gtest.h>

#include "flux/data/test_files.h"

namespace flux {
namespace {

DataOptions options_of() {
  DataOptions options;
  options.format = "feasign";
  options.slots = {{"item", "", false, false}};
  options.dense = {"price"};
  options.raw_keys = true;
  return options;
}

constexpr uint64_t kLongFrom = 110'000;

uint64_t keys_of(uint64_t record) {
  return record < kLongFrom ? 1 + record % 3 : 50;
}

// Record i has keys_of(i) keys, of which the first is i.
std::string lines(uint64_t n) {
  std::string text;
  for (uint64_t i = 0; i < n; ++i) {
    text += fmt::format("{} price:{}.5 item:{}", i % 2, i, i);
    for (uint64_t k = 1; k < keys_of(i); ++k) text += fmt::format(" item:{}", 1'000'000 + k);
    text += '\n';
  }
  return text;
}

struct Shuffled {
  Status status;
  std::vector<uint64_t> firsts;  // keys that say which record it is
};

// Reads what was written and checks that each record is whole.
Shuffled shuffle(const TestDirectory& folder, const std::string& path, uint64_t seed,
                 uint64_t memory, unsigned threads) {
  const auto data = WholeData::open({path}, options_of(), threads);
  EXPECT_TRUE(data.is_ok()) << data.status().message();
  const std::string out = folder.path("out.blocks");
  Shuffled result{shuffle_to_blocks(data.value(), out, {seed, memory}, nullptr), {}};
  EXPECT_FALSE(std::filesystem::exists(out + ".buckets"));
  if (!result.status.is_ok()) return result;
  const auto back = WholeData::open({out}, block_file_options(options_of()), 1);
  EXPECT_TRUE(back.is_ok()) << back.status().message();
  EXPECT_TRUE(back.value()
                  .read([&](const Batch& batch) {
                    for (uint32_t i = 0; i < batch.size; ++i) {
                      const uint64_t id = batch.keys[batch.begin[i]];
                      EXPECT_EQ(batch.begin[i + 1] - batch.begin[i], keys_of(id));
                      EXPECT_EQ(batch.labels[i], static_cast<float>(id % 2));
                      EXPECT_EQ(batch.dense_values[i], static_cast<float>(id) + 0.5F);
                      result.firsts.push_back(id);
                    }
                    return Status::ok();
                  })
                  .is_ok());
  return result;
}

TEST(GlobalShuffle, EveryRecordOnceInAnOrderOfTheSeed) {
  const TestDirectory folder;
  const std::string path = folder.write("a.txt", lines(5000));
  for (const uint64_t memory : {1ULL << 30, 60'000ULL, 100ULL}) {  // in memory; by buckets
    const Shuffled one = shuffle(folder, path, 1, memory, 1);
    ASSERT_TRUE(one.status.is_ok()) << one.status.message();
    EXPECT_EQ(shuffle(folder, path, 1, memory, 3).firsts, one.firsts) << "threads";
    EXPECT_NE(shuffle(folder, path, 2, memory, 1).firsts, one.firsts) << "seed";
    // Far from where they were: records are about a third of the length away.
    double away = 0;
    for (size_t i = 0; i < one.firsts.size(); ++i)
      away += std::abs(static_cast<double>(one.firsts[i]) - static_cast<double>(i));
    EXPECT_NEAR(away / 5000 / 5000, 1.0 / 3, 0.02);
    std::vector<uint64_t> sorted = one.firsts;
    std::sort(sorted.begin(), sorted.end());
    std::vector<uint64_t> all(5000);
    std::iota(all.begin(), all.end(), 0);
    EXPECT_EQ(sorted, all);
  }
}

// All 24 orders of four records are equally likely, in memory and by buckets.
TEST(GlobalShuffle, EveryOrderIsEquallyLikely) {
  const TestDirectory folder;
  const std::string path = folder.write("a.txt", lines(4));
  for (const uint64_t memory : {1ULL << 30, 100ULL}) {
    std::map<std::vector<uint64_t>, int> seen;
    constexpr int kDraws = 240;
    for (int seed = 0; seed < kDraws; ++seed)
      ++seen[shuffle(folder, path, static_cast<uint64_t>(seed), memory, 1).firsts];
    EXPECT_EQ(seen.size(), 24U);
    double chi = 0;
    for (const auto& [order, count] : seen) chi += (count - 10.0) * (count - 10.0) / 10.0;
    EXPECT_LT(chi, 49.7) << "23 degrees of freedom, 0.1 %";
  }
}

// How many buckets there are is told from the first 100,000 records: here one, or too few.
TEST(GlobalShuffle, LongRecordsBehindShortOnes) {
  const TestDirectory folder;
  const std::string path = folder.write("a.txt", lines(kLongFrom + 10'000));
  for (const uint64_t memory : {8ULL << 20, 1ULL << 20}) {
    Shuffled shuffled = shuffle(folder, path, 1, memory, 2);
    ASSERT_TRUE(shuffled.status.is_ok()) << shuffled.status.message();
    uint64_t behind = 0;  // of the long ones, in the second half
    for (size_t i = shuffled.firsts.size() / 2; i < shuffled.firsts.size(); ++i)
      behind += shuffled.firsts[i] >= kLongFrom ? 1 : 0;
    EXPECT_NEAR(static_cast<double>(behind), 5000, 300);
    std::sort(shuffled.firsts.begin(), shuffled.firsts.end());
    std::vector<uint64_t> all(kLongFrom + 10'000);
    std::iota(all.begin(), all.end(), 0);
    EXPECT_EQ(shuffled.firsts, all);
  }
}

}  // namespace
}  // namespace flux
