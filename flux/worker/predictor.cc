#include "flux/worker/predictor.h"

#include <atomic>
#include <numeric>
#include <thread>
#include <utility>

#include "flux/base/buffer.h"
#include "flux/data/label_check.h"
#include "flux/worker/batch_noise.h"
#include "flux/worker/batch_work.h"
#include "flux/worker/evaluated_check.h"
#include "flux/worker/finite_check.h"
#include "flux/worker/key_groups.h"
#include "flux/worker/model_layout.h"
#include "flux/worker/scored.h"

namespace flux {
namespace {

static_assert(kExampleWeightMax <= kWeightMax, "what data may have, metrics can add up");

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
        layout_(model_layout(graphs_of(options.graphs), options.shape.sparse_shards)),
        work_(options.shape),
        shards_(options.shape.all_shards()),
        by_head_(net_->graph().heads().size() * options.net.batch_max) {
    std::iota(shards_.begin(), shards_.end(), 0U);
  }

  // Dense parameters do not move while predicting: taken once.
  Status take_parameters() {
    dense_.resize_discard(net_->graph().parameter_count());
    if (dense_.size() == 0) return Status::ok();
    const std::vector<uint32_t> none(options_.shape.sparse_shards + 1, 0);
    FLUX_RETURN_IF_ERROR(pull({nullptr, none.data()}, {}, dense_.data()));
    const std::string broken = broken_parameter(net_->graph(), dense_.data());
    if (!broken.empty())
      return invalid("{} in this model: it diverged; nothing can be predicted with it", broken);
    net_->set_parameters(dense_.data());
    return Status::ok();
  }

  Status run(const BlockReader& reader, uint32_t block, uint32_t batch, float* predictions) {
    Batch& read = work_.batch;
    FLUX_RETURN_IF_ERROR(reader.read_batch(batch, &read));
    find_key_groups(read, options_.slot_groups, &work_.groups);
    work_.plan.build(read.keys, work_.groups);
    work_.size_for(options_.shape, options_.phase);
    NetInput input;
    for (const uint32_t t : layout_.table_of[options_.phase])
      input.tables.push_back({work_.rows[t].data(), work_.last_rows[t], work_.first_rows[t],
                              work_.plan.index().data()});
    FLUX_RETURN_IF_ERROR(pull(work_.plan.sharded(), work_.row_pointers, nullptr));
    input.batch = read.size;
    input.labels = read.labels.data();
    input.dense = read.dense_values.data();
    input.begin = read.begin.empty() ? nullptr : read.begin.data();
    input.values = read.values.empty() ? nullptr : read.values.data();
    input.weights = read.weights.empty() ? nullptr : read.weights.data();
    const BatchId id{{0, kTestPhase, 0, block}, static_cast<uint8_t>(batch), kBlockBatches};
    input.noise = batch_noise(id);
    const double loss = net_->predict(input, by_head_.data());
    FLUX_RETURN_IF_ERROR(check_evaluated(loss, input, net_.get(), reader, id));
    const size_t heads = net_->graph().heads().size();
    for (size_t h = 0; h < heads; ++h)
      for (uint32_t b = 0; b < read.size; ++b)
        predictions[b * heads + h] = by_head_[h * read.size + b];
    const ScoredBatches scored(net_->graph(), read, by_head_.data(), options_.slices);
    return metrics_.add(read.size, loss, scored.all());
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
  Buffer<float> dense_;  // outlives its use by the net
  std::unique_ptr<Net> net_;
  ServerPort* server_;
  const ModelLayout layout_;
  BatchWork work_;
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
              lanes[t]->run(*reader, b, j, predictions.data() + heads * j * geometry.batch_size);
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
