// Copies of shards that fail or come in pieces, and sync steps on their way to a backup.
#include <algorithm>
#include <memory>

#include <gtest/gtest.h>

#include "flux/server/test_replicas.h"

namespace flux {
namespace {

const std::vector<ShardId> kAll = TestCluster::every_shard();

// In one part; `bytes` is the image.
InstallRequest whole_copy(const Server& from, ShardId shard, const std::string& bytes) {
  InstallRequest request;
  request.incarnation = kLife;
  request.shard = shard;
  request.epoch = {1, 1};
  request.copy = 50;
  request.op = from.state(shard).op;
  request.bytes = std::as_bytes(std::span(bytes));
  return request;
}

TEST(ReplicaCopy, CopiesThatCannotBeUsed) {
  TestCluster cluster;
  cluster.add_alone();
  Server* primary = cluster.servers[0].get();
  Server* other = cluster.servers[1].get();
  Pushed(1, 0, *primary).send(primary);
  const std::string bytes = encode_shard(primary->image(2));
  const auto install = [&](const InstallRequest& request) {
    Status status(Code::kIo, "not answered");
    other->install(request, [&](const Status& s) { status = s; });
    return status.code();
  };
  const InstallRequest whole = whole_copy(*primary, 2, bytes);
  InstallRequest bad = whole;
  bad.part = 1;
  EXPECT_EQ(install(bad), Code::kInvalid);
  bad = whole;
  bad.shard = 11;
  EXPECT_EQ(install(bad), Code::kInvalid);
  bad = whole;
  bad.incarnation = 1;
  EXPECT_EQ(install(bad), Code::kStale);
  bad = whole;
  bad.copy = 10;
  bad.op += 1;
  EXPECT_EQ(install(bad), Code::kCorrupt) << "not what it says";
  bad = whole;
  bad.copy = 11;
  bad.shard = 3;
  EXPECT_EQ(install(bad), Code::kCorrupt) << "another shard";
  std::string broken = bytes;
  broken[broken.size() / 2] ^= 1;
  bad = whole;
  bad.copy = 12;
  bad.bytes = std::as_bytes(std::span(broken));
  EXPECT_EQ(install(bad), Code::kCorrupt);
  EXPECT_FALSE(other->state(2).complete);
  // Two parts, the second one first, and twice.
  InstallRequest part = whole;
  part.copy = 20;
  part.parts = 2;
  part.part = 1;
  part.bytes = whole.bytes.subspan(100);
  EXPECT_EQ(install(part), Code::kOk);
  EXPECT_EQ(install(part), Code::kOk);
  EXPECT_FALSE(other->state(2).complete);
  InstallRequest late = part;
  late.copy = 19;
  EXPECT_EQ(install(late), Code::kStale) << "a part of the copy before";
  part.part = 0;
  part.bytes = whole.bytes.first(100);
  EXPECT_EQ(install(part), Code::kOk);
  EXPECT_EQ(install(part), Code::kOk) << "the answer was lost";
  EXPECT_TRUE(other->state(2).complete);
  EXPECT_EQ(other->state(2).role, ReplicaRole::kLearner);
  EXPECT_TRUE(equal_replicas(*primary, *other, {2}));
  EXPECT_EQ(other->state(2).stream_hash, primary->state(2).stream_hash);
}

// Two messages, each with a shard that has to be sent again and one that waits for the other
// message: none is answered unless the receiver answers as soon as it refuses anything.
TEST(ReplicaCopy, AMessageThatIsRefusedInPartIsAnsweredAtOnce) {
  TestCluster cluster;
  cluster.add_alone();
  Server* primary = cluster.servers[0].get();
  Server* other = cluster.servers[1].get();
  const auto install = [&](ShardId shard) {
    const std::string bytes = encode_shard(primary->image(shard));
    other->install(whole_copy(*primary, shard, bytes),
                   [&](const Status& status) { EXPECT_TRUE(status.is_ok()); });
  };
  install(3);
  const uint64_t head = primary->state(3).op;
  const std::vector<ShardId> shards{2, 3};
  const std::vector<ShardEpoch> epochs{{1, 1}, {1, 1}};
  const std::vector<uint64_t> hashes{7, 8};
  const auto ask = [&](uint64_t op_of_2, uint64_t op_of_3) {
    const std::vector<uint64_t> ops{op_of_2, op_of_3};
    ReplicateRequest request;
    request.kind = OpKind::kProbe;
    request.push.claim.incarnation = kLife;
    request.push.shards = shards;
    request.push.epochs = epochs;
    request.ops = ops;
    request.hashes = hashes;
    const auto got = std::make_shared<std::optional<ReplicateReply>>();  // the end answers, too
    other->replicate(request, [got](const ReplicateReply& reply) { *got = reply; });
    return *got;
  };
  const std::optional<ReplicateReply> reply = ask(head + 1, head + 2);
  ASSERT_TRUE(reply.has_value()) << "it waits for what is not sent before the answer";
  ASSERT_EQ(reply->refused.size(), 2U);
  EXPECT_EQ(reply->refused[0].shard, 2U);
  EXPECT_EQ(reply->refused[0].why, FollowAnswer::kNotFollower);
  EXPECT_EQ(reply->refused[1].shard, 3U);
  EXPECT_EQ(reply->refused[1].why, FollowAnswer::kHold);
  install(2);
  EXPECT_FALSE(ask(head + 2, head + 2).has_value()) << "both wait for what comes before";
}

TEST(ReplicaCopy, ACopyToNobodyEnds) {
  TestCluster cluster;
  cluster.faults.delay_max = kMillisecond;
  cluster.add_alone();
  Server* primary = cluster.servers[0].get();
  cluster.kill(1);
  std::optional<Status> end;
  copy_all(primary, primary->primaries(), 1, "1", [&](const Status& s) { end = s; });
  for (int i = 0; i < 40 && !end; ++i) {
    primary->heard_coordinator();
    cluster.clock.run_for(kSecond);
  }
  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(end->code(), Code::kUnavailable);
  Pushed push(1, 0, *primary);
  push.send(primary);
  EXPECT_TRUE(push.replicated());
  EXPECT_EQ(primary->forwards_open(), 0U) << "nobody follows any more";
  copy_all(primary, primary->primaries(), 0, "0", [&](const Status& s) { end = s; });
  EXPECT_EQ(end->code(), Code::kInvalid) << "to itself";
  const auto copy = [&](const AdminCall& call) {
    primary->copy(call, 1, "1", [&](const auto& r) { end = r.status(); });
    return end->code();
  };
  EXPECT_EQ(copy(primary->primaries()), Code::kInvalid) << "more than one shard";
  EXPECT_EQ(copy({kLife, 1, {}, {}}), Code::kInvalid) << "none";
  EXPECT_EQ(copy({kLife, 1, {2}, {{1, 2}}}), Code::kStale) << "another epoch";
}

// A step is poured on the primary and forwarded as the merged push that it is.
TEST(ReplicaSync, StepsAreForwardedMerged) {
  TestCluster cluster;
  cluster.faults = {2 * kMillisecond, 0.1, 0.1, 300 * kMillisecond};
  cluster.add_pair();
  Server* primary = cluster.servers[0].get();
  const uint64_t before = cluster.messages;
  std::vector<std::unique_ptr<Pushed>> pushes;
  for (uint32_t n = 0; n < 4; ++n) {
    SyncStep step{1, n, {}, 30};
    for (uint32_t m = 0; m < 3; ++m) step.ids.push_back({{0, 0, 0, m}, static_cast<uint8_t>(n), 4});
    for (uint32_t m = 0; m < 3; ++m) {
      pushes.push_back(std::make_unique<Pushed>(n * 10 + m, m * 4 + n, *primary));
      pushes.back()->data.request.step = &step;
      Pushed* push = pushes.back().get();
      primary->push(push->data.request, [push, primary](const PushReply& reply) {
        for (const ShardAnswer& a : reply.answers) push->answers.push_back(a.answer);
        push->receipt = reply.receipt;
        primary->confirm(kLife, reply.receipt, [push](const Status& s) { push->confirmed = s; });
      });
      EXPECT_EQ(push->answers.empty(), m < 2);
    }
    for (size_t i = pushes.size() - 3; i < pushes.size(); ++i) {
      EXPECT_TRUE(all_are(pushes[i]->answers, 11, Answer::kApplied));
      EXPECT_NE(pushes[i]->receipt, 0U);
      EXPECT_FALSE(pushes[i]->confirmed.has_value());
    }
    cluster.clock.run_for(kMillisecond);
  }
  EXPECT_EQ(cluster.messages - before, 4U) << "one for each step";
  ASSERT_TRUE(cluster.clock.run_until([&] {
    return std::all_of(pushes.begin(), pushes.end(), [](const auto& p) { return p->replicated(); });
  }));
  EXPECT_TRUE(equal_replicas(*primary, *cluster.servers[1], kAll));
  EXPECT_EQ(counts_of(*cluster.servers[1], kAll), counts_of(pushes));
  // What waits when the configuration changes is sent back, and goes on at the new primary.
  Pushed waiting(99, 16, *primary);
  const SyncStep step{2, 0, {waiting.id, test_batch(20)}, 20};
  waiting.data.request.step = &step;
  std::vector<Answer> answers;
  primary->push(waiting.data.request, [&](const PushReply& reply) {
    for (const ShardAnswer& a : reply.answers) answers.push_back(a.answer);
  });
  ASSERT_TRUE(primary->assign(TestCluster::all(ReplicaRole::kPrimary, kNoServer, {1, 2})).is_ok());
  EXPECT_TRUE(all_are(answers, 11, Answer::kNotServing));
}

}  // namespace
}  // namespace flux
