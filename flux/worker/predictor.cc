#include "flux/worker/predictor.h"

#include <atomic>
#include <numeric>
#include <thread>
#include <utility>

#include "flux/base/buffer.h"
#include "flux/client/key_plan.h"
#include "flux/worker/model_layout.h"
#include "flux/worker/scored.h"

namespace flux {
namespace {

MetricOptions metric_options(const std::vector<SliceSlot>& slices) {
  MetricOptions options;
  for (const SliceSlot& slot : slices) options.slice_values = slot.values_max;
  return options;
}

// One thread's buffers and net.
class Lane {
 public:
  Lane(const PredictorOptions& options, std::unique_ptr<Net> net, ServerPort* server)
      : options_(options),
        net_(std::move(net)),
        server_(server),
        layout_(model_layout(graphs_of(options.graphs), options.sparse_shards)),
        plan_(options.sparse_shards) {
    rows_.resize(layout_.tables.size());
    pointers_.resize(layout_.tables.size());
    shards_.resize(options.all_shards);
    std::iota(shards_.begin(), shards_.end(), 0U);
    by_head_.resize(net_->graph().heads().size() * options.net.batch_max);
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
    for (const uint32_t t : layout_.table_of[options_.phase]) {
      rows_[t].resize_discard(plan_.unique() * layout_.shape.dims[t]);
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
    const ScoredBatches scored(net_->graph(), batch_, by_head_.data(), options_.slices);
    return metrics_.add(batch_.size, loss, scored.all());
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
    request.phase = options_.phase;
    Status status;
    server_->pull(request, [&](const PullReply& reply) { status = reply.status; });
    return status;
  }

  const PredictorOptions& options_;
  std::unique_ptr<Net> net_;
  ServerPort* server_;
  const ModelLayout layout_;
  KeyPlan plan_;
  Batch batch_;
  std::vector<Buffer<float>> rows_;
  std::vector<float*> pointers_;
  std::vector<ShardId> shards_;
  std::vector<float> by_head_;  // [heads][batch]
  MetricSet metrics_{metric_options(options_.slices)};
};

}  // namespace

Result<MetricReport> Predictor::run(const PredictorOptions& options, ServerPort* server,
                                    const Dataset& dataset, const Sink& sink) {
  std::vector<std::unique_ptr<Lane>> lanes;
  const std::shared_ptr<const Graph>& graph = options.graphs[options.phase];
  for (uint32_t t = 0; t < options.threads; ++t) {
    FLUX_ASSIGN_OR_RETURN(auto net, Net::compile(graph, options.net));
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
    const size_t heads = graph->heads().size();
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
  MetricSet sum(metric_options(options.slices));
  for (const auto& lane : lanes) sum.merge(lane->metrics());
  return sum.report();
}

}  // namespace flux
