// A primary and its backup: equal after anything the network does; what is confirmed is never lost;
// what is sent again counts once.
#include <algorithm>
#include <memory>

#include <gtest/gtest.h>

#include "flux/server/test_replicas.h"

namespace flux {
namespace {

const std::vector<ShardId> kAll = TestCluster::every_shard();

std::vector<std::unique_ptr<Pushed>> make_pushes(uint32_t n, const Server& server, uint64_t seed) {
  std::vector<std::unique_ptr<Pushed>> pushes;
  for (uint32_t i = 0; i < n; ++i)
    pushes.push_back(std::make_unique<Pushed>(seed * 1000 + i, i, server));
  return pushes;
}

ServerOptions small_options() {
  ServerOptions o = test_options();
  o.parameters = 40000;
  return o;
}

TEST(Replication, AStraightLineIsReplicatedAtOnce) {
  TestCluster cluster;
  cluster.add_pair();
  auto pushes = make_pushes(6, *cluster.servers[0], 1);
  for (const auto& push : pushes) {
    push->send(cluster.servers[0].get());
    EXPECT_TRUE(all_are(push->answers, 11, Answer::kApplied));
    EXPECT_EQ(push->receipt, 0U) << "the backup has answered inside the call";
  }
  EXPECT_TRUE(equal_replicas(*cluster.servers[0], *cluster.servers[1], kAll));
  EXPECT_EQ(cluster.messages, 7U) << "one message for each push, and one for the pass";
  const ShardState state = cluster.servers[0]->state(3);
  EXPECT_EQ(state.op, 7U);
  EXPECT_EQ(state.replicated, 7U);
  EXPECT_EQ(state.backup, 1U);
  EXPECT_EQ(cluster.servers[0]->forwards_open(), 0U);
  EXPECT_EQ(cluster.servers[0]->forward_bytes(), 0U);
  // The backup serves nobody.
  Pushed stray(9, 9, *cluster.servers[0]);
  stray.send(cluster.servers[1].get());
  EXPECT_TRUE(all_are(stray.answers, 11, Answer::kNotServing));
  EXPECT_FALSE(cluster.servers[1]->serves(0));
}

TEST(Replication, ReceiptsWaitForTheBackup) {
  TestCluster cluster;
  cluster.faults.delay_max = 5 * kMillisecond;
  cluster.add_pair();
  Server* primary = cluster.servers[0].get();
  Pushed push(1, 0, *primary);
  push.send(primary);
  EXPECT_TRUE(all_are(push.answers, 11, Answer::kApplied));
  EXPECT_NE(push.receipt, 0U);
  EXPECT_FALSE(push.confirmed.has_value());
  EXPECT_GT(primary->forward_bytes(), 0U);
  // A duplicate earns no more than the first.
  Pushed again(1, 0, *primary);
  again.send(primary);
  EXPECT_TRUE(all_are(again.answers, 11, Answer::kDuplicate));
  EXPECT_NE(again.receipt, 0U);
  EXPECT_FALSE(again.confirmed.has_value());
  ASSERT_TRUE(cluster.clock.run_until([&] { return push.confirmed && again.confirmed; }));
  EXPECT_TRUE(push.replicated());
  EXPECT_TRUE(again.replicated());
  again.send(primary);
  EXPECT_EQ(again.receipt, 0U) << "replicated before it came";
  // Receipts of nobody.
  std::optional<Status> status;
  const auto confirm = [&](uint64_t receipt) {
    primary->confirm(kLife, receipt, [&](const Status& s) { status = s; });
    return status->code();
  };
  EXPECT_EQ(confirm(push.receipt), Code::kOk) << "asked again";
  EXPECT_EQ(confirm(push.receipt + 1000), Code::kStale);
  EXPECT_EQ(confirm(17), Code::kStale);
  primary->confirm(kLife + 1, push.receipt, [&](const Status& s) { status = s; });
  EXPECT_EQ(status->code(), Code::kStale);
}

TEST(Replication, NobodyWaitsForABackupBecauseItLearnsAnotherShard) {
  TestCluster cluster;
  Assignments lead = TestCluster::all(ReplicaRole::kPrimary, 1);
  Assignments follow = TestCluster::all(ReplicaRole::kBackup);
  lead.shards[1].backup = kNoServer;
  follow.shards[1].role = ReplicaRole::kNone;
  Server* primary = cluster.add(lead);
  cluster.add(follow);
  cluster.open(0);
  cluster.installs = false;  // the copy of shard 1 is on its way for long
  AdminCall call = primary->primaries();
  call.shards = {1};
  call.epochs = {primary->state(1).epoch};
  primary->copy(call, 1, "1", [](const Result<std::vector<ShardState>>&) {});
  Pushed push(1, 0, *primary);
  push.send(primary);
  EXPECT_TRUE(push.replicated()) << "the backups have answered, the learner does not count";
  cluster.clock.run_for(kSecond);
  EXPECT_TRUE(primary->suspects().empty()) << "and nobody is suspected";
  EXPECT_GT(primary->forwards_open(), 0U) << "the learner is still asked";
  // It is given up; nothing is left behind.
  Assignments alone;
  alone.servers = TestCluster::addresses();
  alone.shards = {{1, {1, 2}, ReplicaRole::kPrimary, kNoServer, kAnyOp}};
  ASSERT_TRUE(primary->assign(alone).is_ok());
  ASSERT_TRUE(cluster.clock.run_until([&] { return primary->forwards_open() == 0; }));
}

class Chaos : public testing::TestWithParam<uint64_t> {
 protected:
  static LinkFaults rough() { return {20 * kMillisecond, 0.15, 0.2, 300 * kMillisecond}; }
};
INSTANTIATE_TEST_SUITE_P(Seeds, Chaos, testing::Range<uint64_t>(1, 21));

TEST_P(Chaos, BothReplicasAreEqualInTheEnd) {
  TestCluster cluster(GetParam());
  cluster.faults = rough();
  cluster.add_pair(small_options());
  Server* primary = cluster.servers[0].get();
  auto pushes = make_pushes(30, *primary, GetParam());
  for (const auto& push : pushes) {
    push->send(primary);
    if (cluster.random.chance(0.2))
      pushes[cluster.random.below(pushes.size())]->send(primary);  // some come twice, some early
    cluster.clock.run_for(static_cast<TimeNs>(cluster.random.below(10 * kMillisecond)));
  }
  const auto all_replicated = [&] {
    return std::all_of(pushes.begin(), pushes.end(), [](const auto& p) { return p->replicated(); });
  };
  ASSERT_TRUE(cluster.clock.run_until(all_replicated));
  ASSERT_TRUE(cluster.clock.run_until([&] { return primary->forwards_open() == 0; }));
  EXPECT_TRUE(equal_replicas(*primary, *cluster.servers[1], kAll));
  EXPECT_EQ(counts_of(*cluster.servers[1], kAll), counts_of(pushes));
  EXPECT_EQ(cluster.servers[1]->diverged(), 0U);
}

// The primary is lost at a random moment; the backup is promoted; workers send again what was not
// confirmed.
TEST_P(Chaos, WhatIsConfirmedIsNeverLost) {
  TestCluster cluster(GetParam());
  cluster.faults = rough();
  cluster.add_pair(small_options());
  Server* primary = cluster.servers[0].get();
  Server* backup = cluster.servers[1].get();
  auto pushes = make_pushes(30, *primary, GetParam());
  const size_t sent = 5 + cluster.random.below(25);
  for (size_t i = 0; i < sent; ++i) {
    pushes[i]->send(primary);
    cluster.clock.run_for(static_cast<TimeNs>(cluster.random.below(10 * kMillisecond)));
  }
  cluster.kill(0);
  std::vector<size_t> confirmed;
  for (size_t i = 0; i < sent; ++i)
    if (pushes[i]->replicated()) confirmed.push_back(i);
  const auto states = backup->assign(TestCluster::all(ReplicaRole::kPrimary, kNoServer, {1, 2}));
  for (const ShardState& state : states.value()) {
    ASSERT_EQ(state.role, ReplicaRole::kPrimary);
    ASSERT_EQ(state.epoch, (ShardEpoch{1, 2}));
  }
  for (const size_t i : confirmed)
    for (const ShardId id : kAll)
      EXPECT_TRUE(backup->replica(id).ledger().find(pushes[i]->id).has_value())
          << "batch " << i << " shard " << id;
  // What the old primary still forwards is refused, and it learns that it is over.
  cluster.dead.clear();
  for (const auto& push : pushes) {
    push->send(backup);
    EXPECT_TRUE(push->all_have_it());
    EXPECT_EQ(push->receipt, 0U) << "no backup: applied is all there is";
  }
  EXPECT_EQ(counts_of(*backup, kAll), counts_of(pushes));
  cluster.clock.run_for(20 * kSecond);
  EXPECT_EQ(counts_of(*backup, kAll), counts_of(pushes));
  for (const ShardId id : kAll) EXPECT_FALSE(primary->serves(id));
  EXPECT_EQ(primary->forwards_open(), 0U);
}

// A learner is copied while pushes go on, becomes the backup, then the primary.
TEST_P(Chaos, CopyAttachSwitch) {
  TestCluster cluster(GetParam());
  cluster.faults = rough();
  cluster.add(TestCluster::all(ReplicaRole::kPrimary), small_options());
  cluster.add({}, small_options());
  cluster.open(0);
  Server* first = cluster.servers[0].get();
  Server* second = cluster.servers[1].get();
  auto pushes = make_pushes(60, *first, GetParam());
  size_t next = 0;
  const auto load = [&](size_t n, Server* to) {
    for (size_t i = 0; i < n && next < pushes.size(); ++i) {
      pushes[next++]->send(to);
      cluster.clock.run_for(static_cast<TimeNs>(cluster.random.below(10 * kMillisecond)));
    }
  };
  load(10, first);
  std::optional<Status> copied;
  for (int i = 0; i < 2; ++i)  // asked twice: once done
    copy_all(first, first->primaries(), 1, "1", [&](const Status& status) { copied = status; });
  while (!copied && cluster.clock.now_ns() < 600 * kSecond) {
    load(1, first);
    cluster.clock.run_for(5 * kMillisecond);
  }
  ASSERT_TRUE(copied && copied->is_ok()) << copied->message();
  for (const ShardId id : kAll) {
    EXPECT_EQ(second->state(id).role, ReplicaRole::kLearner);
    EXPECT_TRUE(second->state(id).complete);
  }
  next = std::min<size_t>(next, 40);
  load(3, first);
  EXPECT_EQ(pushes[next - 1]->receipt, 0U) << "a learner's word does not count";
  // Attach: the primary first, then the backup.
  ASSERT_TRUE(first->assign(TestCluster::all(ReplicaRole::kPrimary, 1, {1, 2})).is_ok());
  load(2, first);
  cluster.clock.run_for(200 * kMillisecond);
  EXPECT_FALSE(pushes[next - 1]->replicated()) << "the backup was not told";
  ASSERT_TRUE(second->assign(TestCluster::all(ReplicaRole::kBackup, kNoServer, {1, 2})).is_ok());
  load(3, first);
  // Switch: seal, wait for the target to be there, swap.
  const auto sealed = first->seal(first->primaries());
  ASSERT_TRUE(sealed.is_ok());
  Pushed late(7, 59, *first);
  late.send(first);
  EXPECT_TRUE(all_are(late.answers, 11, Answer::kNotServing));
  EXPECT_TRUE(first->serves(0)) << "a sealed shard still serves pulls";
  Assignments promote = TestCluster::all(ReplicaRole::kPrimary, 0, {1, 3});
  for (size_t i = 0; i < promote.shards.size(); ++i) promote.shards[i].at_op = sealed.value()[i].op;
  const auto promoted = [&] {
    const auto states = second->assign(promote).value();
    return std::all_of(states.begin(), states.end(), [](const ShardState& s) {
      return s.epoch == ShardEpoch{1, 3};
    });
  };
  for (int i = 0; i < 1000 && !promoted(); ++i) cluster.clock.run_for(10 * kMillisecond);
  ASSERT_TRUE(promoted());
  ASSERT_TRUE(first->assign(TestCluster::all(ReplicaRole::kBackup, kNoServer, {1, 3})).is_ok());
  for (const auto& push : pushes) push->send(second);
  const auto all_replicated = [&] {
    return std::all_of(pushes.begin(), pushes.end(), [](const auto& p) { return p->replicated(); });
  };
  ASSERT_TRUE(cluster.clock.run_until(all_replicated));
  EXPECT_TRUE(equal_replicas(*first, *second, kAll));
  EXPECT_EQ(counts_of(*second, kAll), counts_of(pushes));
  EXPECT_EQ(first->diverged() + second->diverged(), 0U);
}

}  // namespace
}  // namespace flux
