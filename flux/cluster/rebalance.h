// Rebalancer: which shard moves where because its server has too much to do.
//
// The load of a server is the sum of the keys per second of the shards that it serves (what it does
// as a backup is not counted: it follows from the same pushes). A server is hot while its load
// exceeds the mean by the margin. One that was hot in each of the last windows gives one shard
// away: the one that brings its own load and that of the target furthest down together. The target
// stays within the margin, so a move never makes another server hot and is never undone for the
// same loads; a shard too large for that stays, and others go away from it. A move that saves
// little is not made, one to the shard's backup (no copy) is preferred, and a shard that was moved
// rests.
//
// Nothing is decided over a window in which anything moved, was repaired or drained: disturbed().
// Pure: places and loads in, one move out, at most one in each window. Not thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "flux/base/executor.h"
#include "flux/protocol/shard_replica.h"

namespace flux {

struct RebalanceOptions {
  TimeNs window_ns = 3 * kSecond;
  uint32_t windows = 3;        // in which a server has to be hot, one after the other
  double margin = 0.25;        // above the mean
  double gain = 0.05;          // of the mean: what a move has to save
  double copy_worth = 0.8;     // of what a move saves if the target has no replica yet
  uint64_t least_mean = 1000;  // keys per second of a server; below that there is nothing to gain
  uint32_t rest_windows = 40;  // of a shard that was moved
};

struct LoadedShard {
  ServerId primary = kNoServer, backup = kNoServer;
  uint64_t load = 0;   // keys per second
  bool fixed = false;  // an operator wants it where it is
};

struct LoadedCluster {
  std::vector<ServerId> servers;  // that serve and may get shards
  std::vector<LoadedShard> shards;
  std::map<ServerId, uint64_t> loads() const;  // of each of the servers
  uint64_t mean() const;                       // of a server; 0: there is none
};

struct LoadMove {
  ShardId shard = 0;
  ServerId from = kNoServer, to = kNoServer;
  uint64_t load = 0;                    // of the shard
  uint64_t from_load = 0, to_load = 0;  // before
  uint64_t mean = 0;
  bool operator==(const LoadMove&) const = default;
};

// The best single move of a shard away from a hot server that may give, hottest first.
std::optional<LoadMove> find_move(const LoadedCluster& cluster, const RebalanceOptions& options,
                                  const std::function<bool(ServerId)>& may_give);

class Rebalancer {
 public:
  explicit Rebalancer(RebalanceOptions options) : options_(options) {}
  // What was seen counts no more.
  void disturbed();
  // A window has passed undisturbed, in which `cluster` had these loads.
  std::optional<LoadMove> window(const LoadedCluster& cluster);
  // The same decision now, over the undisturbed windows at hand, however few; none: windows() is 0
  // or there is nothing to gain.
  std::optional<LoadMove> ask() const;
  // This shard is moved for its load.
  void moved(ShardId shard) { resting_[shard] = options_.rest_windows; }
  size_t windows() const { return seen_.size(); }
  // The mean over the undisturbed windows at hand.
  LoadedCluster seen() const;
  const RebalanceOptions& options() const { return options_; }

 private:
  const RebalanceOptions options_;
  std::deque<LoadedCluster> seen_;       // the last `windows`
  std::map<ServerId, uint32_t> hot_;     // windows in which it was, one after the other
  std::map<ShardId, uint32_t> resting_;  // windows left
};

}  // namespace flux
