// A batch whose loss or gradient is not a number, in every mode: nothing of it reaches a server, it
// is handed back with a reason that says what and where, and everything else is trained once.
#include <limits>
#include <map>

#include <gtest/gtest.h>

#include "tests/sim/tiny_job.h"
#include "tests/sim/trainer_rig.h"

namespace flux {
namespace {

using tiny::Data;
using tiny::Servers;
using Rig = tiny::TrainerRig;

constexpr uint32_t kBatch = 16, kBlock = 80;

void expect_all_but(const std::set<uint32_t>& bad, const Rig& rig, const Data& data,
                    const Servers& servers) {
  std::map<Key, uint32_t> expected, found;
  uint64_t examples = 0;
  for (uint32_t i = 0; i < data.examples().size(); ++i) {
    if (bad.contains(i / kBatch)) continue;
    ++examples;
    for (const uint64_t key : data.examples()[i].keys) ++expected[key];
  }
  for (const auto& server : servers.servers) {
    server->for_each_row(server->primaries().shards,
                         [&](Key key, uint32_t count) { found[key] = count; });
    const DenseExamples dense = server->totals().dense.at(0);
    EXPECT_TRUE(!dense.any() || dense.min == examples);
  }
  EXPECT_EQ(found, expected) << "nothing of a refused batch, the rest once";
  for (const float x : servers.dense()) EXPECT_TRUE(std::isfinite(x));
  for (const auto& [key, x] : servers.weights(data)) EXPECT_TRUE(std::isfinite(x)) << key;
  EXPECT_EQ(rig.refused.size(), bad.size());
  EXPECT_EQ(rig.applied.size() + bad.size(), data.geometry().batches());
  for (const auto& [id, times] : rig.applied) EXPECT_EQ(times, 1) << to_string(id);
}

TEST(Refused, ABatchWithANanIsNotPushedAndTheRestIs) {
  std::vector<tiny::Example> examples = tiny::make_examples(960);
  examples[700].dense[0] = std::numeric_limits<float>::quiet_NaN();
  examples[5].dense[1] = std::numeric_limits<float>::infinity();
  examples[959].dense[1] = -std::numeric_limits<float>::infinity();
  const Data data(examples, kBatch, kBlock);
  for (const char* mode : {"async", "sync"})
    for (const uint32_t workers : {1U, 3U}) {
      SCOPED_TRACE(std::string(mode) + " " + std::to_string(workers));
      Servers servers(2, data.geometry().hash());
      Rig rig(mode, workers, data, &servers);
      ASSERT_TRUE(rig.run()) << rig.trainers[0]->waits();
      for (const auto& trainer : rig.trainers)
        EXPECT_TRUE(trainer->status().is_ok()) << trainer->status().message();
      expect_all_but({700 / kBatch, 0, 959 / kBatch}, rig, data, servers);
      const BatchId nan{{0, 0, 0, 8}, 3, 5};
      ASSERT_TRUE(rig.refused.contains(nan)) << "block and batch of record 700";
      EXPECT_NE(rig.refused[nan].find("linear.weight is nan at element 0"), std::string::npos)
          << rig.refused[nan];
      EXPECT_EQ(rig.refused[nan].find("broken before"), std::string::npos) << rig.refused[nan];
    }
}

// Every pull brings a broken row: each batch that needs it is refused, and says so.
TEST(Refused, AModelThatIsBrokenAlreadyIsNamed) {
  const Data data(960, kBatch, kBlock);
  Servers servers(1, data.geometry().hash());
  KeyPlan plan(tiny::kShards);
  const std::vector<uint64_t> keys = {data.examples()[0].keys[0]};
  plan.build(keys);
  const float bad = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> dense(servers.graph->parameter_count());
  const std::vector<const float*> tables = {&bad};
  PushRequest push;  // by somebody who does not check
  push.claim = {tiny::kLife, data.geometry().hash(), {{{0, 0, 1, 0}, 0, 5}}, Verdict::kApplied};
  std::vector<ShardId> shards(servers.route.size());
  std::iota(shards.begin(), shards.end(), 0U);
  push.shards = shards;
  push.epochs = servers.route.epoch;
  push.keys = plan.sharded();
  push.counts = plan.counts().data();
  push.tables = tables;
  push.dense = dense.data();
  servers.servers[0]->push(push, [](const PushReply& reply) {
    for (const ShardAnswer& a : reply.answers) EXPECT_EQ(a.answer, Answer::kApplied);
  });
  Rig rig("async", 1, data, &servers);
  ASSERT_TRUE(rig.run());
  EXPECT_FALSE(rig.refused.empty());
  EXPECT_FALSE(rig.applied.empty()) << "batches without that key are trained";
  const std::string want =
      fmt::format("broken before this batch (table weight is nan at key {})", keys[0]);
  for (const auto& [id, reason] : rig.refused)
    EXPECT_NE(reason.find(want), std::string::npos) << reason;
  for (const float x : servers.dense()) EXPECT_TRUE(std::isfinite(x));
}

// A test that cannot be evaluated ends with the record's name; it is not tried for ever.
TEST(Refused, ATestLossThatIsNoNumberEndsTheTrainer) {
  std::vector<tiny::Example> examples = tiny::make_examples(960);
  examples[700].dense[0] = std::numeric_limits<float>::quiet_NaN();
  const Data data(examples, kBatch, kBlock);
  Servers servers(1, data.geometry().hash());
  Rig rig("async", 1, data, &servers, true);
  ASSERT_TRUE(rig.run());
  const Status& status = rig.trainers[0]->status();
  EXPECT_EQ(status.code(), Code::kInvalid);
  const std::string want = fmt::format("the record that is example {} of the batch", 700 % kBatch);
  EXPECT_NE(status.message().find(want), std::string::npos) << status.message();
  EXPECT_TRUE(rig.refused.empty());
}

}  // namespace
}  // namespace flux
