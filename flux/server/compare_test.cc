// Rows of backups are compared with their primary's after a pass and after whole saves.
#include <filesystem>

#include <gtest/gtest.h>

#include "flux/checkpoint/store.h"
#include "flux/server/test_replicas.h"

namespace flux {
namespace {

const std::vector<ShardId> kAll = TestCluster::every_shard();

void close_pass(TestCluster* cluster, Server* primary) {
  bool closed = false;
  primary->close_below(primary->primaries(), 1, [&](const Status& s) { closed = s.is_ok(); });
  ASSERT_TRUE(cluster->clock.run_until([&] { return closed; }));
}

TEST(Compare, EveryBackupIsComparedAfterAPass) {
  TestCluster cluster;
  cluster.faults.delay_max = kMillisecond;
  cluster.add_pair();
  Server* primary = cluster.servers[0].get();
  Server* backup = cluster.servers[1].get();
  for (uint32_t i = 0; i < 5; ++i) {
    Pushed push(i, i, *primary);
    push.send(primary);
    ASSERT_TRUE(cluster.clock.run_until([&] { return push.replicated(); }));
  }
  cluster.clock.run_for(3 * kSecond);
  EXPECT_EQ(backup->compared(), 0U) << "nobody has asked for it";
  close_pass(&cluster, primary);
  cluster.clock.run_for(3 * kSecond);
  EXPECT_EQ(backup->compared(), kAll.size());
  EXPECT_EQ(backup->diverged() + primary->compared(), 0U);
  EXPECT_TRUE(cluster.said.empty());
  EXPECT_EQ(primary->forwards_open(), 0U);
}

TEST(Compare, WhatIsSavedWholeIsComparedToo) {
  TestCluster cluster;
  cluster.add_pair();
  Server* primary = cluster.servers[0].get();
  Server* backup = cluster.servers[1].get();
  std::string folder = (std::filesystem::temp_directory_path() / "flux_compare_XXXXXX").string();
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const CheckpointStore store(folder);
  const uint64_t first = store.begin().value();
  ASSERT_TRUE(primary->save(primary->primaries(), folder, first, 0).is_ok());
  cluster.clock.run_for(3 * kSecond);
  EXPECT_EQ(backup->compared(), kAll.size());
  const uint64_t second = store.begin().value();
  const auto saved = primary->save(primary->primaries(), folder, second, first);
  ASSERT_TRUE(saved.is_ok());
  uint64_t whole = 0;
  for (const SavedShard& one : saved.value()) whole += one.incremental ? 0 : 1;
  cluster.clock.run_for(3 * kSecond);
  EXPECT_EQ(backup->compared(), kAll.size() + whole);
  std::filesystem::remove_all(folder);
}

// The same operations, other rows: the stream hashes agree, the rows do not.
TEST(Compare, RowsThatDifferAreFoundAndDropped) {
  TestCluster cluster;
  cluster.faults.delay_max = kMillisecond;
  ServerOptions other = test_options();
  other.tables[1].optimizer.lr = 0.25F;
  cluster.add(TestCluster::all(ReplicaRole::kPrimary, 1));
  cluster.add(TestCluster::all(ReplicaRole::kBackup), other);
  cluster.open(0);
  Server* primary = cluster.servers[0].get();
  Server* backup = cluster.servers[1].get();
  Pushed push(1, 0, *primary);
  push.send(primary);
  ASSERT_TRUE(cluster.clock.run_until([&] { return push.replicated(); }));
  EXPECT_EQ(backup->diverged(), 0U) << "its history is right";
  uint64_t different = 0;
  for (const ShardId id : kAll)
    different += primary->content_hash(std::vector{id}) != backup->content_hash(std::vector{id});
  ASSERT_GT(different, 0U);
  close_pass(&cluster, primary);
  // The first one that differs: from then on the coordinator is told, and gives it another backup.
  ASSERT_TRUE(cluster.clock.run_until([&] { return backup->diverged() > 0; }));
  ASSERT_EQ(cluster.said.size(), 1U);
  EXPECT_NE(cluster.said[0].find("its rows have the hash"), std::string::npos) << cluster.said[0];
  cluster.clock.run_for(kSecond);
  EXPECT_EQ(primary->suspects(), std::vector<ServerId>{1});
  // The copy brings the right rows.
  ASSERT_TRUE(primary->assign(TestCluster::all(ReplicaRole::kPrimary, kNoServer, {1, 2})).is_ok());
  ASSERT_TRUE(backup->assign(TestCluster::all(ReplicaRole::kNone, kNoServer, {1, 2})).is_ok());
  bool copied = false;
  copy_all(primary, primary->primaries(), 1, "1", [&](const Status& s) { copied = s.is_ok(); });
  ASSERT_TRUE(cluster.clock.run_until([&] { return copied; }));
  EXPECT_EQ(primary->content_hash(kAll), backup->content_hash(kAll));
}

}  // namespace
}  // namespace flux
