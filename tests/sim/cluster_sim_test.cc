// The whole cluster under faults, from seeds: clean runs stay clean, planted bugs are found.
#include "flux/testing/cluster_sim.h"

#include <atomic>
#include <cstdio>
#include <fstream>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "flux/base/script_test.h"

namespace flux {
namespace {

constexpr uint64_t kSeeds = 1000;
constexpr unsigned kThreads = 2;

// Calls run(seed) for 1..seeds on a few threads until one returns false.
void for_seeds(uint64_t seeds, const std::function<bool(uint64_t seed)>& run) {
  std::atomic<uint64_t> next{1};
  std::atomic<bool> stop{false};
  const auto work = [&] {
    while (!stop) {  // whoever has taken a seed runs it: none below the last is left out
      const uint64_t seed = next++;
      if (seed > seeds) return;
      if (!run(seed)) stop = true;
    }
  };
  std::vector<std::thread> threads;
  for (unsigned t = 1; t < kThreads; ++t) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
}

TEST(ClusterSim, EveryExampleIsAppliedOncePerEpochOnEveryShard) {
  std::mutex mutex;
  ClusterSimResult sum;
  std::map<std::string, uint64_t> modes;
  for_seeds(kSeeds, [&](uint64_t seed) {
    const ClusterSimResult result = run_cluster_sim(seed);
    const std::lock_guard lock(mutex);
    EXPECT_TRUE(result.ok) << "seed " << seed << ": " << result.failure << "\n" << result.plan;
    sum.crashes += result.crashes;
    sum.lives += result.lives;
    sum.checkpoints += result.checkpoints;
    sum.duplicates += result.duplicates;
    sum.refused += result.refused;
    sum.jumps += result.jumps;
    sum.rebalanced += result.rebalanced;
    sum.poisoned += result.poisoned;
    sum.skipped += result.skipped;
    sum.unread += result.unread;
    sum.misread += result.misread;
    sum.rumours += result.rumours;
    sum.condemned += result.condemned;
    ++modes[result.mode];
    return result.ok;
  });
  // The faults must have happened, else the runs above prove nothing.
  EXPECT_GT(sum.crashes, kSeeds);
  EXPECT_GT(sum.lives, kSeeds + kSeeds / 4);
  EXPECT_GT(sum.checkpoints, kSeeds);
  EXPECT_GT(sum.duplicates, kSeeds);
  EXPECT_GT(sum.refused, kSeeds);
  EXPECT_GT(sum.jumps, kSeeds / 4);
  EXPECT_GT(sum.rebalanced, kSeeds / 20);
  EXPECT_GT(sum.poisoned, kSeeds / 4);
  EXPECT_GT(sum.skipped, kSeeds / 4);
  EXPECT_GT(sum.unread, kSeeds / 20);
  EXPECT_GT(sum.misread, kSeeds / 20);
  EXPECT_GT(sum.rumours, kSeeds / 4);
  EXPECT_GT(sum.condemned, kSeeds / 20);
  EXPECT_EQ(modes.size(), 2U);
  std::printf(
      "%lu crashes, %lu of them by poison, %lu lives, %lu clock jumps, %lu checkpoints, %lu "
      "duplicates, %lu batches set aside, %lu rumours about servers, %lu "
      "of them taken for dead by the word of others\n",
      sum.crashes, sum.poisoned, sum.lives, sum.jumps, sum.checkpoints, sum.duplicates, sum.skipped,
      sum.rumours, sum.condemned);
}

TEST(ClusterSim, ASeedReplaysExactly) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const ClusterSimResult a = run_cluster_sim(seed);
    const ClusterSimResult b = run_cluster_sim(seed);
    EXPECT_EQ(a.trace_hash, b.trace_hash) << "seed " << seed;
    EXPECT_EQ(a.steps, b.steps);
    EXPECT_EQ(a.simulated_s, b.simulated_s);
  }
}

class PlantedInCluster : public testing::TestWithParam<uint32_t> {};

struct Listed {
  std::string seed, words;  // "": the bug is not listed
};

// The first seed that finds a bug and what that run says, by planted_bugs.tsv.
Listed find_listed(ClusterBug bug) {
  std::ifstream table(FLUX_SOURCE_DIR "/tests/sim/planted_bugs.tsv");
  for (std::string line; std::getline(table, line);) {
    const size_t first = line.find('\t'), second = line.find('\t', first + 1);
    if (second != std::string::npos && line.substr(0, first) == cluster_bug_name(bug))
      return {line.substr(first + 1, second - first - 1), line.substr(second + 1)};
  }
  return {};
}

// Writes the first seed of a bug into the table.
void rewrite_seed(ClusterBug bug, uint64_t seed, const std::string& words) {
  const std::string path = FLUX_SOURCE_DIR "/tests/sim/planted_bugs.tsv";
  std::ifstream table(path);
  std::string text;
  for (std::string line; std::getline(table, line);) {
    const bool is_it = line.substr(0, line.find('\t')) == cluster_bug_name(bug);
    text += is_it ? cluster_bug_name(bug) + ("\t" + std::to_string(seed)) + "\t" + words : line;
    text += "\n";
  }
  std::ofstream(path) << text;
}

TEST_P(PlantedInCluster, IsFoundWithinAThousandSeeds) {
  const auto bug = static_cast<ClusterBug>(GetParam());
  const auto [listed_seed, words] = find_listed(bug);
  ASSERT_FALSE(words.empty()) << cluster_bug_name(bug) << " is not in planted_bugs.tsv";
  std::mutex mutex;
  uint64_t found = 0;
  std::string failure, others;
  for_seeds(kSeeds, [&, &words = words](uint64_t seed) {
    const ClusterSimResult result = run_cluster_sim(seed, bug);
    if (result.ok) return true;
    const std::lock_guard lock(mutex);
    const bool fits = result.failure.find(words) != std::string::npos;
    if (!fits) others = result.failure;  // what it does may show in other ways first
    if (fits && (found == 0 || seed < found)) {
      found = seed;
      failure = result.failure;
    }
    return !fits;
  });
  ASSERT_GT(found, 0U) << cluster_bug_name(bug) << " was not found as '" << words << "' in "
                       << kSeeds << " seeds; others say: " << others;
  // A change of the simulator or of production moves it; that is seen here and written down.
  EXPECT_EQ(listed_seed, std::to_string(found))
      << "the line of planted_bugs.tsv is now (--rewrite writes it)\n"
      << cluster_bug_name(bug) << "\t" << found << "\t" << words;
  if (rewrites_scripts() && listed_seed != std::to_string(found)) rewrite_seed(bug, found, words);
  std::printf("%s: found by seed %lu: %s\n", cluster_bug_name(bug), found, failure.c_str());
}

INSTANTIATE_TEST_SUITE_P(Bugs, PlantedInCluster, testing::Range(1U, kClusterBugs),
                         [](const testing::TestParamInfo<uint32_t>& info) {
                           std::string name = cluster_bug_name(static_cast<ClusterBug>(info.param));
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace flux
