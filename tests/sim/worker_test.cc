// Workers with threads: agent, lanes and modes over real servers in this process.
#include "flux/worker/worker_threads.h"

#include <gtest/gtest.h>

#include "flux/base/thread_executor.h"
#include "tests/sim/tiny_job.h"

namespace flux {
namespace {

using tiny::Data;
using tiny::Master;
using tiny::Servers;

struct Setting {
  std::string mode = "async";
  uint32_t lanes = 1;
  uint32_t pull_ahead = 0;
  bool deterministic = false;
  bool separate_dense = false;
};

WorkerSetup set_up(const Setting& run, const Data& data, const Servers& servers,
                   const std::vector<WaitingExecutor*>& executors) {
  WorkerSetup setup;
  setup.mode = run.mode;
  setup.deterministic = run.deterministic;
  setup.lane.pull_ahead = run.pull_ahead;
  setup.lane.separate_dense = run.separate_dense;
  setup.lane.batch_max = data.geometry().batch_size;
  setup.lane.client.sparse_shards = tiny::kShards;
  NetOptions net;
  net.batch_max = data.geometry().batch_size;
  for (WaitingExecutor* executor : executors) {
    LaneSetup lane;
    lane.executor = executor;
    lane.net = std::move(Net::compile(servers.graph, net)).value();
    for (const auto& server : servers.servers)
      lane.servers.push_back(std::make_shared<tiny::Straight>(server.get()));
    setup.lanes.push_back(std::move(lane));
  }
  setup.open_dataset = [&data](const Geometry&) {
    return std::shared_ptr<const Dataset>(std::shared_ptr<void>(), &data);
  };
  return setup;
}

WorkerOutcome train(const Setting& run, const Data& data, const Servers& servers, Master* master,
                    WaitingExecutor* control, uint64_t boot = 1) {
  AgentOptions options;
  options.join.name = "worker-0";
  options.join.boot = boot;
  options.join.lanes = run.lanes;
  WorkerThreads worker(
      options, control, master, [] { return std::make_unique<ThreadExecutor>(); },
      [&](const JoinReply&, const std::vector<WaitingExecutor*>& executors) {
        return set_up(run, data, servers, executors);
      });
  return worker.run();
}

struct Trained {
  explicit Trained(const Setting& run, uint32_t server_count, const Data& data, uint16_t epochs)
      : servers(server_count, data.geometry().hash()) {
    ThreadExecutor control;
    Master master(&control, &data, &servers, epochs, run.mode == "sync");
    outcome = train(run, data, servers, &master, &control);
    EXPECT_TRUE(outcome.status.is_ok()) << outcome.status.message();
    EXPECT_TRUE(master.complete());
    EXPECT_EQ(master.left.size(), 1U);
    EXPECT_EQ(master.geometries_asked, 1);
  }
  Servers servers;
  WorkerOutcome outcome;
};

TEST(WorkerThreads, AsyncTrainsEveryBatchOnce) {
  const Data data(3000, 16, 70, 5);
  for (const uint32_t lanes : {1U, 2U, 5U})
    for (const uint32_t ahead : {0U, 2U})
      for (const uint32_t servers : {1U, 2U}) {
        const Setting run{"async", lanes, ahead, false, ahead > 0 && servers == 1};
        const Trained trained(run, servers, data, 2);
        trained.servers.expect_counts(data, 2);
        EXPECT_EQ(trained.outcome.report.examples, 6000U);
        EXPECT_EQ(trained.outcome.report.batches, data.geometry().batches() * 2);
        EXPECT_EQ(trained.outcome.report.duplicates, 0U);
        EXPECT_GT(trained.outcome.report.train_auc, 0.6) << "it learns";
      }
}

}  // namespace
}  // namespace flux
