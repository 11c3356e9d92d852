// TrainerRig: trainers of several workers over real servers, in virtual time on one thread. It
// stands for their agents and the coordinator: it leases every block at once (in sync mode rounds
// of a block for each worker) and gives verdicts. For tests.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "flux/testing/sim_executor.h"
#include "flux/worker/block_store.h"
#include "flux/worker/trainer_driver.h"
#include "tests/sim/tiny_job.h"

namespace flux::tiny {

class TrainerRig {
 public:
  TrainerRig(const std::string& mode, uint32_t workers, const Data& data, Servers* servers,
             bool evaluate = false)
      : data_(data),
        servers_(servers),
        sync_(mode == "sync"),
        evaluate_(evaluate),
        mode_(std::move(make_mode(mode)).value()) {
    BlockStoreOptions options;
    options.only_when_idle = sync_;
    for (uint32_t i = 0; i < workers; ++i) {
      stores_.push_back(std::make_unique<BlockStore>(options));
      start_trainer(stores_.back().get());
    }
    lease_all();
  }

  // Until all trainers are finished; false: they wait for something.
  bool run() {
    for (int i = 0; i < 1'000'000 && finished_ < trainers.size(); ++i) {
      if (!executor_.step()) return false;
      for (const auto& store : stores_) give_verdicts(store.get());
    }
    return finished_ == trainers.size();
  }

  std::map<BatchId, std::string> refused;
  std::map<BatchId, int> applied;
  std::vector<std::shared_ptr<Trainer>> trainers;

 private:
  void start_trainer(BlockStore* store) {
    const uint32_t batch = data_.geometry().batch_size;
    TrainerOptions options;
    options.batch_max = batch;
    options.client.incarnation = kLife;
    options.client.shape.sparse_shards = kShards;
    NetOptions net;
    net.batch_max = batch;
    std::vector<std::shared_ptr<ServerPort>> ports;
    ClusterMap map;
    map.route = servers_->route;
    for (const auto& server : servers_->servers) {
      ports.push_back(server);
      map.servers.emplace_back("here");
    }
    std::vector<std::unique_ptr<Net>> nets;
    nets.push_back(std::move(Net::compile(servers_->graph, net)).value());
    auto trainer = std::make_shared<Trainer>(options, &executor_, &team_, std::move(nets), map,
                                             reach_fixed(ports), nullptr, store, mode_.get());
    store->set_wake([this, trainer] { executor_.post(0, [trainer] { trainer->notify(); }); });
    driver_.start(trainer, [this] { ++finished_; });
    trainers.push_back(std::move(trainer));
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
  static void add(BlockStore* store, OpenBlock block) {
    HeldBlock held;
    held.id = block.lease.id;
    held.evaluate = block.evaluate;
    store->leased(held, block.lease);
    store->opening(block.lease);
    store->add(std::move(block));
  }
  void lease_all() {
    const auto workers = static_cast<uint32_t>(stores_.size());
    for (uint32_t first = 0; first < data_.blocks(); first += workers) {
      SyncRound round;
      round.id = first + 1;
      round.lanes = workers;
      const uint32_t end = std::min(data_.blocks(), first + workers);
      for (uint32_t b = first; b < end; ++b)
        round.members.push_back({{0, 0, 0, b}, data_.geometry().batches_in(b), 0});
      for (uint32_t b = first; b < end; ++b) {
        OpenBlock block = open(b);
        for (uint32_t j = 0; sync_ && j < block.lease.batches; ++j) {
          auto step = std::make_shared<SyncStep>(sync_step(round, j));
          step->examples = uint64_t{data_.geometry().batch_size} * workers;
          block.steps.push_back(std::move(step));
        }
        add(stores_[b - first].get(), std::move(block));
      }
    }
    for (const auto& store : stores_) store->end();
  }
  void give_verdicts(BlockStore* store) {
    const bool to_tell = store->refused_to_tell();
    FinishedBatches finished = store->take_finished();
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
  SimExecutor executor_{1};
  Team team_{1};
  TaskTrainerDriver driver_;
  std::unique_ptr<Mode> mode_;
  std::vector<std::unique_ptr<BlockStore>> stores_;  // by worker
  uint32_t finished_ = 0;
};

}  // namespace flux::tiny
