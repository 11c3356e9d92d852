// Worker, client, server and coordinator together on a tiny data set in memory, against a plain
// loop over single numbers.
#include <cmath>
#include <map>
#include <memory>
#include <numeric>

#include <gtest/gtest.h>

#include "flux/base/random.h"
#include "flux/coordinator/coordinator.h"
#include "flux/nn/graph.h"
#include "flux/server/server.h"
#include "flux/worker/worker.h"

namespace flux {
namespace {

constexpr uint32_t kSlots = 3, kDense = 2, kBatch = 16, kShards = 4;
constexpr float kRate = 0.5F;
constexpr uint64_t kLife = 3;

struct Example {
  float label;
  float dense[kDense];
  uint64_t keys[kSlots];
};

// Labels follow the parity of the first key, so that there is something to learn.
std::vector<Example> make_examples(size_t n) {
  Random random(17);
  std::vector<Example> out(n);
  for (Example& e : out) {
    for (uint64_t& key : e.keys) key = random.below(60);
    for (float& x : e.dense) x = static_cast<float>(random.normal());
    e.label = random.chance(e.keys[0] % 2 == 0 ? 0.9 : 0.1) ? 1.0F : 0.0F;
  }
  return out;
}

class MemoryReader final : public BlockReader {
 public:
  MemoryReader(const std::vector<Example>* examples, const Geometry* g, uint32_t block,
               uint32_t epoch)
      : examples_(examples), geometry_(g), block_(block), order_(block_order(*g, block, epoch)) {}
  Status read_batch(uint32_t batch, Batch* out) const override {
    *out = Batch{};
    out->size = geometry_->batch_records(block_, batch);
    out->slots = kSlots;
    out->dense = kDense;
    for (uint32_t i = 0; i < out->size; ++i) {
      const Example& e =
          (*examples_)[geometry_->blocks[block_].first_record + order_[batch * kBatch + i]];
      out->labels.push_back(e.label);
      out->dense_values.insert(out->dense_values.end(), e.dense, e.dense + kDense);
      out->keys.insert(out->keys.end(), e.keys, e.keys + kSlots);
    }
    return Status::ok();
  }

 private:
  const std::vector<Example>* examples_;
  const Geometry* geometry_;
  uint32_t block_;
  std::vector<uint32_t> order_;
};

class MemoryDataset final : public Dataset {
 public:
  explicit MemoryDataset(size_t n) : examples(make_examples(n)) {
    geometry_.format = "memory";
    geometry_.batch_size = kBatch;
    geometry_.shuffle_seed = 5;
    geometry_.files = {{"memory", n, n, false}};
    for (uint64_t at = 0; at < n; at += 70)  // five batches a block, the last of six examples
      geometry_.blocks.push_back({0, at, std::min<uint64_t>(n, at + 70), at,
                                  static_cast<uint32_t>(std::min<uint64_t>(70, n - at))});
  }
  const Geometry& geometry() const override { return geometry_; }
  uint32_t slots() const override { return kSlots; }
  uint32_t dense() const override { return kDense; }
  Result<std::unique_ptr<BlockReader>> open_block(uint32_t block, uint32_t epoch) const override {
    return std::unique_ptr<BlockReader>(
        std::make_unique<MemoryReader>(&examples, &geometry_, block, epoch));
  }
  uint32_t blocks() const { return static_cast<uint32_t>(geometry_.blocks.size()); }

  const std::vector<Example> examples;

 private:
  Geometry geometry_;
};

std::shared_ptr<const Graph> logistic_regression() {
  GraphBuilder builder({kSlots, kDense, {{"weight", 1}}});
  const auto add = [&](const char* name, const char* op, std::vector<std::string> inputs,
                       std::map<std::string, AttrValue> attrs) {
    const Status status = builder.add({name, op, std::move(inputs), std::move(attrs), ""});
    EXPECT_TRUE(status.is_ok()) << status.message();
  };
  add("sparse", "embedding", {},
      {{"table", std::string("weight")}, {"combine", std::string("sum")}});
  add("linear", "fc", {"dense"}, {{"units", int64_t{1}}});
  add("logit", "add", {"sparse", "linear"}, {});
  add("loss", "logistic_loss", {"logit", "label"}, {});
  auto graph = builder.finish();
  EXPECT_TRUE(graph.is_ok()) << graph.status().message();
  return graph.value();
}

class Job {
 public:
  explicit Job(uint32_t threads, size_t examples = 1000) : dataset(examples) {
    ServerOptions o;
    o.shards = kShards;
    o.tables.resize(1);
    o.tables[0].name = "weight";
    o.tables[0].dim = 1;
    o.tables[0].init = "zero";
    o.tables[0].optimizer = {.rule = "sgd", .lr = kRate};
    o.dense_optimizer = {.rule = "sgd", .lr = kRate};
    o.parameters = graph->parameter_count();
    o.incarnation = kLife;
    o.epoch = {1, 0};
    server = std::move(Server::create(o)).value();
    server->init_dense(graph->initial_parameters(1));
    EXPECT_TRUE(server->open_pass(0, dataset.geometry().hash()).is_ok());
    coordinator = std::make_unique<Coordinator>(server->shard_count(), o.epoch);
    options.threads = threads;
    options.trainer.graph = graph;
    options.trainer.net.batch_max = kBatch;
    options.trainer.sparse_shards = kShards;
    options.trainer.client.incarnation = kLife;
    worker = std::move(Worker::create(options, {server.get()}, coordinator.get())).value();
  }
  // Blocks in rising order, without those that every shard has.
  void begin(uint16_t epoch) const {
    const BlockId section{0, 0, epoch, 0};
    std::vector<uint8_t> batches;
    for (uint32_t b = 0; b < dataset.blocks(); ++b)
      batches.push_back(static_cast<uint8_t>(dataset.geometry().batches_in(b)));
    std::vector<uint32_t> order(batches.size());
    std::iota(order.begin(), order.end(), 0U);
    coordinator->begin_section(section, batches, order,
                               server->marked_by_all(section, dataset.blocks()), true);
  }
  Status train(uint16_t epochs) const {
    for (uint16_t epoch = 0; epoch < epochs; ++epoch) {
      begin(epoch);
      FLUX_RETURN_IF_ERROR(worker->run_section(dataset, nullptr));
      EXPECT_TRUE(coordinator->section_applied());
    }
    return Status::ok();
  }
  // Every occurrence of every key was counted `epochs` times, on every row.
  void expect_counts(uint32_t epochs) const {
    std::map<Key, uint32_t> expected;
    for (const Example& e : dataset.examples)
      for (const uint64_t key : e.keys) expected[key] += epochs;
    std::map<Key, uint32_t> found;
    server->for_each_row([&](Key key, uint32_t count) { found[key] = count; });
    EXPECT_EQ(found, expected);
    EXPECT_EQ(server->totals().dense_examples_min, dataset.examples.size() * epochs);
    EXPECT_EQ(server->totals().dense_examples_max, dataset.examples.size() * epochs);
  }

  MemoryDataset dataset;
  std::shared_ptr<const Graph> graph = logistic_regression();
  std::unique_ptr<Server> server;
  std::unique_ptr<Coordinator> coordinator;
  WorkerOptions options;
  std::unique_ptr<Worker> worker;
};

// The same training as a loop: one weight per key, one per dense feature, a bias.
struct Reference {
  std::map<uint64_t, double> weight;
  double dense[kDense] = {};
  double bias = 0;
  double loss = 0;

  void train(const MemoryDataset& dataset, uint32_t epochs) {
    for (uint32_t epoch = 0; epoch < epochs; ++epoch)
      for (uint32_t block = 0; block < dataset.blocks(); ++block) {
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
    double dense_gradient[kDense] = {}, bias_gradient = 0;
    for (uint32_t i = 0; i < batch.size; ++i) {
      double z = bias;
      for (uint32_t s = 0; s < kSlots; ++s) z += weight[batch.keys[i * kSlots + s]];
      for (uint32_t d = 0; d < kDense; ++d) z += dense[d] * batch.dense_values[i * kDense + d];
      const double p = 1 / (1 + std::exp(-z));
      loss -= batch.labels[i] > 0.5F ? std::log(p) : std::log(1 - p);
      const double g = (p - batch.labels[i]) / batch.size;
      for (uint32_t s = 0; s < kSlots; ++s) weight_gradient[batch.keys[i * kSlots + s]] += g;
      for (uint32_t d = 0; d < kDense; ++d)
        dense_gradient[d] += g * batch.dense_values[i * kDense + d];
      bias_gradient += g;
    }
    for (const auto& [key, g] : weight_gradient) weight[key] -= kRate * g;
    for (uint32_t d = 0; d < kDense; ++d) dense[d] -= kRate * dense_gradient[d];
    bias -= kRate * bias_gradient;
  }
};

TEST(Training, OneThreadEqualsAPlainLoop) {
  constexpr uint32_t kEpochs = 2;
  const Job job(1);
  Reference reference;
  std::vector<float> initial = job.graph->initial_parameters(1);
  std::map<std::string, size_t> offset;
  for (const Parameter& p : job.graph->parameters()) offset[p.name] = p.offset;
  ASSERT_EQ(offset.size(), 2U);
  for (uint32_t d = 0; d < kDense; ++d) reference.dense[d] = initial[offset["linear.weight"] + d];
  reference.bias = initial[offset["linear.bias"]];
  reference.train(job.dataset, kEpochs);

  ASSERT_TRUE(job.train(kEpochs).is_ok());
  job.expect_counts(kEpochs);
  std::vector<ShardId> shards(job.server->shard_count());
  std::iota(shards.begin(), shards.end(), 0U);
  std::vector<float> dense(job.graph->parameter_count());
  KeyPlan plan(kShards);
  std::vector<uint64_t> keys;
  for (const auto& [key, w] : reference.weight) keys.push_back(key);
  plan.build(keys);
  std::vector<float> rows(plan.unique());
  std::vector<float*> out = {rows.data()};
  job.server->pull({kLife, shards, plan.sharded(), out, dense.data()},
                   [](const PullReply& reply) { EXPECT_TRUE(reply.status.is_ok()); });
  for (size_t i = 0; i < keys.size(); ++i)
    EXPECT_NEAR(rows[plan.index()[i]], reference.weight[keys[i]], 1e-5) << keys[i];
  for (uint32_t d = 0; d < kDense; ++d)
    EXPECT_NEAR(dense[offset["linear.weight"] + d], reference.dense[d], 1e-5);
  EXPECT_NEAR(dense[offset["linear.bias"]], reference.bias, 1e-5);

  const Progress progress = job.worker->progress();
  EXPECT_EQ(progress.examples, job.dataset.examples.size() * kEpochs);
  EXPECT_EQ(progress.batches, job.dataset.geometry().batches() * kEpochs);
  EXPECT_EQ(progress.duplicates, 0U);
  EXPECT_NEAR(progress.metrics.log_loss(), reference.loss / static_cast<double>(progress.examples),
              1e-4);
  EXPECT_GT(progress.metrics.auc(), 0.6) << "it learns";
}

TEST(Training, OneThreadGivesTheSameBitsEveryTime) {
  const Job first(1), second(1);
  ASSERT_TRUE(first.train(2).is_ok());
  ASSERT_TRUE(second.train(2).is_ok());
  EXPECT_EQ(first.server->content_hash(), second.server->content_hash());
}

TEST(Training, ManyThreadsTrainEveryExampleOnce) {
  for (const uint32_t threads : {2U, 4U, 7U}) {
    const Job job(threads, 3000);
    ASSERT_TRUE(job.train(2).is_ok());
    job.expect_counts(2);
    EXPECT_EQ(job.worker->examples(), 6000U);
  }
}

TEST(Training, StoppedAndContinuedTrainsEveryExampleOnce) {
  const Job job(1);
  std::atomic<bool> stop{false};
  int batches = 0;
  job.worker->set_between_batches([&] { stop = ++batches == 33; });
  job.begin(0);
  ASSERT_TRUE(job.worker->run_section(job.dataset, &stop).is_ok());
  EXPECT_EQ(batches, 33);
  EXPECT_FALSE(job.coordinator->section_applied());
  job.begin(0);
  stop = false;
  ASSERT_TRUE(job.worker->run_section(job.dataset, &stop).is_ok());
  EXPECT_TRUE(job.coordinator->section_applied());
  EXPECT_EQ(job.worker->examples(), job.dataset.examples.size());
  job.expect_counts(1);
}

// Another worker trains it all once more, as a zombie would: nothing moves.
TEST(Training, AZombieChangesNothing) {
  const Job job(2);
  ASSERT_TRUE(job.train(1).is_ok());
  const uint64_t before = job.server->content_hash();
  Coordinator forgetful(job.server->shard_count(), {1, 0});
  auto zombie = std::move(Worker::create(job.options, {job.server.get()}, &forgetful)).value();
  std::vector<uint32_t> order(job.dataset.blocks());
  std::iota(order.begin(), order.end(), 0U);
  std::vector<uint8_t> batches;
  for (const uint32_t b : order)
    batches.push_back(static_cast<uint8_t>(job.dataset.geometry().batches_in(b)));
  forgetful.begin_section({0, 0, 0, 0}, batches, order, std::vector<uint32_t>(order.size(), 0),
                          false);
  ASSERT_TRUE(zombie->run_section(job.dataset, nullptr).is_ok());
  EXPECT_EQ(zombie->examples(), job.dataset.examples.size());
  EXPECT_EQ(zombie->progress().duplicates,
            job.dataset.geometry().batches() * job.server->shard_count());
  EXPECT_EQ(job.server->content_hash(), before);
}

TEST(Training, AWorkerOfAFormerLifeStops) {
  const Job job(3);
  WorkerOptions old = job.options;
  old.trainer.client.incarnation = kLife - 1;
  auto worker = std::move(Worker::create(old, {job.server.get()}, job.coordinator.get())).value();
  const uint64_t before = job.server->content_hash();
  job.begin(0);
  EXPECT_EQ(worker->run_section(job.dataset, nullptr).code(), Code::kStale);
  EXPECT_EQ(job.server->content_hash(), before);
}

}  // namespace
}  // namespace flux
