// A batch whose loss or gradient is not a number, in every mode: nothing of it reaches a server, it
// is handed back with a reason that says what and where, and everything else is trained once. The
// test stands for the agent and the coordinator: it leases blocks and gives the verdict.
#include <limits>
#include <map>

#include <gtest/gtest.h>

#include "flux/testing/sim_executor.h"
#include "flux/worker/block_store.h"
#include "flux/worker/lane_driver.h"
#include "tests/sim/tiny_job.h"

namespace flux {
namespace {

using tiny::Data;
using tiny::Servers;

constexpr uint32_t kBatch = 16, kBlock = 80;

class Rig {
 public:
  Rig(const std::string& mode, uint32_t lanes, const Data& data, Servers* servers,
      bool evaluate = false)
      : data_(data), servers_(servers), sync_(mode == "sync"), evaluate_(evaluate), lanes_(lanes) {
    BlockStoreOptions options;
    options.lanes = lanes;
    options.by_lane = sync_;
    store_ = std::make_unique<BlockStore>(options);
    ModeOptions mode_options;
    mode_options.lanes = lanes;
    mode_options.client = with_model(lane_options(0).client, std::vector{servers->graph.get()});
    mode_options.source = store_.get();
    mode_ = std::move(make_mode(mode, mode_options)).value();
    for (uint32_t i = 0; i < lanes; ++i) start_lane(i);
    lease_all();
  }

  // Until all lanes are finished; false: they wait for something.
  bool run() {
    for (int i = 0; i < 1'000'000 && finished_ < lanes_; ++i) {
      if (!executor_.step()) return false;
      give_verdicts();
    }
    return finished_ == lanes_;
  }

  std::map<BatchId, std::string> refused;
  std::map<BatchId, int> applied;
  std::vector<std::shared_ptr<Lane>> all_lanes;

 private:
  LaneOptions lane_options(uint32_t index) const {
    LaneOptions o;
    o.index = index;
    o.batch_max = kBatch;
    o.client.incarnation = tiny::kLife;
    o.client.shape.sparse_shards = tiny::kShards;
    return o;
  }
  void start_lane(uint32_t index) {
    NetOptions net;
    net.batch_max = kBatch;
    std::vector<std::shared_ptr<ServerPort>> ports;
    ClusterMap map;
    map.route = servers_->route;
    for (const auto& server : servers_->servers) {
      ports.push_back(server);
      map.servers.emplace_back("here");
    }
    std::vector<std::unique_ptr<Net>> nets;
    nets.push_back(std::move(Net::compile(servers_->graph, net)).value());
    auto lane = std::make_shared<Lane>(lane_options(index), &executor_, std::move(nets), map,
                                       reach_fixed(ports), nullptr, store_.get(), mode_.get());
    store_->set_wake(index, [this, lane] { executor_.post(0, [lane] { lane->notify(); }); });
    driver_.start(lane, [this] { ++finished_; });
    all_lanes.push_back(std::move(lane));
  }
  OpenBlock open(uint32_t block) const {
    OpenBlock out;
    out.lease.id = {0, 0, 0, block};
    out.evaluate = evaluate_;
    out.lease.batches = data_.geometry().batches_in(block);
    out.geometry = data_.geometry().hash();
    out.reader = std::move(data_.open_block(block, 0)).value();
    return out;
  }
  void add(uint32_t queue, OpenBlock block) {
    HeldBlock held;
    held.id = block.lease.id;
    held.lane = queue;
    held.evaluate = block.evaluate;
    store_->leased(queue, held, block.lease);
    store_->opening(queue, block.lease);
    store_->add(queue, std::move(block));
  }
  // Everything at once; in sync mode rounds of a block for each lane.
  void lease_all() {
    const uint32_t blocks = data_.blocks();
    for (uint32_t first = 0; first < blocks; first += lanes_) {
      SyncRound round;
      round.id = first + 1;
      round.lanes = lanes_;
      const uint32_t end = std::min(blocks, first + lanes_);
      for (uint32_t b = first; b < end; ++b)
        round.members.push_back({{0, 0, 0, b}, data_.geometry().batches_in(b), 0});
      for (uint32_t b = first; b < end; ++b) {
        OpenBlock block = open(b);
        for (uint32_t j = 0; sync_ && j < block.lease.batches; ++j) {
          auto step = std::make_shared<SyncStep>(sync_step(round, j));
          step->examples = uint64_t{kBatch} * lanes_;
          block.steps.push_back(std::move(step));
        }
        add(sync_ ? b - first : 0, std::move(block));
      }
    }
    for (uint32_t q = 0; q < store_->queues(); ++q) store_->end(q);
  }
  void give_verdicts() {
    const bool to_tell = store_->refused_to_tell();
    FinishedBatches finished = store_->take_finished();
    EXPECT_EQ(to_tell, !finished.refused.empty());
    for (const BatchId& id : finished.applied) ++applied[id];
    for (const RefusedBatch& batch : finished.refused) {
      EXPECT_TRUE(refused.emplace(batch.id, batch.reason).second) << "once";
      for (const auto& server : servers_->servers)
        server->mark(server->primaries(), data_.geometry().hash(), {{batch.id}}, Verdict::kSkipped,
                     [](const Status& status) { EXPECT_TRUE(status.is_ok()) << status.message(); });
    }
  }

  const Data& data_;
  Servers* servers_;
  const bool sync_;
  const bool evaluate_;
  const uint32_t lanes_;
  SimExecutor executor_{1};
  TaskLaneDriver driver_;
  std::unique_ptr<BlockStore> store_;
  std::unique_ptr<WorkerMode> mode_;
  uint32_t finished_ = 0;
};

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
  for (const char* mode : {"async", "half_async", "sync"})
    for (const uint32_t lanes : {1U, 3U}) {
      SCOPED_TRACE(std::string(mode) + " " + std::to_string(lanes));
      Servers servers(2, data.geometry().hash());
      Rig rig(mode, lanes, data, &servers);
      ASSERT_TRUE(rig.run()) << rig.all_lanes[0]->waits();
      for (const auto& lane : rig.all_lanes)
        EXPECT_TRUE(lane->status().is_ok()) << lane->status().message();
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
TEST(Refused, ATestLossThatIsNoNumberEndsTheLane) {
  std::vector<tiny::Example> examples = tiny::make_examples(960);
  examples[700].dense[0] = std::numeric_limits<float>::quiet_NaN();
  const Data data(examples, kBatch, kBlock);
  Servers servers(1, data.geometry().hash());
  Rig rig("async", 1, data, &servers, true);
  ASSERT_TRUE(rig.run());
  const Status& status = rig.all_lanes[0]->status();
  EXPECT_EQ(status.code(), Code::kInvalid);
  const std::string want = fmt::format("the record that is example {} of the batch", 700 % kBatch);
  EXPECT_NE(status.message().find(want), std::string::npos) << status.message();
  EXPECT_TRUE(rig.refused.empty());
}

}  // namespace
}  // namespace flux
