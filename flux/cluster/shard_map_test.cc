// Runs tests/scripts/map_*.txt (base/script_test.h); balance, and what moves when servers change.
//
//   map SHARDS TERM
//   place NAME NAME ...        servers by index; "-": not there
#include "flux/cluster/shard_map.h"

#include <cmath>
#include <optional>
#include <set>
#include <sstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "flux/base/random.h"
#include "flux/base/script_test.h"
#include "flux/base/text.h"

namespace flux {
namespace {

class Script {
 public:
  std::string run_line(const std::string& line) {
    std::istringstream in(line);
    std::string verb;
    in >> verb;
    uint32_t shards = 0;
    uint64_t term = 0;
    if (verb == "map" && in >> shards >> term) {
      map_.emplace(shards, term);
      return "";
    }
    if (verb != "place") ADD_FAILURE() << "unknown line: " << line;
    std::vector<std::string> servers;
    for (std::string name; in >> name;) servers.push_back(name == "-" ? "" : name);
    std::vector<std::string> moved;
    for (const ShardId shard : map_->place(servers)) moved.push_back(std::to_string(shard));
    std::string out = fmt::format("> moved {} of {}: {}\n> ", moved.size(), map_->route().size(),
                                  moved.empty() ? "nothing" : join(moved, " "));
    for (ShardId shard = 0; shard < map_->route().size(); ++shard) {
      const ShardEpoch epoch = map_->route().epoch[shard];
      out += fmt::format("{}@{}.{} ", servers[map_->route().server[shard]], epoch.term, epoch.n);
    }
    out += fmt::format("version {}\n", map_->version());
    return out;
  }

 private:
  std::optional<ShardMap> map_;
};

FLUX_SCRIPT_TEST(ShardMapScript, "map_", Script);

// The share of each of S servers is a binomial draw: mean n/S. Five deviations hold for all of
// the names below; a hash that is not uniform misses them soon.
TEST(ShardMap, SharesAreBalanced) {
  for (const uint32_t shards : {256U, 4096U}) {
    for (uint32_t servers = 1; servers <= 40; ++servers) {
      std::vector<std::string> names;
      for (uint32_t s = 0; s < servers; ++s) names.push_back("server-" + std::to_string(s));
      ShardMap map(shards, 1);
      map.place(names);
      const double share = 1.0 / servers;
      const double deviation = std::sqrt(shards * share * (1 - share));
      size_t sum = 0;
      for (uint32_t s = 0; s < servers; ++s) {
        const auto owned = static_cast<double>(map.owned_by(s).size());
        EXPECT_NEAR(owned, shards * share, 5 * deviation) << s << " of " << servers;
        sum += map.owned_by(s).size();
      }
      EXPECT_EQ(sum, shards) << "every shard has one owner";
    }
  }
}

// Over many sets of names the squared deviations are as large as chance makes them: mean 1.
TEST(ShardMap, SharesDeviateAsMuchAsChance) {
  Random random(4);
  double sum = 0;
  int count = 0;
  for (int i = 0; i < 400; ++i) {
    std::vector<std::string> names(2 + random.below(6));
    for (std::string& name : names) name = "h" + std::to_string(random.below(1000000));
    ShardMap map(256, 1);
    map.place(names);
    const double share = 1.0 / static_cast<double>(names.size());
    for (ServerId s = 0; s < names.size(); ++s, ++count) {
      const double off = static_cast<double>(map.owned_by(s).size()) - 256 * share;
      sum += off * off / (256 * share * (1 - share));
    }
  }
  EXPECT_NEAR(sum / count, 1.0, 0.15);
}

// Servers come and go at random: only shards of those that went, or that go to those that came,
// move; where a shard is depends on who is there, not on how it came to be.
TEST(ShardMap, OnlyTheShareOfWhoCameOrWentMoves) {
  Random random(9);
  constexpr uint32_t kShards = 300, kServers = 12;
  ShardMap map(kShards, 7);
  std::vector<std::string> servers(kServers);
  std::set<ShardEpoch> epochs;
  std::map<std::vector<std::string>, std::vector<ServerId>> placed;
  for (int step = 0; step < 400; ++step) {
    const std::vector<std::string> before = servers;
    const ShardRoute old = map.route();
    const uint64_t version = map.version();
    for (uint64_t n = random.below(3); n > 0; --n) {
      const uint64_t s = random.below(kServers);
      servers[s] = servers[s].empty() ? "host" + std::to_string(s) : "";
    }
    if (std::count(servers.begin(), servers.end(), "") == kServers) servers[0] = "host0";
    const auto moved = map.place(servers);
    const std::set<ShardId> moved_set(moved.begin(), moved.end());
    ASSERT_EQ(map.version(), version + (moved.empty() ? 0 : 1));
    for (ShardId shard = 0; shard < kShards; ++shard) {
      const ServerId now = map.route().server[shard];
      ASSERT_FALSE(servers[now].empty());
      if (old.size() == 0) continue;
      const ServerId was = old.server[shard];
      ASSERT_EQ(moved_set.contains(shard), was != now);
      if (was == now) {
        ASSERT_EQ(map.route().epoch[shard], old.epoch[shard]);
      } else {
        ASSERT_TRUE(servers[was].empty() || before[now].empty()) << "a third party moved";
        ASSERT_GT(map.route().epoch[shard], old.epoch[shard]);
      }
    }
    if (!moved.empty()) {
      const ShardEpoch epoch = map.route().epoch[moved[0]];
      ASSERT_TRUE(epochs.insert(epoch).second) << "an epoch was used twice";
      for (const ShardId shard : moved) ASSERT_EQ(map.route().epoch[shard], epoch);
    }
    const auto [at, is_new] = placed.try_emplace(servers, map.route().server);
    ASSERT_EQ(at->second, map.route().server);
  }
  EXPECT_GT(epochs.size(), 200U);
}

TEST(ShardMap, NoServerIsABug) {
  ShardMap map(4, 1);
  EXPECT_EQ(map.version(), 0U);
  EXPECT_EQ(map.owned_by(0).size(), 0U);
  EXPECT_DEATH(map.place({"", ""}), "no server");
}

}  // namespace
}  // namespace flux
