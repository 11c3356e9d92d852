#include "flux/worker/predictor.h"

#include <atomic>
#include <numeric>
#include <thread>
#include <utility>

#include "flux/base/buffer.h"
#include "flux/client/key_plan.h"
#include "flux/worker/scored.h"

namespace flux {
namespace {

// One thread's buffers and net.
class Lane {
 public:
  Lane(const PredictorOptions& options, std::unique_ptr<Net> net, ServerPort* server)
      : options_(options), net_(std::move(net)), server_(server), plan_(options.sparse_shards) {
    const Graph& graph = net_->graph();
    for (const std::string& table : graph.tables())
      dims_.push_back(graph.inputs().tables.at(table));
    rows_.resize(dims_.size());
    pointers_.resize(dims_.size());
    shards_.resize(options.all_shards);
    std::iota(shards_.begin(), shards_.end(), 0U);
    by_head_.resize(graph.heads().size() * options.net.batch_max);
  }

  // Dense parameters do not move while predicting: taken once.
  Status take_parameters() {
    Buffer<float> dense(net_->graph().parameter_count());
    if (dense.size() == 0) return Status::ok();
    const std::vector<uint32_t> none(options_.sparse_shards + 1, 0);
    FLUX_RETURN_IF_ERROR(pull({nullptr, none.data()}, {}, dense.data()));
    net_->set_parameters(dense.data());
    return Status::ok();
  }

  Status run(const BlockReader& reader, uint32_t batch, float* predictions) {
    FLUX_RETURN_IF_ERROR(reader.read_batch(batch, &batch_));
    plan_.build(batch_.keys);
    NetInput input;
    for (size_t t = 0; t < dims_.size(); ++t) {
      rows_[t].resize_discard(plan_.unique() * dims_[t]);
      pointers_[t] = rows_[t].data();
      input.tables.push_back({rows_[t].data(), plan_.unique(), plan_.index().data()});
    }
    FLUX_RETURN_IF_ERROR(pull(plan_.sharded(), pointers_, nullptr));
    input.batch = batch_.size;
    input.labels = batch_.labels.data();
    input.dense = batch_.dense_values.data();
    input.begin = batch_.begin.empty() ? nullptr : batch_.begin.data();
    input.weights = batch_.weights.empty() ? nullptr : batch_.weights.data();
    const double loss = net_->predict(input, by_head_.data());
    const size_t heads = net_->graph().heads().size();
    for (size_t h = 0; h < heads; ++h)
      for (uint32_t b = 0; b < batch_.size; ++b)
        predictions[b * heads + h] = by_head_[h * batch_.size + b];
    return metrics_.add(batch_.size, loss, scored_batches(net_->graph(), batch_, by_head_.data()));
  }
  const MetricSet& metrics() const { return metrics_; }

 private:
  Status pull(const ShardedKeys& keys, std::span<float*> tables, float* dense) {
    PullRequest request;
    request.incarnation = options_.incarnation;
    request.shards = shards_;
    request.keys = keys;
    request.tables = tables;
    request.dense = dense;
    Status status;
    server_->pull(request, [&](const PullReply& reply) { status = reply.status; });
    return status;
  }

  const PredictorOptions& options_;
  std::unique_ptr<Net> net_;
  ServerPort* server_;
  KeyPlan plan_;
  Batch batch_;
  std::vector<uint32_t> dims_;
  std::vector<Buffer<float>> rows_;
  std::vector<float*> pointers_;
  std::vector<ShardId> shards_;
  std::vector<float> by_head_;  // [heads][batch]
  MetricSet metrics_;
};

}  // namespace

Result<MetricReport> Predictor::run(const PredictorOptions& options, ServerPort* server,
                                    const Dataset& dataset, const Sink& sink) {
  std::vector<std::unique_ptr<Lane>> lanes;
  for (uint32_t t = 0; t < options.threads; ++t) {
    FLUX_ASSIGN_OR_RETURN(auto net, Net::compile(options.graph, options.net));
    lanes.push_back(std::make_unique<Lane>(options, std::move(net), server));
  }
  const Geometry& geometry = dataset.geometry();
  std::vector<float> predictions;
  std::vector<Status> results(lanes.size());
  for (auto& lane : lanes) FLUX_RETURN_IF_ERROR(lane->take_parameters());
  for (uint32_t b = 0; b < geometry.blocks.size(); ++b) {
    if (options.stop != nullptr && options.stop->load())
      return error(Code::kCancelled, "stopped while predicting");
    FLUX_ASSIGN_OR_RETURN(const auto reader, dataset.open_block(b, 0));
    const size_t heads = options.graph->heads().size();
    predictions.resize(geometry.blocks[b].records * heads);
    std::atomic<uint32_t> next{0};
    std::vector<std::thread> threads;
    for (size_t t = 0; t < lanes.size(); ++t)
      threads.emplace_back([&, t] {
        for (uint32_t j; results[t].is_ok() && (j = next.fetch_add(1)) < geometry.batches_in(b);)
          results[t] =
              lanes[t]->run(*reader, j, predictions.data() + heads * j * geometry.batch_size);
      });
    for (std::thread& thread : threads) thread.join();
    for (const Status& result : results) FLUX_RETURN_IF_ERROR(result);
    if (sink) FLUX_RETURN_IF_ERROR(sink(predictions));
  }
  MetricSet sum;
  for (const auto& lane : lanes) sum.merge(lane->metrics());
  return sum.report();
}

}  // namespace flux
