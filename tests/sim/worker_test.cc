// A worker with threads: agent, trainer and team over real servers in this process.
#include <cmath>
#include <limits>
#include <mutex>

#include <gtest/gtest.h>

#include "flux/base/thread_executor.h"
#include "flux/worker/worker_threads.h"
#include "tests/sim/tiny_job.h"

namespace flux {
namespace {

using tiny::Data;
using tiny::Master;
using tiny::Servers;

struct Setting {
  std::string mode = "async";
  uint32_t threads = 1;
  uint32_t pull_ahead = 0;
  bool deterministic = false;
  bool separate_dense = false;
};

WorkerSetup set_up(const Setting& run, const Data& data, const Servers& servers) {
  WorkerSetup setup;
  setup.mode = run.mode;
  setup.deterministic = run.deterministic;
  setup.trainer.pull_ahead = run.pull_ahead;
  setup.trainer.separate_dense = run.separate_dense;
  setup.trainer.batch_max = data.geometry().batch_size;
  setup.trainer.client.shape.sparse_shards = tiny::kShards;
  setup.team = std::make_shared<Team>(run.threads);
  NetOptions net;
  net.batch_max = data.geometry().batch_size;
  net.team = setup.team.get();
  setup.nets.push_back(std::move(Net::compile(servers.graph, net)).value());
  std::vector<std::shared_ptr<ServerPort>> ports;
  for (const auto& server : servers.servers)
    ports.push_back(std::make_shared<tiny::Straight>(server.get()));
  setup.reach = reach_fixed(std::move(ports));
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
  options.join.threads = run.threads;
  WorkerThreads worker(options, control, master, std::make_unique<ThreadExecutor>(),
                       [&](const JoinReply&) { return set_up(run, data, servers); });
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
  for (const uint32_t threads : {1U, 2U, 5U})
    for (const uint32_t ahead : {0U, 2U})
      for (const uint32_t servers : {1U, 2U}) {
        const Setting run{"async", threads, ahead, false, ahead > 0 && servers == 1};
        const Trained trained(run, servers, data, 2);
        trained.servers.expect_counts(data, 2);
        EXPECT_EQ(trained.outcome.report.examples, 6000U);
        EXPECT_EQ(trained.outcome.report.batches, data.geometry().batches() * 2);
        EXPECT_EQ(trained.outcome.report.duplicates, 0U);
        EXPECT_GT(trained.outcome.report.train_auc.value_or(0), 0.6) << "it learns";
      }
}

// The same training as a loop: one weight per key, one per dense feature, a bias.
struct Reference {
  std::map<uint64_t, double> weight;
  double dense[tiny::kDense] = {};
  double bias = 0;
  double loss = 0;

  void train(const Data& dataset, uint32_t epochs) {
    for (uint32_t epoch = 0; epoch < epochs; ++epoch)
      for (uint32_t block = 0; block < static_cast<uint32_t>(dataset.geometry().blocks.size());
           ++block) {
        const auto reader = std::move(dataset.open_block(block, epoch)).value();
        for (uint32_t b = 0; b < dataset.geometry().batches_in(block); ++b) {
          Batch batch;
          EXPECT_TRUE(reader->read_batch(b, &batch).is_ok());
          step(batch);
        }
      }
  }
  void step(const Batch& batch) {
    std::map<uint64_t, double> weight_gradient;
    double dense_gradient[tiny::kDense] = {}, bias_gradient = 0;
    for (uint32_t i = 0; i < batch.size; ++i) {
      double z = bias;
      for (uint32_t s = 0; s < tiny::kSlots; ++s) z += weight[batch.keys[i * tiny::kSlots + s]];
      for (uint32_t d = 0; d < tiny::kDense; ++d)
        z += dense[d] * batch.dense_values[i * tiny::kDense + d];
      const double p = 1 / (1 + std::exp(-z));
      loss -= batch.labels[i] > 0.5F ? std::log(p) : std::log(1 - p);
      const double g = (p - batch.labels[i]) / batch.size;
      for (uint32_t s = 0; s < tiny::kSlots; ++s)
        weight_gradient[batch.keys[i * tiny::kSlots + s]] += g;
      for (uint32_t d = 0; d < tiny::kDense; ++d)
        dense_gradient[d] += g * batch.dense_values[i * tiny::kDense + d];
      bias_gradient += g;
    }
    for (const auto& [key, g] : weight_gradient) weight[key] -= tiny::kRate * g;
    for (uint32_t d = 0; d < tiny::kDense; ++d) dense[d] -= tiny::kRate * dense_gradient[d];
    bias -= tiny::kRate * bias_gradient;
  }
};

TEST(WorkerThreads, EqualsAPlainLoop) {
  constexpr uint32_t kEpochs = 2;
  const Data data(1000, 16, 70, 5);
  Reference reference;
  const Servers fresh(1, data.geometry().hash());
  const std::vector<float> initial = fresh.graph->initial_parameters(1);
  std::map<std::string, size_t> offset;
  for (const Parameter& p : fresh.graph->parameters()) offset[p.name] = p.offset;
  for (uint32_t d = 0; d < tiny::kDense; ++d)
    reference.dense[d] = initial[offset.at("linear.weight") + d];
  reference.bias = initial[offset.at("linear.bias")];
  reference.train(data, kEpochs);

  const Trained trained(Setting{"async", 1, 0, true}, 1, data, kEpochs);
  for (const auto& [key, w] : trained.servers.weights(data))
    EXPECT_NEAR(w, reference.weight.at(key), 1e-5) << key;
  const std::vector<float> dense = trained.servers.dense();
  for (uint32_t d = 0; d < tiny::kDense; ++d)
    EXPECT_NEAR(dense[offset.at("linear.weight") + d], reference.dense[d], 1e-5);
  EXPECT_NEAR(dense[offset.at("linear.bias")], reference.bias, 1e-5);
  EXPECT_NEAR(trained.outcome.report.loss_sum, reference.loss, 1e-2);
}

// Neither threads nor servers show in the model, in no bit.
TEST(WorkerThreads, TheSameBitsWithAnyNumberOfThreadsAndServers) {
  const Data data(3000, 300, 1500, 5);
  for (const char* mode : {"async", "sync"}) {
    const Trained first({mode, 1}, 1, data, 2);
    const uint64_t want = first.servers.servers[0]->content_hash();
    for (const uint32_t threads : {1U, 2U, 3U, 8U})
      for (const uint32_t servers : {1U, 2U}) {
        const Trained other({mode, threads, 0, threads == 3}, servers, data, 2);
        uint64_t hash = 0;
        for (const auto& server : other.servers.servers) hash += server->content_hash();
        EXPECT_EQ(hash, want) << mode << ", " << threads << " threads, " << servers << " servers";
      }
  }
}

TEST(WorkerThreads, StoppedAndContinuedTrainsEveryExampleOnce) {
  const Data data(20000, 16, 200, 5);
  for (const char* mode : {"async", "half_async", "sync"}) {
    const Setting run{mode, 2};
    const Servers servers(2, data.geometry().hash());
    ThreadExecutor control;
    Master master(&control, &data, &servers, 1, std::string(mode) == "sync");
    master.stop_after = 100;
    const WorkerOutcome stopped = train(run, data, servers, &master, &control, 1);
    EXPECT_TRUE(stopped.status.is_ok()) << stopped.status.message();
    EXPECT_FALSE(master.complete()) << mode;
    EXPECT_LT(stopped.report.examples, 20000U);
    EXPECT_GE(stopped.report.batches, 100U);
    EXPECT_EQ(master.unsaid(), 0U) << mode << ": what is applied was told";
    master.go_on();
    const WorkerOutcome ended = train(run, data, servers, &master, &control, 2);
    EXPECT_TRUE(ended.status.is_ok()) << ended.status.message();
    EXPECT_TRUE(master.complete());
    EXPECT_EQ(stopped.report.examples + ended.report.examples, 20000U) << mode;
    EXPECT_EQ(stopped.report.duplicates + ended.report.duplicates, 0U) << mode;
    servers.expect_counts(data, 1);
  }
}

TEST(WorkerThreads, EvaluationEqualsAPlainLoop) {
  const Data data(1000, 16, 70, 5);
  for (const char* mode : {"async", "sync"}) {
    const Servers servers(2, data.geometry().hash());
    ThreadExecutor control;
    Master master(&control, &data, &servers, 1, std::string(mode) == "sync", true);
    const WorkerOutcome outcome = train({mode, 3, 1}, data, servers, &master, &control);
    ASSERT_TRUE(outcome.status.is_ok()) << outcome.status.message();
    servers.expect_counts(data, 1);  // predicting changed nothing
    const std::map<uint64_t, float> weights = servers.weights(data);
    const std::vector<float> dense = servers.dense();
    std::map<std::string, size_t> offset;
    for (const Parameter& p : servers.graph->parameters()) offset[p.name] = p.offset;
    MetricSet expected;
    for (const tiny::Example& e : data.examples()) {
      double z = dense[offset["linear.bias"]];
      for (const uint64_t key : e.keys) z += weights.at(key);
      for (uint32_t d = 0; d < tiny::kDense; ++d)
        z += dense[offset["linear.weight"] + d] * e.dense[d];
      const auto p = static_cast<float>(1 / (1 + std::exp(-z)));
      const KeyedBatch one{{}, {{&p, 1}, {&e.label, 1}, {}, {}}};
      ASSERT_TRUE(expected.add(1, 0, {&one, 1}).is_ok());
    }
    EXPECT_EQ(master.metrics.examples(), 1000U);
    const MetricReport got = master.metrics.report(), plain = expected.report();
    EXPECT_NEAR(*got.whole()->log_loss, *plain.whole()->log_loss, 1e-5);
    EXPECT_NEAR(got.loss, *plain.whole()->log_loss, 1e-5) << "the network's own";
    EXPECT_NEAR(*got.whole()->auc, *plain.whole()->auc, 1e-4);
    EXPECT_EQ(outcome.report.examples, 1000U) << "evaluated batches are not trained ones";
  }
}

// Its first pull is answered when somebody says so.
class HeldPull final : public ServerPort {
 public:
  explicit HeldPull(ServerPort* port) : port_(port) {}
  void pull(const PullRequest& r, std::function<void(const PullReply&)> done) override {
    {
      const std::lock_guard lock(mutex_);
      if (!began_) {
        began_ = true;
        held_ = std::move(done);
        return;
      }
    }
    port_->pull(r, std::move(done));
  }
  void push(const PushRequest& r, std::function<void(const PushReply&)> done) override {
    port_->push(r, std::move(done));
  }
  void release() {
    std::function<void(const PullReply&)> held;
    {
      const std::lock_guard lock(mutex_);
      held.swap(held_);
    }
    if (held) held({Status(Code::kUnavailable, "ask again")});
  }

 private:
  ServerPort* port_;
  std::mutex mutex_;
  bool began_ = false;
  std::function<void(const PullReply&)> held_;
};

// The coordinator is told of a server that owes an answer, and no more once it has answered.
TEST(WorkerThreads, AServerThatDoesNotAnswerIsNamedInReports) {
  const Data data(300, 16, 70, 5);
  const Servers servers(2, data.geometry().hash());
  const auto slow = std::make_shared<HeldPull>(servers.servers[1].get());
  ThreadExecutor control;
  Master master(&control, &data, &servers, 1, false);
  std::vector<ServerId> named;
  master.on_report = [&](const WorkerReport& report) {
    if (report.suspects.empty()) return;
    named = report.suspects;
    slow->release();  // else it would train nothing
  };
  AgentOptions options;
  options.join.name = "worker-0";
  options.join.boot = 1;
  WorkerThreads worker(
      options, &control, &master, std::make_unique<ThreadExecutor>(), [&](const JoinReply&) {
        WorkerSetup setup = set_up({}, data, servers);
        setup.reach =
            reach_fixed({std::make_shared<tiny::Straight>(servers.servers[0].get()), slow});
        return setup;
      });
  const WorkerOutcome outcome = worker.run();
  EXPECT_TRUE(outcome.status.is_ok()) << outcome.status.message();
  EXPECT_EQ(named, std::vector<ServerId>{1});
  servers.expect_counts(data, 1);
}

TEST(WorkerThreads, AnUnknownModeIsRefused) {
  const Data data(100, 16, 80);
  const Servers servers(1, data.geometry().hash());
  ThreadExecutor control;
  Master master(&control, &data, &servers, 1, false);
  const WorkerOutcome outcome = train({"geo", 2}, data, servers, &master, &control);
  EXPECT_EQ(outcome.status.code(), Code::kInvalid);
  EXPECT_NE(outcome.status.message().find("async, half_async, sync"), std::string::npos)
      << outcome.status.message();
}

}  // namespace
}  // namespace flux
