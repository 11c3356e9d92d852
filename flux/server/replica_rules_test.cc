// Rules of replication one by one: epochs, lineage, bounds, leases, divergence, verbs that wait.
#include <algorithm>
#include <memory>

#include <gtest/gtest.h>

#include "flux/server/test_replicas.h"

namespace flux {
namespace {

const std::vector<ShardId> kAll = TestCluster::every_shard();

bool all_in(const std::vector<ShardState>& states, ReplicaRole role, ShardEpoch epoch) {
  return std::all_of(states.begin(), states.end(),
                     [&](const ShardState& s) { return s.role == role && s.epoch == epoch; });
}

TEST(ReplicaRules, AnEmptyReplicaIsNeverPromoted) {
  TestCluster cluster;
  cluster.add({});
  Server* server = cluster.servers[0].get();
  for (const ReplicaRole role : {ReplicaRole::kPrimary, ReplicaRole::kBackup})
    EXPECT_TRUE(all_in(server->assign(TestCluster::all(role, kNoServer, {5, 5})).value(),
                       ReplicaRole::kNone, {0, 0}));
  EXPECT_TRUE(server->primaries().shards.empty());
  // With lineage it is another matter: the initial state, said aloud by the coordinator.
  const AdminCall call{kLife, 5, kAll, std::vector<ShardEpoch>(kAll.size(), {5, 4})};
  ASSERT_TRUE(server->load(call, {"", 0, {}, 0}).is_ok());
  ASSERT_TRUE(server->load(call, {"", 0, {}, 0}).is_ok()) << "asked twice";
  EXPECT_TRUE(server->state(3).complete);
  EXPECT_TRUE(
      all_in(server->assign(TestCluster::all(ReplicaRole::kPrimary, kNoServer, {5, 4})).value(),
             ReplicaRole::kPrimary, {5, 4}));
  EXPECT_EQ(server->load(call, {"", 0, {}, 0}).code(), Code::kStale) << "it is served";
}

TEST(ReplicaRules, EpochsOnlyRise) {
  TestCluster cluster;
  cluster.add_pair();
  Server* primary = cluster.servers[0].get();
  Server* backup = cluster.servers[1].get();
  const auto primary_as = [&](ShardEpoch epoch, ServerId with) {
    return primary->assign(TestCluster::all(ReplicaRole::kPrimary, with, epoch)).value();
  };
  EXPECT_TRUE(all_in(primary_as({1, 0}, kNoServer), ReplicaRole::kPrimary, {1, 1}));
  EXPECT_EQ(primary->state(0).backup, 1U) << "an older epoch changes nothing";
  EXPECT_EQ(primary_as({1, 1}, kNoServer)[0].backup, 1U) << "nor does another thing under this one";
  EXPECT_EQ(primary_as({1, 2}, kNoServer)[0].backup, kNoServer);
  EXPECT_EQ(primary_as({1, 2}, kNoServer)[0].epoch, (ShardEpoch{1, 2})) << "said again";
  EXPECT_EQ(primary_as({1, 3}, 0)[0].epoch, (ShardEpoch{1, 2})) << "nobody is his own backup";
  Pushed push(1, 0, *primary);
  push.send(primary);
  EXPECT_EQ(push.receipt, 0U);
  push.data.epochs.assign(11, {1, 1});
  EXPECT_TRUE(all_are(send_push(primary, push.data.request), 11, Answer::kStaleEpoch));
  // A seal ends only with a new epoch.
  ASSERT_TRUE(primary->seal(primary->primaries()).is_ok());
  (void)primary_as({1, 2}, kNoServer);
  EXPECT_TRUE(primary->state(0).sealed);
  (void)primary_as({1, 3}, kNoServer);
  EXPECT_FALSE(primary->state(0).sealed);
  // at_op: only at exactly that head.
  const uint64_t head = backup->state(0).op;
  EXPECT_TRUE(all_in(
      backup->assign(TestCluster::all(ReplicaRole::kPrimary, kNoServer, {2, 1}, head + 1)).value(),
      ReplicaRole::kBackup, {1, 1}));
  EXPECT_TRUE(all_in(
      backup->assign(TestCluster::all(ReplicaRole::kPrimary, kNoServer, {2, 1}, head)).value(),
      ReplicaRole::kPrimary, {2, 1}));
  EXPECT_EQ(
      primary->assign({{{11, {9, 9}, ReplicaRole::kNone, kNoServer, kAnyOp}}, {}}).status().code(),
      Code::kInvalid);
  // Forgetting.
  EXPECT_TRUE(
      all_in(primary->assign(TestCluster::all(ReplicaRole::kNone, kNoServer, {2, 1})).value(),
             ReplicaRole::kNone, {2, 1}));
  EXPECT_EQ(primary->totals(kAll).rows, 0U);
  EXPECT_FALSE(primary->state(0).complete);
}

TEST(ReplicaRules, AForwardOfAnOlderEpochMakesThePrimaryStepDown) {
  TestCluster cluster;
  cluster.add_pair();
  Server* old = cluster.servers[0].get();
  Server* now = cluster.servers[1].get();
  ASSERT_TRUE(now->assign(TestCluster::all(ReplicaRole::kPrimary, kNoServer, {1, 2})).is_ok());
  Pushed push(1, 0, *old);
  push.send(old);
  EXPECT_TRUE(all_are(push.answers, 11, Answer::kApplied)) << "it does not know yet";
  ASSERT_TRUE(push.confirmed.has_value());
  EXPECT_EQ(push.confirmed->code(), Code::kStale) << "and nothing of it counts";
  for (const ShardId id : kAll) EXPECT_FALSE(old->serves(id));
  Pushed next(2, 1, *old);
  next.send(old);
  EXPECT_TRUE(all_are(next.answers, 11, Answer::kNotServing));
  std::vector<float> dense(kParameters);
  const std::vector<ShardId> one = {9};
  Status status;
  old->pull({kLife, one, {}, {}, dense.data()}, [&](const PullReply& r) { status = r.status; });
  EXPECT_EQ(status.code(), Code::kUnavailable);
  status = Status::ok();
  old->open_pass(old->primaries(), 1, 5, [&](const Status& s) { status = s; });
  EXPECT_EQ(status.code(), Code::kStale);
  EXPECT_EQ(counts_of(*now, kAll).size(), 0U);
  EXPECT_FALSE(cluster.said.empty());
  // It can be of use again: forget, copy, follow.
  push.send(now);
  ASSERT_TRUE(old->assign(TestCluster::all(ReplicaRole::kNone, kNoServer, {1, 2})).is_ok());
  bool copied = false;
  copy_all(now, now->primaries(), 0, "0", [&](const Status& s) { copied = s.is_ok(); });
  ASSERT_TRUE(cluster.clock.run_until([&] { return copied; }));
  EXPECT_TRUE(equal_replicas(*old, *now, kAll));
}

TEST(ReplicaRules, DroppingTheBackupVoidsWhatWaitsForIt) {
  TestCluster cluster;
  cluster.faults.delay_max = kMillisecond;
  cluster.add_pair();
  Server* primary = cluster.servers[0].get();
  cluster.kill(1);
  Pushed push(1, 0, *primary);
  push.send(primary);
  cluster.clock.run_for(3 * kSecond);
  EXPECT_FALSE(push.confirmed.has_value()) << "no word of the backup, no second acknowledgement";
  EXPECT_EQ(primary->suspects(), std::vector<ServerId>{1});
  std::optional<Status> passed;
  primary->open_pass(primary->primaries(), 1, 7, [&](const Status& s) { passed = s; });
  EXPECT_FALSE(passed.has_value());
  ASSERT_TRUE(primary->assign(TestCluster::all(ReplicaRole::kPrimary, kNoServer, {1, 2})).is_ok());
  ASSERT_TRUE(push.confirmed.has_value());
  EXPECT_EQ(push.confirmed->code(), Code::kStale);
  ASSERT_TRUE(passed.has_value());
  EXPECT_EQ(passed->code(), Code::kUnavailable);
  push.send(primary);
  EXPECT_TRUE(all_are(push.answers, 11, Answer::kDuplicate));
  EXPECT_TRUE(push.replicated()) << "under an epoch without a backup";
  cluster.clock.run_for(3 * kSecond);
  EXPECT_EQ(primary->forwards_open(), 0U);
  EXPECT_EQ(primary->forward_bytes(), 0U);
  EXPECT_TRUE(primary->suspects().empty());
}

// A backup hears its primary at least by probes; it names one that it does not hear.
TEST(ReplicaRules, ABackupNamesAPrimaryThatIsSilent) {
  TestCluster cluster;
  cluster.faults.delay_max = kMillisecond;
  cluster.add_pair();
  Server* backup = cluster.servers[1].get();
  cluster.clock.run_for(20 * kSecond);
  EXPECT_TRUE(backup->silent().empty()) << "nothing happens, but it says so";
  EXPECT_TRUE(cluster.servers[0]->silent().empty());
  cluster.cut(0, 1);
  cluster.clock.run_for(2 * kSecond);
  EXPECT_TRUE(backup->silent().empty());
  cluster.clock.run_for(3 * kSecond);
  EXPECT_EQ(backup->silent(), std::vector<ServerId>{0});
  ASSERT_TRUE(backup->assign(TestCluster::all(ReplicaRole::kPrimary, kNoServer, {1, 2})).is_ok());
  EXPECT_TRUE(backup->silent().empty()) << "it follows nobody any more";
}

TEST(ReplicaRules, WhatIsSentAgainHasTheEpochOfThatMoment) {
  TestCluster cluster;
  cluster.add_pair();
  Server* primary = cluster.servers[0].get();
  cluster.cut(0, 1);
  Pushed push(1, 0, *primary);
  push.send(primary);
  ASSERT_TRUE(primary->assign(TestCluster::all(ReplicaRole::kPrimary, 1, {1, 2})).is_ok());
  ASSERT_TRUE(cluster.servers[1]
                  ->assign(TestCluster::all(ReplicaRole::kBackup, kNoServer, {1, 2}))
                  .is_ok());
  EXPECT_FALSE(push.confirmed.has_value()) << "the same backup: nothing is void";
  cluster.cuts.clear();
  cluster.clock.run_for(kSecond);
  EXPECT_TRUE(push.replicated());
  EXPECT_TRUE(equal_replicas(*primary, *cluster.servers[1], kAll));
}

TEST(ReplicaRules, TheWordOfAFormerBackupCountsForNothing) {
  TestCluster cluster;
  cluster.faults.delay_max = 20 * kMillisecond;
  cluster.add_pair();
  cluster.add({});
  Server* primary = cluster.servers[0].get();
  Pushed push(1, 0, *primary);
  push.send(primary);
  const uint64_t head = primary->state(0).op;
  ASSERT_TRUE(cluster.clock.run_until([&] { return cluster.servers[1]->state(10).op == head; }));
  ASSERT_FALSE(push.confirmed.has_value()) << "its answer is on the way";
  ASSERT_TRUE(primary->assign(TestCluster::all(ReplicaRole::kPrimary, 2, {1, 2})).is_ok());
  ASSERT_TRUE(push.confirmed.has_value());
  EXPECT_EQ(push.confirmed->code(), Code::kStale);
  cluster.clock.run_for(kSecond);
  EXPECT_EQ(primary->state(0).replicated, 0U) << "the new one has nothing";
  EXPECT_EQ(primary->state(0).backup, 2U);
  push.send(primary);
  cluster.clock.run_for(kSecond);
  EXPECT_TRUE(all_are(push.answers, 11, Answer::kDuplicate));
  EXPECT_FALSE(push.replicated());
}

TEST(ReplicaRules, VerbsThatWaitHaveAnEnd) {
  TestCluster cluster;
  cluster.faults.delay_max = kMillisecond;
  cluster.add_pair();
  Server* primary = cluster.servers[0].get();
  cluster.kill(1);
  std::vector<Status> ends;
  const auto done = [&](const Status& status) { ends.push_back(status); };
  primary->open_pass(primary->primaries(), 1, 7, done);
  primary->mark(primary->primaries(), kGeometry, std::vector{test_batch(0)}, Verdict::kLost, done);
  primary->close_below(primary->primaries(), 0, done);  // nothing to close: but what is the head?
  primary->marked(primary->primaries(), {0, 0, 0, 0}, 1, false,
                  [&](const auto& masks) { ends.push_back(masks.status()); });
  EXPECT_TRUE(ends.empty());
  cluster.clock.run_for(4 * kSecond);
  primary->heard_coordinator();
  cluster.clock.run_for(30 * kSecond);
  ASSERT_EQ(ends.size(), 4U);
  for (const Status& end : ends) EXPECT_EQ(end.code(), Code::kUnavailable);
  // The backup was only slow: asked again, everything is as it should be.
  cluster.dead.clear();
  primary->heard_coordinator();
  ends.clear();
  primary->open_pass(primary->primaries(), 1, 7, done);
  primary->mark(primary->primaries(), kGeometry, std::vector{test_batch(0)}, Verdict::kLost, done);
  ASSERT_TRUE(cluster.clock.run_until([&] { return ends.size() == 2; }));
  EXPECT_TRUE(ends[0].is_ok() && ends[1].is_ok());
  EXPECT_TRUE(equal_replicas(*primary, *cluster.servers[1], kAll));
  EXPECT_EQ(cluster.servers[1]->replica(4).ledger().find(test_batch(0)), Verdict::kLost);
}

TEST(ReplicaRules, AServerThatEndsLeavesNobodyWaiting) {
  TestCluster cluster;
  cluster.faults.delay_max = kMillisecond;
  cluster.add_pair();
  cluster.kill(1);
  int ended = 0;
  {
    Server* primary = cluster.servers[0].get();
    auto push = std::make_unique<Pushed>(1, 0, *primary);
    push->send(primary);
    primary->confirm(kLife, push->receipt, [&](const Status& s) { ended += s.is_ok() ? 0 : 1; });
    primary->open_pass(primary->primaries(), 1, 7,
                       [&](const Status& s) { ended += s.is_ok() ? 0 : 1; });
    cluster.servers[0].reset();
    EXPECT_EQ(ended, 2);
    EXPECT_TRUE(push->confirmed.has_value());
  }
  cluster.clock.run_for(20 * kSecond);  // nothing of it is left to run
}

TEST(ReplicaRules, LeasesEndWithoutAWord) {
  TestCluster cluster;
  cluster.faults.delay_max = kMillisecond;
  cluster.add_pair();
  Server* primary = cluster.servers[0].get();
  cluster.clock.run_for(60 * kSecond);
  EXPECT_TRUE(primary->serves(0)) << "the backup is enough, also when nothing is pushed";
  cluster.cut(0, 1);
  cluster.clock.run_for(9 * kSecond / 2);
  EXPECT_TRUE(primary->serves(0));
  cluster.clock.run_for(7 * kSecond);
  EXPECT_FALSE(primary->serves(0));
  Pushed push(1, 0, *primary);
  push.send(primary);
  EXPECT_TRUE(all_are(push.answers, 11, Answer::kNotServing));
  primary->heard_coordinator();
  EXPECT_TRUE(primary->serves(0));
  cluster.clock.run_for(11 * kSecond);
  EXPECT_FALSE(primary->serves(0));
  cluster.cuts.clear();
  cluster.clock.run_for(2 * kSecond);
  EXPECT_TRUE(primary->serves(0)) << "the backup is heard again";
  EXPECT_LE(primary->forwards_open(), 2U) << "one question at a time";
  // Without a backup only the coordinator counts.
  ASSERT_TRUE(primary->assign(TestCluster::all(ReplicaRole::kPrimary, kNoServer, {1, 2})).is_ok());
  cluster.clock.run_for(11 * kSecond);
  EXPECT_FALSE(primary->serves(0));
}

TEST(ReplicaRules, TooManyBytesUnderWayArePutOff) {
  TestCluster cluster;
  cluster.faults.delay_max = kMillisecond;
  ServerOptions o = test_options();
  o.forward_bytes_max = 1 << 20;  // a push is about 160 KiB
  cluster.add_pair(o);
  Server* primary = cluster.servers[0].get();
  cluster.cut(0, 1);
  std::vector<std::unique_ptr<Pushed>> pushes;
  size_t refused = 0;
  for (uint32_t i = 0; i < 20; ++i) {
    pushes.push_back(std::make_unique<Pushed>(i, i, *primary));
    pushes.back()->send(primary);
    refused += all_are(pushes.back()->answers, 11, Answer::kNotServing) ? 1 : 0;
  }
  EXPECT_GT(refused, 10U);
  EXPECT_LT(refused, 16U);
  EXPECT_LT(primary->forward_bytes(), 2U << 20);
  cluster.cuts.clear();
  cluster.clock.run_for(3 * kSecond);
  EXPECT_EQ(primary->forward_bytes(), 0U);
  for (const auto& push : pushes) {
    push->send(primary);
    cluster.clock.run_for(10 * kMillisecond);
    EXPECT_TRUE(push->replicated());
  }
  EXPECT_TRUE(equal_replicas(*primary, *cluster.servers[1], kAll));
}

// A backup whose history is another one says so and is a follower no more.
TEST(ReplicaRules, DivergenceIsNoticed) {
  TestCluster cluster;
  cluster.add_pair();
  Server* primary = cluster.servers[0].get();
  Server* backup = cluster.servers[1].get();
  for (uint32_t i = 0; i < 3; ++i) Pushed(i, i, *primary).send(primary);
  // One shard of the backup gets an operation that its primary never had.
  Pushed other(77, 3, *primary);
  const std::vector<ShardId> shard = {4};
  const std::vector<ShardEpoch> epoch = {{1, 1}};
  const std::vector<uint64_t> op = {backup->state(4).op + 1}, hash = {12345};
  ReplicateRequest forged;
  forged.push = other.data.request;
  forged.push.shards = shard;
  forged.push.epochs = epoch;
  forged.ops = op;
  forged.hashes = hash;
  ReplicateReply reply;
  backup->replicate(forged, [&](const ReplicateReply& r) { reply = r; });
  ASSERT_EQ(reply.refused.size(), 1U);
  EXPECT_EQ(reply.refused[0].why, FollowAnswer::kNotFollower);
  EXPECT_EQ(backup->diverged(), 1U);
  EXPECT_EQ(cluster.said.size(), 1U);
  EXPECT_FALSE(backup->state(4).complete);
  EXPECT_TRUE(backup->state(5).complete);
  Pushed next(3, 3, *primary);
  next.send(primary);
  EXPECT_TRUE(all_are(next.answers, 11, Answer::kApplied));
  EXPECT_FALSE(next.replicated()) << "one shard has no backup";
  cluster.clock.run_for(kSecond);
  EXPECT_EQ(primary->suspects(), std::vector<ServerId>{1});
  EXPECT_TRUE(equal_replicas(*primary, *backup, {0, 1, 2, 3, 5, 6, 7, 8, 9, 10}));
  EXPECT_FALSE(
      all_in(backup->assign(TestCluster::all(ReplicaRole::kPrimary, kNoServer, {3, 1})).value(),
             ReplicaRole::kPrimary, {3, 1}));
  EXPECT_EQ(backup->state(4).role, ReplicaRole::kNone) << "without lineage";
}

// A former primary with operations that nobody else has is found out by its hashes.
TEST(ReplicaRules, AHistoryThatWentElsewhereIsFoundOut) {
  TestCluster cluster;
  cluster.add_pair();
  Server* first = cluster.servers[0].get();
  Server* second = cluster.servers[1].get();
  Pushed(1, 0, *first).send(first);
  cluster.cut(0, 1);
  Pushed lost(2, 1, *first);
  lost.send(first);
  ASSERT_TRUE(second->assign(TestCluster::all(ReplicaRole::kPrimary, kNoServer, {1, 2})).is_ok());
  Pushed(3, 2, *second).send(second);
  // No coordinator would do this.
  ASSERT_TRUE(first->assign(TestCluster::all(ReplicaRole::kBackup, kNoServer, {1, 3})).is_ok());
  ASSERT_TRUE(second->assign(TestCluster::all(ReplicaRole::kPrimary, 0, {1, 3})).is_ok());
  EXPECT_EQ(first->diverged(), 11U);
  for (const ShardId id : kAll) EXPECT_FALSE(first->state(id).complete);
}

TEST(ReplicaRules, ForwardsThatNoHonestServerSends) {
  TestCluster cluster;
  cluster.add_pair();
  Server* backup = cluster.servers[1].get();
  Pushed push(1, 0, *cluster.servers[0]);
  const std::vector<uint64_t> ops(11, 2), hashes(11, 1);
  ReplicateRequest good;
  good.push = push.data.request;
  good.ops = ops;
  good.hashes = hashes;
  const auto code = [&](const ReplicateRequest& request) {
    Status status;
    backup->replicate(request, [&](const ReplicateReply& r) { status = r.status; });
    return status.code();
  };
  ReplicateRequest bad = good;
  bad.push.claim.incarnation = kLife + 1;
  EXPECT_EQ(code(bad), Code::kStale);
  bad = good;
  bad.ops = std::span(ops).first(3);
  EXPECT_EQ(code(bad), Code::kInvalid);
  bad = good;
  bad.kind = static_cast<OpKind>(9);
  EXPECT_EQ(code(bad), Code::kInvalid);
  bad = good;
  bad.kind = OpKind::kOpenPass;
  EXPECT_EQ(code(bad), Code::kInvalid) << "geometry 0";
  bad = good;
  bad.push.counts = nullptr;
  EXPECT_EQ(code(bad), Code::kInvalid);
  const std::vector<ShardId> far(11, 11);
  bad = good;
  bad.push.shards = far;
  EXPECT_EQ(code(bad), Code::kInvalid);
  EXPECT_EQ(backup->diverged(), 0U);
}

}  // namespace
}  // namespace flux
