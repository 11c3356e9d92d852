// What a change of the number of workers does to the model, by rule of the learning rate: one run,
// one JSON line.
//
//   lr_policy_bench JOB TRAIN TEST MODE LR WARMUP WORKERS SEED
//
// WORKERS is a list such as 1,2,4,1: equal parts of the data are trained by so many workers. They
// are simulated on one thread over the real server, net, merge and policy, so that a seed gives the
// same run on any machine:
//   async       a worker drawn at random pushes the batch that it pulled for at its last turn, then
//               pulls for the next: k workers are k - 1 pushes late on average
//   half_async  the same with two batches per worker, merged into one push
//   sync        all workers compute with the same rows, one push of the mean
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>

#include "flux/api/dense_shards.h"
#include "flux/base/hash.h"
#include "flux/base/random.h"
#include "flux/base/text.h"
#include "flux/client/merge.h"
#include "flux/cluster/lr_policy.h"
#include "flux/job/job.h"
#include "flux/metrics/progressive.h"
#include "flux/nn/net.h"
#include "flux/server/server.h"
#include "flux/worker/batch_work.h"
#include "flux/worker/finite_check.h"

namespace flux {
namespace {

constexpr uint32_t kShards = 16;
constexpr uint64_t kLife = 1;
constexpr uint32_t kLanes = 2;  // of a worker in half_async

struct Settings {
  std::string job, train, test, mode;
  LrPolicyOptions policy;
  std::vector<uint32_t> workers;
  uint64_t seed = 1;
};

template <typename T>
T must(Result<T> result) {
  if (result.is_ok()) return std::move(result).value();
  std::fprintf(stderr, "lr_policy_bench: %s\n", result.status().message().c_str());
  std::exit(1);
}

std::unique_ptr<Dataset> open_data(const std::string& path, DataOptions options) {
  const std::vector<std::string> files = {path};
  return must(Dataset::open(must(Dataset::scan(files, options, 1)), options));
}

// A batch that is pulled for, with the dense values of that moment.
struct InHand {
  explicit InHand(const ModelShape& shape) : work(shape) {
    work.dense = std::make_shared<Buffer<float>>(shape.parameters);
  }
  BatchWork work;
};

// The model: real server, real net.
class Model {
 public:
  explicit Model(const Settings& s) : job_(load(s)) {
    train_ = open_data(s.train, job_.data);
    DataOptions test = job_.data;
    test.shuffle = false;
    test_ = open_data(s.test, test);
    graph_ = must(build_graph(job_, train_->features()));
    for (const std::string& table : graph_->tables())
      dims_.push_back(graph_->inputs().tables.at(table));
    ServerOptions o;
    o.shards = kShards;
    o.tables = job_.tables;
    o.dense_optimizer = job_.dense_optimizer;
    o.parameters = graph_->parameter_count();
    o.incarnation = kLife;
    server_ = must(Server::create(o));
    server_->init_dense(graph_->initial_parameters(job_.seed));
    server_->open_pass(server_->primaries(), 0, train_->geometry().hash(),
                       [](const Status& opened) {
                         if (!opened.is_ok()) std::exit(1);
                       });
    NetOptions net;
    net.precision = must(choose_precision(job_.precision));
    net.batch_max = job_.data.batch_size;
    net_ = must(Net::compile(graph_, net));
    shards_.resize(server_->shard_count());
    std::iota(shards_.begin(), shards_.end(), 0U);
    epochs_.assign(shards_.size(), o.epoch);
    predictions_.resize_discard(job_.data.batch_size);
  }

  const Geometry& geometry() const { return train_->geometry(); }
  std::unique_ptr<InHand> hand() const { return std::make_unique<InHand>(shape()); }

  void take(const BatchId& id, float scale, InHand* hand) {
    BatchWork& work = hand->work;
    if (!reader_ || block_ != id.block.block) {
      reader_ = must(train_->open_block(id.block.block, 0));
      block_ = id.block.block;
    }
    work.item.id = id;
    work.item.lr_scale = scale;
    work.item.reader = reader_;
    if (!reader_->read_batch(id.batch, &work.batch).is_ok()) std::exit(1);
    pull(&work);
  }

  // False: refused.
  bool compute(InHand* hand) {
    BatchWork& work = hand->work;
    NetGradients gradients;
    gradients.parameters = work.dense_gradient.data();
    for (Buffer<float>& table : work.row_gradients) gradients.tables.push_back(table.data());
    net_->set_parameters(work.dense->data());
    const double loss = net_->train(input(work), &gradients, predictions_.data());
    std::vector<uint32_t> tables(work.rows.size());
    std::iota(tables.begin(), tables.end(), 0U);
    return why_refused({&work, graph_.get(), tables, loss, predictions_.data(), work.dense->data()})
        .empty();
  }

  // One push of the mean.
  void push(const std::vector<InHand*>& hands) {
    if (hands.empty()) return;
    std::vector<PushPart> parts;
    std::vector<uint64_t> examples;
    for (const InHand* hand : hands) {
      parts.push_back(hand->work.part());
      examples.push_back(hand->work.batch.size);
    }
    const std::vector<float> weights = mean_weights(examples);
    for (size_t i = 0; i < parts.size(); ++i) parts[i].weight = weights[i];
    MergedPush merged(shape());
    merged.merge(parts);
    PushRequest request;
    request.claim = {kLife, geometry().hash(), {}, Verdict::kApplied};
    for (const PushPart& part : parts) request.claim.ids.push_back(part.id);
    std::sort(request.claim.ids.begin(), request.claim.ids.end());
    request.shards = shards_;
    request.epochs = epochs_;
    request.keys = merged.keys();
    request.counts = merged.counts();
    request.tables = merged.tables();
    request.dense = merged.dense();
    request.examples = merged.examples();
    request.lr_scale = merged_lr_scale(parts);
    server_->push(request, [](const PushReply& reply) {
      for (const ShardAnswer& answer : reply.answers)
        if (answer.answer != Answer::kApplied) std::exit(1);
    });
  }

  BinaryMetrics evaluate() {
    BinaryMetrics metrics;
    const auto hand = this->hand();
    for (uint32_t b = 0; b < test_->geometry().blocks.size(); ++b) {
      const auto reader = must(test_->open_block(b, 0));
      for (uint32_t j = 0; j < test_->geometry().batches_in(b); ++j) {
        BatchWork& work = hand->work;
        if (!reader->read_batch(j, &work.batch).is_ok()) std::exit(1);
        pull(&work);
        net_->set_parameters(work.dense->data());
        net_->predict(input(work), predictions_.data());
        const size_t n = work.batch.size;
        metrics.add({{predictions_.data(), n}, {work.batch.labels.data(), n}, {}, {}});
      }
    }
    return metrics;
  }

 private:
  static Job load(const Settings& s) {
    const std::vector<Override> sets = {{"seed", std::to_string(s.seed)},
                                        {"data.batch", "200"},
                                        {"data.train", s.train},
                                        {"data.test", s.test}};
    return must(load_job(s.job, sets));
  }
  ModelShape shape() const { return {kShards, dims_, graph_->parameter_count()}; }

  static NetInput input(const BatchWork& work) {
    NetInput in;
    in.batch = work.batch.size;
    in.labels = work.batch.labels.data();
    in.dense = work.batch.dense_values.data();
    for (const Buffer<float>& rows : work.rows)
      in.tables.push_back({rows.data(), work.plan.unique(), 0, work.plan.index().data()});
    return in;
  }
  void pull(BatchWork* work) {
    work->plan.build(work->batch.keys);
    work->size_for(shape(), 0);
    server_->pull({kLife, shards_, work->plan.sharded(), work->row_pointers, work->dense->data()},
                  [](const PullReply& reply) {
                    if (!reply.status.is_ok()) std::exit(1);
                  });
  }

  Job job_;
  std::unique_ptr<Dataset> train_, test_;
  std::shared_ptr<const Graph> graph_;
  std::vector<uint32_t> dims_;
  std::shared_ptr<Server> server_;
  std::unique_ptr<Net> net_;
  std::vector<ShardId> shards_;
  std::vector<ShardEpoch> epochs_;
  std::shared_ptr<const BlockReader> reader_;
  uint32_t block_ = 0;
  Buffer<float> predictions_;
};

// Workers that come and go over the batches of one pass.
class Training {
 public:
  Training(const Settings& s, Model* model)
      : settings_(s), model_(model), policy_(s.policy, s.workers[0]), random_(s.seed) {
    const Geometry& g = model->geometry();
    std::vector<uint32_t> order(g.blocks.size());
    std::iota(order.begin(), order.end(), 0U);
    for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random_.below(i)]);
    for (const uint32_t b : order)
      for (uint32_t j = 0; j < g.batches_in(b); ++j)
        batches_.push_back(
            {{0, 0, 0, b}, static_cast<uint8_t>(j), static_cast<uint8_t>(g.batches_in(b))});
  }

  void run() {
    while (next_ < batches_.size()) {
      const uint32_t wanted = settings_.workers[next_ * settings_.workers.size() / batches_.size()];
      policy_.workers(wanted);
      while (workers_.size() > wanted) leave();
      if (settings_.mode == "sync") {
        sync_step(wanted);
        continue;
      }
      while (workers_.size() < wanted && next_ < batches_.size()) workers_.push_back(take());
      Hands& worker = workers_[random_.below(workers_.size())];
      finish(&worker);
      worker = take();
    }
    while (!workers_.empty()) leave();
  }
  uint64_t refused() const { return refused_; }
  uint64_t pushes() const { return pushes_; }
  size_t batches() const { return batches_.size(); }

 private:
  using Hands = std::vector<std::unique_ptr<InHand>>;

  Hands take() {
    Hands out;
    const uint32_t n = settings_.mode == "half_async" ? kLanes : 1;
    for (uint32_t i = 0; i < n && next_ < batches_.size(); ++i) {
      out.push_back(free_.empty() ? model_->hand() : std::move(free_.back()));
      if (!free_.empty()) free_.pop_back();
      model_->take(batches_[next_++], policy_.factor(), out.back().get());
      policy_.leased(1);
    }
    return out;
  }
  void finish(Hands* worker) {
    std::vector<InHand*> good;
    for (const auto& hand : *worker) {
      if (model_->compute(hand.get()))
        good.push_back(hand.get());
      else
        ++refused_;
    }
    model_->push(good);
    ++pushes_;
    for (auto& hand : *worker) free_.push_back(std::move(hand));
    worker->clear();
  }
  // One goes, and pushes what it has in hand first.
  void leave() {
    finish(&workers_.back());
    workers_.pop_back();
  }
  void sync_step(uint32_t members) {
    Hands step;
    for (uint32_t i = 0; i < members; ++i)
      for (auto& hand : take()) step.push_back(std::move(hand));
    finish(&step);
  }

  const Settings& settings_;
  Model* model_;
  LrPolicy policy_;
  Random random_;
  std::vector<BatchId> batches_;
  size_t next_ = 0;
  std::vector<Hands> workers_;
  Hands free_;
  uint64_t refused_ = 0, pushes_ = 0;
};

int run(const Settings& s) {
  Model model(s);
  Training training(s, &model);
  training.run();
  const MetricValues metrics = model.evaluate().values();
  std::string workers;
  for (const uint32_t n : s.workers) workers += (workers.empty() ? "" : ",") + std::to_string(n);
  std::printf(
      "{\"bench\": \"lr_policy\", \"mode\": \"%s\", \"lr\": \"%s\", \"warmup\": %u, "
      "\"workers\": \"%s\", \"seed\": %llu, \"auc\": %.6f, \"log_loss\": %.6f, \"batches\": %zu, "
      "\"pushes\": %llu, \"refused\": %llu}\n",
      s.mode.c_str(), s.policy.lr.c_str(), s.policy.warmup_batches, workers.c_str(),
      static_cast<unsigned long long>(s.seed), metrics.auc.value_or(0.5),
      metrics.log_loss.value_or(0), training.batches(),
      static_cast<unsigned long long>(training.pushes()),
      static_cast<unsigned long long>(training.refused()));
  return 0;
}

}  // namespace
}  // namespace flux

int main(int argc, char** argv) {
  if (argc != 9) {
    std::fprintf(stderr, "usage: %s JOB TRAIN TEST MODE LR WARMUP WORKERS SEED\n", argv[0]);
    return 2;
  }
  flux::Settings s;
  s.job = argv[1];
  s.train = argv[2];
  s.test = argv[3];
  s.mode = argv[4];
  s.policy.lr = argv[5];
  s.policy.warmup_batches = static_cast<uint32_t>(std::atoi(argv[6]));
  for (const char* at = argv[7]; at != nullptr; at = std::strchr(at, ',')) {
    if (*at == ',') ++at;
    s.workers.push_back(static_cast<uint32_t>(std::max(1, std::atoi(at))));
  }
  s.seed = std::strtoull(argv[8], nullptr, 10);
  return flux::run(s);
}
