// Runs tests/scripts/rebalance_*.txt (base/script_test.h); the decision against trying everything.
//
//   servers ID...                         that serve and may get shards
//   shard NUMBER PRIMARY BACKUP LOAD [fixed]
//   window [TIMES]                        passed with these loads; a move is carried out
//   ask                                   the same decision now
//   disturbed
#include "flux/cluster/rebalance.h"

#include <algorithm>
#include <sstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "flux/base/random.h"
#include "flux/base/script_test.h"

namespace flux {
namespace {

class Script {
 public:
  std::string run_line(const std::string& line) {
    std::istringstream in(line);
    std::string verb;
    in >> verb;
    if (verb == "servers") {
      cluster_.servers.clear();
      for (ServerId id = 0; in >> id;) cluster_.servers.push_back(id);
    } else if (verb == "shard") {
      set_shard(&in);
    } else if (verb == "window") {
      return windows(&in);
    } else if (verb == "ask") {
      return show(rebalancer_.ask());
    } else if (verb == "disturbed") {
      rebalancer_.disturbed();
    } else {
      ADD_FAILURE() << "unknown line: " << line;
    }
    return "";
  }

 private:
  void set_shard(std::istringstream* in) {
    ShardId shard = 0;
    LoadedShard place;
    std::string fixed;
    *in >> shard >> place.primary >> place.backup >> place.load;
    place.fixed = static_cast<bool>(*in >> fixed);
    if (shard >= cluster_.shards.size()) cluster_.shards.resize(shard + 1);
    cluster_.shards[shard] = place;
  }
  std::string windows(std::istringstream* in) {
    uint32_t times = 1;
    if (!(*in >> times)) times = 1;
    std::string out;
    for (; times > 0; --times) {
      const auto move = rebalancer_.window(cluster_);
      out += show(move);
      if (!move) continue;
      cluster_.shards[move->shard].primary = move->to;
      cluster_.shards[move->shard].backup = move->from;
      rebalancer_.moved(move->shard);
      rebalancer_.disturbed();
    }
    return out;
  }
  static std::string show(const std::optional<LoadMove>& move) {
    if (!move) return "> nothing\n";
    return fmt::format("> shard {} ({}) from {} ({}) to {} ({}), mean {}\n", move->shard,
                       move->load, move->from, move->from_load, move->to, move->to_load,
                       move->mean);
  }
  LoadedCluster cluster_;
  Rebalancer rebalancer_{RebalanceOptions{}};
};

FLUX_SCRIPT_TEST(RebalanceScript, "rebalance_", Script);

LoadedCluster draw_cluster(Random* random) {
  LoadedCluster cluster;
  const uint64_t servers = 1 + random->below(5);
  for (ServerId id = 0; id < servers; ++id) cluster.servers.push_back(id * 3);
  const uint64_t skew = random->below(4);
  for (uint64_t n = random->below(14); n > 0; --n) {
    LoadedShard shard;
    shard.primary = cluster.servers[random->below(servers)];
    shard.backup = cluster.servers[random->below(servers)];
    shard.load = random->below(1000);
    for (uint64_t i = 0; i < skew && random->chance(0.3); ++i) shard.load *= 8;
    shard.fixed = random->chance(0.1);
    cluster.shards.push_back(shard);
  }
  return cluster;
}

// What the header says, tried for every shard and every server.
std::vector<double> after(const LoadedCluster& cluster, size_t shard, ServerId to) {
  LoadedCluster moved = cluster;
  if (shard < moved.shards.size()) moved.shards[shard].primary = to;
  std::vector<double> loads;
  for (const ServerId id : cluster.servers) {
    double sum = 0;
    for (const LoadedShard& s : moved.shards) sum += s.primary == id ? double(s.load) : 0;
    loads.push_back(sum);
  }
  return loads;
}

double best_worth(const LoadedCluster& cluster, const RebalanceOptions& o, double hot) {
  const std::vector<double> before = after(cluster, ~size_t{0}, 0);
  double total = 0, best = 0;
  for (const double load : before) total += load;
  const double mean = std::floor(total / double(before.size()));
  if (before.size() < 2 || mean < double(o.least_mean) || hot <= mean * (1 + o.margin)) return 0;
  for (size_t s = 0; s < cluster.shards.size(); ++s)
    for (size_t to = 0; to < before.size(); ++to) {
      const LoadedShard& shard = cluster.shards[s];
      const auto at = std::find(cluster.servers.begin(), cluster.servers.end(), shard.primary);
      const size_t from = size_t(at - cluster.servers.begin());
      if (shard.fixed || shard.load == 0 || from == to || before[from] != hot) continue;
      const std::vector<double> loads = after(cluster, s, cluster.servers[to]);
      if (loads[to] > mean * (1 + o.margin)) continue;
      const double saves = hot - std::max(loads[from], loads[to]);
      if (saves < o.gain * mean) continue;
      best = std::max(best, cluster.servers[to] == shard.backup ? saves : saves * o.copy_worth);
    }
  return best;
}

TEST(Rebalance, FindsWhatTryingEverythingFinds) {
  Random random(7);
  uint64_t moves = 0, none = 0;
  for (int round = 0; round < 20'000; ++round) {
    const LoadedCluster cluster = draw_cluster(&random);
    const RebalanceOptions o;
    std::vector<double> loads = after(cluster, ~size_t{0}, 0);
    std::sort(loads.rbegin(), loads.rend());
    double best = 0, hot = 0;
    for (const double load : loads) {
      hot = load;
      if (best = best_worth(cluster, o, load); best > 0) break;
    }
    const auto move = find_move(cluster, o, [](ServerId) { return true; });
    ASSERT_EQ(move.has_value(), best > 0) << "round " << round;
    (move ? moves : none) += 1;
    if (!move) continue;
    // Of several servers with the same load any may give; what it gives is the best that it has.
    ASSERT_EQ(double(move->from_load), hot);
    const std::vector<double> then = after(cluster, move->shard, move->to);
    LoadedCluster done = cluster;
    done.shards[move->shard].primary = move->to;
    const auto sums = done.loads();
    const double saves = hot - double(std::max(sums.at(move->from), sums.at(move->to)));
    const bool to_backup = cluster.shards[move->shard].backup == move->to;
    ASSERT_EQ(cluster.shards[move->shard].primary, move->from);
    ASSERT_LE(to_backup ? saves : saves * o.copy_worth, best) << "round " << round;
    if (std::count(loads.begin(), loads.end(), hot) == 1) {
      ASSERT_EQ(to_backup ? saves : saves * o.copy_worth, best) << "round " << round;
    }
    ASSERT_LE(*std::max_element(then.begin(), then.end()), loads[0]);
  }
  EXPECT_GT(moves, 1000U);
  EXPECT_GT(none, 1000U);
}

// The same loads for ever: moves end soon, and none is undone.
TEST(Rebalance, ComesToRest) {
  Random random(8);
  for (int round = 0; round < 2000; ++round) {
    LoadedCluster cluster = draw_cluster(&random);
    std::vector<uint32_t> moves(cluster.shards.size());
    uint32_t all = 0;
    for (; all <= cluster.shards.size(); ++all) {
      const auto move = find_move(cluster, {}, [](ServerId) { return true; });
      if (!move) break;
      cluster.shards[move->shard].primary = move->to;
      cluster.shards[move->shard].backup = move->from;
      EXPECT_EQ(++moves[move->shard], 1U) << "round " << round;
    }
    EXPECT_LE(all, cluster.shards.size()) << "round " << round;
  }
}

// Loads that change from window to window by more than the margin move nothing: no server is the
// hot one for long.
TEST(Rebalance, DoesNotFollowNoise) {
  Rebalancer rebalancer(RebalanceOptions{});
  for (uint32_t window = 0; window < 100; ++window) {
    LoadedCluster cluster;
    cluster.servers = {0, 1};
    const uint64_t high = 60'000, low = 20'000;
    cluster.shards = {{0, 1, window % 2 == 0 ? high : low, false},
                      {0, 1, 5000, false},
                      {1, 0, window % 2 == 0 ? low : high, false},
                      {1, 0, 5000, false}};
    EXPECT_FALSE(rebalancer.window(cluster).has_value()) << "window " << window;
  }
}

}  // namespace
}  // namespace flux
