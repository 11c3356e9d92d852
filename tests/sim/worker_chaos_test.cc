// Workers in virtual time over a network that loses, doubles and reorders: the same agent,
// trainer and modes as with threads, the counters exact in every mode.
#include <memory>

#include <gtest/gtest.h>

#include "tests/sim/chaos.h"

namespace flux {
namespace {

using tiny::Chaos;
using tiny::Data;
using tiny::Master;
using tiny::Servers;
using tiny::Traffic;

struct Setting {
  std::string mode = "async";
  uint32_t workers = 2, servers = 2;
  uint32_t pull_ahead = 0;
  uint32_t pushes_max = 3;
  uint16_t epochs = 1;
};

class Cluster {
 public:
  Cluster(uint64_t seed, const Setting& setting, const Data& data_in, Chaos chaos_in)
      : executor(seed),
        chaos(chaos_in),
        data(data_in),
        servers(setting.servers, data_in.geometry().hash()),
        master(&executor, &data_in, &servers, setting.epochs, setting.mode == "sync"),
        job(&executor, &chaos, &master),
        offload_(&executor),
        setting_(setting) {
    for (uint32_t w = 0; w < setting.workers; ++w) start_worker();
  }
  struct Worker {
    std::unique_ptr<Traffic> traffic;
    std::unique_ptr<WorkerAgent> agent;
    std::optional<WorkerOutcome> outcome;
  };
  Worker* start_worker() {
    workers.push_back(std::make_unique<Worker>());
    Worker* worker = workers.back().get();
    AgentOptions options;
    options.join.name = "worker-" + std::to_string(workers.size());
    options.join.boot = workers.size();
    options.coordinator = "the coordinator at nowhere:1";
    options.report_auc = false;
    worker->agent = std::make_unique<WorkerAgent>(
        options, &executor, &job, &offload_, &driver_,
        [this, worker](const JoinReply&) -> Result<WorkerSetup> { return set_up(worker); });
    worker->agent->start([worker](const WorkerOutcome& outcome) { worker->outcome = outcome; });
    return worker;
  }
  // Gone without a word; its leases go back.
  void crash(size_t w) {
    workers[w]->agent.reset();
    workers[w]->outcome = WorkerOutcome{};
    LeaseRequest gone;
    gone.worker = master.by_boot[w + 1];
    master.leave(gone, {}, {}, [](const Status&) {});
    start_worker();
  }
  bool all_over() const {
    return std::all_of(workers.begin(), workers.end(),
                       [](const auto& worker) { return worker->outcome.has_value(); });
  }
  // Until every worker has left, or much more time than that can take has passed.
  bool run(TimeNs limit = 3600 * kSecond, const std::function<void()>& between = nullptr) {
    while (!all_over() && executor.now_ns() < limit && executor.step())
      if (between) between();
    return all_over();
  }

  SimExecutor executor;
  Chaos chaos;
  const Data& data;
  Servers servers;
  Master master;
  tiny::BadJob job;
  std::vector<std::unique_ptr<Worker>> workers;

 private:
  WorkerSetup set_up(Worker* worker) {
    WorkerSetup setup;
    setup.mode = setting_.mode;
    setup.trainer.pull_ahead = setting_.pull_ahead;
    setup.trainer.batch_max = data.geometry().batch_size;
    setup.trainer.metrics = false;
    setup.trainer.client.shape.sparse_shards = tiny::kShards;
    setup.trainer.client.session.pushes_max = setting_.pushes_max;
    NetOptions net;
    net.batch_max = data.geometry().batch_size;
    worker->traffic = std::make_unique<Traffic>();
    setup.executor = &executor;
    setup.team = std::make_shared<Team>(1);
    setup.nets.push_back(std::move(Net::compile(servers.graph, net)).value());
    std::vector<std::shared_ptr<ServerPort>> ports;
    for (const auto& server : servers.servers)
      ports.push_back(std::make_shared<tiny::BadServer>(&executor, &chaos, server.get(),
                                                        worker->traffic.get()));
    ports_.insert(ports_.end(), ports.begin(), ports.end());
    setup.reach = reach_fixed(std::move(ports));
    setup.open_dataset = [this](const Geometry&) {
      return std::shared_ptr<const Dataset>(std::shared_ptr<void>(), &data);
    };
    return setup;
  }

  std::vector<std::shared_ptr<ServerPort>> ports_;  // messages outlive a worker that crashed
  tiny::TaskOffload offload_;
  TaskTrainerDriver driver_;
  Setting setting_;
};

class ChaosTest : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Modes, ChaosTest, testing::Values("async", "sync"));

TEST_P(ChaosTest, EveryBatchIsAppliedOnce) {
  const Data data(600, 8, 30, 5);
  uint64_t resends = 0, duplicates = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Setting setting;
    setting.mode = GetParam();
    setting.pull_ahead = static_cast<uint32_t>(seed % 3);
    setting.epochs = 2;
    Cluster cluster(seed, setting, data, {});
    ASSERT_TRUE(cluster.run()) << "seed " << seed << ": still at "
                               << cluster.workers[0]->agent->report().waits;
    ASSERT_TRUE(cluster.master.complete()) << "seed " << seed;
    for (const auto& worker : cluster.workers) {
      EXPECT_TRUE(worker->outcome->status.is_ok()) << worker->outcome->status.message();
      resends += worker->outcome->report.resends;
      duplicates += worker->outcome->report.duplicates;
    }
    cluster.servers.expect_counts(data, 2);
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
  EXPECT_GT(resends, 100U);
  EXPECT_GT(duplicates, 100U);
}

// Workers die in the middle; others train what they had in hand.
TEST_P(ChaosTest, CrashesLoseNothing) {
  const Data data(600, 8, 30, 5);
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Setting setting;
    setting.mode = GetParam();
    Cluster cluster(seed, setting, data, {});
    int crashes = 0;
    TimeNs next = kSecond;
    ASSERT_TRUE(cluster.run(
        3600 * kSecond,
        [&] {
          if (cluster.executor.now_ns() < next || crashes == 4 || cluster.master.complete()) return;
          next += kSecond / 2;
          const size_t w = cluster.executor.random().below(cluster.workers.size());
          if (!cluster.workers[w]->agent || cluster.workers[w]->outcome) return;
          if (!cluster.master.by_boot.contains(w + 1)) return;
          cluster.crash(w);
          ++crashes;
        }))
        << "seed " << seed;
    ASSERT_TRUE(cluster.master.complete()) << "seed " << seed;
    cluster.servers.expect_counts(data, 1);
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
}

TEST(Bounds, OnePullAndOnePushPerServerAndBatch) {
  const Data data(600, 8, 40, 5);
  for (const char* mode : {"async", "sync"})
    for (const uint32_t ahead : {0U, 3U}) {
      Setting setting;
      setting.mode = mode;
      setting.workers = 1;
      setting.pull_ahead = ahead;
      Cluster cluster(7, setting, data, {0, 0, 30 * kMillisecond, 10 * kSecond});
      ASSERT_TRUE(cluster.run());
      const Traffic& traffic = *cluster.workers[0]->traffic;
      EXPECT_EQ(traffic.pulls_sent, data.geometry().batches() * 2) << mode;
      EXPECT_EQ(traffic.pushes_sent, data.geometry().batches() * 2) << mode;
      const bool async = std::string(mode) == "async";
      EXPECT_EQ(traffic.pulls_most, async ? 2 * (ahead + 1) : 2) << mode << " " << ahead;
      EXPECT_LE(traffic.pushes_most, async ? 2 * 3 : 2) << mode;
      EXPECT_EQ(cluster.workers[0]->outcome->report.resends, 0U);
    }
}

TEST(Bounds, PushesInFlightAreBoundedWhenAnswersAreSlow) {
  const Data data(600, 8, 40, 5);
  for (const uint32_t most : {1U, 2U, 4U}) {
    Setting setting;
    setting.workers = 1;
    setting.servers = 1;
    setting.pull_ahead = 4;
    setting.pushes_max = most;
    Cluster cluster(9, setting, data, {0, 0, 900 * kMillisecond, 10 * kSecond});
    ASSERT_TRUE(cluster.run());
    EXPECT_EQ(cluster.workers[0]->traffic->pulls_most, 5U);
    cluster.servers.expect_counts(data, 1);
    // Resends are of pushes that are in flight already.
    EXPECT_GE(cluster.workers[0]->traffic->pushes_most, most);
    EXPECT_LE(cluster.workers[0]->traffic->pushes_most, most * 3);
  }
}

TEST(Silence, ACoordinatorThatFallsSilentEndsTheWorkerWithThatReason) {
  const Data data(6000, 8, 240, 5);
  Cluster cluster(3, {}, data, {0, 0, 5 * kMillisecond, 400 * kMillisecond});
  ASSERT_FALSE(cluster.run(kSecond / 2));
  cluster.job.silent = true;
  const uint64_t before = cluster.workers[0]->agent->report().batches;
  ASSERT_TRUE(cluster.run(120 * kSecond)) << "it must not wait for ever";
  const WorkerOutcome& outcome = *cluster.workers[0]->outcome;
  EXPECT_EQ(outcome.status.code(), Code::kUnavailable);
  EXPECT_NE(outcome.status.message().find("the coordinator at nowhere:1 did not answer for 60 s"),
            std::string::npos)
      << outcome.status.message();
  EXPECT_GT(outcome.report.batches, before) << "it trained what it had";
}

TEST(Silence, ACoordinatorThatIsNeverThereIsSaidSo) {
  const Data data(60, 8, 40, 5);
  Cluster cluster(3, {}, data, {1, 0, 5 * kMillisecond, 400 * kMillisecond});
  ASSERT_TRUE(cluster.run(60 * kSecond));
  EXPECT_NE(cluster.workers[0]->outcome->status.message().find("did not answer for 20 s"),
            std::string::npos);
}

TEST(Silence, ServersThatFallSilentEndTheWorkerWithTheirNames) {
  const Data data(6000, 8, 240, 5);
  Cluster cluster(3, {}, data, {0, 0, 5 * kMillisecond, 400 * kMillisecond});
  ASSERT_FALSE(cluster.run(kSecond / 2));
  cluster.chaos.lost = 1;
  cluster.chaos.timeout = 100 * kMillisecond;
  cluster.job.perfect = true;
  ASSERT_TRUE(cluster.run(200 * kSecond)) << "it must not wait for ever";
  const WorkerOutcome& outcome = *cluster.workers[0]->outcome;
  EXPECT_EQ(outcome.status.code(), Code::kUnavailable);
  EXPECT_NE(outcome.status.message().find("server"), std::string::npos) << outcome.status.message();
}

}  // namespace
}  // namespace flux
