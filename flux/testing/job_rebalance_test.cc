// A coordinator whose servers report loads that the test makes up: which shard it moves, when, and
// what becomes of that when it is started anew. Real servers, real moves.
#include <numeric>

#include "flux/testing/job_master_fixture.h"

namespace flux {
namespace {

class JobRebalance : public JobMasterTest {
 protected:
  JobRebalance() {
    plan_.replicas = 2;
    options_.workers_deadline_ns = 1000 * kSecond;  // nobody trains while time passes
    fill_report_ = [this](const TestServer& server, ServerReport* report) {
      report->tells_work = true;
      std::map<ShardId, uint64_t>& totals = totals_[server.boot];
      const auto tenths = static_cast<uint64_t>((clock_.now_ns() - started_) / (kSecond / 10));
      const std::vector<ServerId> homes = route();
      for (ShardId s = 0; s < homes.size(); ++s)
        if (homes[s] == server.id && tenths > told_[s]) {
          totals[s] += rates_[s] * (tenths - told_[s]) / 10;
          told_[s] = tenths;
        }
      for (const auto& [shard, keys] : totals)
        if (keys > 0) report->work.push_back({shard, keys});
    };
  }
  // The servers of the shards; the one with most of them is to be hot.
  void begin_training() {
    begin();
    worker_ = join("w");
    pass_time(kSecond);
    ASSERT_EQ(master_->status().state, "training") << said_;
    const std::vector<ServerId> homes = route();
    const auto first = std::count(homes.begin(), homes.end(), homes[0]);
    hot_ = first >= kTestShards / 2 ? homes[0] : 1 - homes[0];
    ASSERT_GE(std::count(homes.begin(), homes.end(), hot_), 2);
    for (ShardId s = 0; s < kTestShards; ++s) rates_[s] = homes[s] == hot_ ? 10'000 : 500;
  }
  std::vector<ServerId> route() const {
    std::vector<ServerId> homes;
    master_->map([&](const Result<ClusterMap>& map) {
      for (ShardId s = 0; s < map.value().route.size(); ++s)
        homes.push_back(map.value().route.server[s]);
    });
    return homes;
  }
  std::string name_of(ServerId id) const { return fmt::format("server-{}", id); }
  long on_hot() const {
    const std::vector<ServerId> homes = route();
    return std::count(homes.begin(), homes.end(), hot_);
  }

  std::map<ShardId, uint64_t> rates_, told_;
  std::map<uint64_t, std::map<ShardId, uint64_t>> totals_;  // by boot of the server
  TimeNs started_ = 0;
  WorkerId worker_ = 0;
  ServerId hot_ = 0;
};

TEST_F(JobRebalance, AHotServerGivesAShardAwayAndItStaysAway) {
  begin_training();
  const long before = on_hot();
  pass_time(5 * kSecond);
  EXPECT_EQ(master_->status().rebalanced, 0U) << "not before it has lasted";
  EXPECT_EQ(on_hot(), before);
  pass_time(10 * kSecond);
  EXPECT_EQ(master_->status().rebalanced, 1U) << said_;
  EXPECT_EQ(on_hot(), before - 1);
  EXPECT_EQ(master_->status().shards_without_backup, 0U);
  EXPECT_NE(said_.find(fmt::format("moves from {} to {} for its load: ", name_of(hot_),
                                   name_of(1 - hot_))),
            std::string::npos)
      << said_;
  // The same loads for a minute: nothing is undone.
  pass_time(60 * kSecond);
  const std::vector<ServerId> homes = route();
  EXPECT_LE(master_->status().rebalanced, 2U) << said_;
  const JobStatus status = master_->status();
  ASSERT_FALSE(status.hottest_shards.empty());
  EXPECT_NEAR(static_cast<double>(status.hottest_shards[0].keys_per_s), 10'000, 600);
  for (const ServerStatus& server : status.servers) {
    double expected = 0;
    for (ShardId s = 0; s < kTestShards; ++s)
      if (homes[s] == server.id) expected += static_cast<double>(rates_.at(s));
    EXPECT_NEAR(static_cast<double>(server.keys_per_s), expected, 0.1 * expected) << server.name;
  }
  // Nor by a coordinator that is started anew.
  start_master();
  join_all();
  pass_time(2 * kSecond);
  EXPECT_EQ(route(), homes) << said_;
  EXPECT_EQ(master_->status().epoch_changes, 0U);
  train_all(join("w", 2));
  ASSERT_TRUE(ended_well()) << said_;
  EXPECT_EQ(outcome_->totals.occurrences[0], 2ULL * blocks_ * kTestKeys);
}

TEST_F(JobRebalance, SwitchedOffItWaitsForTheCommand) {
  plan_.rebalance = false;
  begin_training();
  const long before = on_hot();
  EXPECT_EQ(master_->rebalance(true).status().code(), Code::kUnavailable) << "nothing is known yet";
  pass_time(30 * kSecond);
  EXPECT_EQ(on_hot(), before);
  EXPECT_EQ(master_->status().rebalanced, 0U);
  const auto would = master_->rebalance(true);
  ASSERT_TRUE(would.is_ok()) << would.status().message();
  EXPECT_NE(would.value().find("would move from " + name_of(hot_)), std::string::npos)
      << would.value();
  pass_time(kSecond);
  EXPECT_EQ(on_hot(), before) << "only said";
  ASSERT_TRUE(master_->rebalance(false).is_ok());
  EXPECT_EQ(master_->rebalance(false).status().code(), Code::kUnavailable) << "one at a time";
  pass_time(2 * kSecond);
  EXPECT_EQ(on_hot(), before - 1);
}

TEST_F(JobRebalance, WhatOperatorsPutSomewhereStays) {
  begin_training();
  const std::vector<ServerId> homes = route();
  for (ShardId s = 0; s < kTestShards; ++s)
    ASSERT_TRUE(master_->move(s, name_of(homes[s])).is_ok());
  pass_time(30 * kSecond);
  EXPECT_EQ(route(), homes);
  const auto said = master_->rebalance(false);
  ASSERT_TRUE(said.is_ok());
  EXPECT_NE(said.value().find("nothing to move: " + name_of(hot_) + " has the most"),
            std::string::npos)
      << said.value();
  // Also for the next coordinator.
  start_master();
  join_all();
  join("w", 2);
  pass_time(30 * kSecond);
  EXPECT_EQ(route(), homes);
  EXPECT_EQ(master_->status().rebalanced, 0U);
}

TEST_F(JobRebalance, NothingMovesForLoadWhileAServerDrainsOrAShardHasNoBackup) {
  options_.servers = 3;
  begin_training();
  ASSERT_TRUE(master_->drain("server-2").is_ok());
  TestServer* drained = servers_.find("server-2");
  pass_time(10 * kSecond);
  ASSERT_TRUE(drained->may_go) << said_;
  pass_time(30 * kSecond);  // it stays all the same
  EXPECT_EQ(master_->status().rebalanced, 0U);
  EXPECT_EQ(master_->rebalance(false).status().code(), Code::kUnavailable);
  kill("server-2");
  kill("server-1");  // no server for backups is left
  pass_time(30 * kSecond);
  EXPECT_EQ(master_->status().rebalanced, 0U);
  EXPECT_EQ(master_->status().shards_without_backup, kTestShards);
}

}  // namespace
}  // namespace flux
