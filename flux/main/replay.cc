#include "flux/main/replay.h"

#include <cmath>
#include <deque>
#include <numeric>
#include <utility>

#include "flux/base/executor.h"
#include "flux/base/text.h"
#include "flux/cluster/lr_schedule.h"
#include "flux/coordinator/lease_order.h"
#include "flux/main/pass_data.h"
#include "flux/worker/batch_noise.h"
#include "flux/worker/batch_work.h"
#include "flux/worker/finite_check.h"
#include "flux/worker/key_groups.h"
#include "flux/worker/predictor.h"

namespace flux {
namespace {

constexpr uint64_t kIncarnation = 1;  // of a server that nobody else reaches

// gradient += factor * |gradient| * (now - then)
void compensate(double factor, size_t n, const float* now, const float* then, float* gradient) {
  const auto f = static_cast<float>(factor);
  for (size_t i = 0; i < n; ++i) gradient[i] += f * std::abs(gradient[i]) * (now[i] - then[i]);
}

class Replay {
 public:
  Replay(const RoleJob& role, const ReplayData& data, const ReplayOptions& options)
      : role_(role), data_(data), options_(options), shape_(role.layout.shape) {
    const double age = 1.0 + options.staleness;
    rows_scale_ = static_cast<float>(std::pow(age, -options.rows_power));
    dense_scale_ = static_cast<float>(std::pow(age, -options.dense_power));
  }

  Result<ReplayResult> run() {
    const TimeNs start = steady_now_ns();
    FLUX_RETURN_IF_ERROR(set_up());
    for (uint32_t pass = 0; pass < data_.passes.size(); ++pass) {
      FLUX_RETURN_IF_ERROR(train_pass(pass));
      before_ += data_.passes[pass]->geometry().records() * schedule_.sections();
    }
    FLUX_RETURN_IF_ERROR(evaluate());
    result_.staleness = options_.staleness;
    result_.traffic.keys = keys_ / static_cast<double>(result_.batches);
    result_.traffic.floats = floats_ / static_cast<double>(result_.batches);
    result_.traffic.dense = shape_.phase(0).parameters();
    result_.model_hash = server_->content_hash();
    result_.seconds = static_cast<double>(steady_now_ns() - start) * 1e-9;
    return std::move(result_);
  }

 private:
  Status set_up() {
    const Job& job = role_.job;
    schedule_ = {static_cast<uint32_t>(job.passes.size()),
                 static_cast<uint16_t>(role_.graphs.size()), static_cast<uint16_t>(job.epochs)};
    FLUX_ASSIGN_OR_RETURN(const ServerOptions options,
                          server_options(role_, kIncarnation, ShardEpoch{1, 1}));
    FLUX_ASSIGN_OR_RETURN(server_, Server::create(options));
    server_->init_dense(role_.initial_parameters());
    FLUX_ASSIGN_OR_RETURN(precision_, choose_precision(job.precision));
    size_t heads = 0;
    for (const auto& graph : role_.graphs) {
      FLUX_ASSIGN_OR_RETURN(auto net, Net::compile(graph, {precision_, job.data.batch_size}));
      nets_.push_back(std::move(net));
      heads = std::max(heads, graph->heads().size());
    }
    predictions_.resize_discard(heads * job.data.batch_size);
    lr_ = LrSchedule(job.lr_schedule);
    shards_.resize(server_->shard_count());
    std::iota(shards_.begin(), shards_.end(), 0U);
    epochs_.assign(shards_.size(), options.epoch);
    return Status::ok();
  }

  Status train_pass(uint32_t pass) {
    const Dataset& data = *data_.passes[pass];
    Status opened;
    server_->open_pass(server_->primaries(), pass, data.geometry().hash(),
                       [&](const Status& status) { opened = status; });
    FLUX_RETURN_IF_ERROR(opened);
    for (uint32_t i = 0; i < schedule_.sections(); ++i) {
      const BlockId section = schedule_.section(pass, i);
      for (const uint32_t block : lease_order(data.geometry(), section)) {
        FLUX_RETURN_IF_ERROR(train_block(data, {pass, section.phase, section.epoch, block}));
      }
      while (!pending_.empty()) FLUX_RETURN_IF_ERROR(apply_oldest());
    }
    return Status::ok();
  }

  Status train_block(const Dataset& data, const BlockId& id) {
    const Geometry& geometry = data.geometry();
    const uint64_t before = before_ + geometry.records() * *schedule_.index(id) +
                            geometry.blocks[id.block].first_record;
    FLUX_ASSIGN_OR_RETURN(std::shared_ptr<const BlockReader> reader,
                          data.open_block(id.block, id.epoch));
    const uint32_t batches = geometry.batches_in(id.block);
    for (uint32_t b = 0; b < batches; ++b) {
      if (options_.stop != nullptr && options_.stop->load())
        return error(Code::kCancelled, "stopped");
      const BatchWorkPtr work = free_work();
      work->item.id = {id, static_cast<uint8_t>(b), static_cast<uint8_t>(batches)};
      work->item.geometry = geometry.hash();
      work->item.lr_scale = lr_.factor(before / geometry.batch_size + b);
      work->item.reader = reader;
      FLUX_RETURN_IF_ERROR(train_batch(work));
      if (pending_.size() > options_.staleness) FLUX_RETURN_IF_ERROR(apply_oldest());
    }
    return Status::ok();
  }

  Status train_batch(const BatchWorkPtr& work) {
    FLUX_RETURN_IF_ERROR(work->item.reader->read_batch(work->item.id.batch, &work->batch));
    find_key_groups(work->batch, role_.job.slot_groups, &work->groups);
    work->plan.build(work->batch.keys, work->groups);
    const uint32_t phase = work->item.id.block.phase;
    work->size_for(shape_, phase);
    if (!work->dense) work->dense = free_dense();
    FLUX_RETURN_IF_ERROR(pull(*work, work->row_pointers, work->dense->data()));
    count(*work);
    const double loss = compute(work.get());
    const std::string refused =
        why_refused({work.get(), role_.graphs[phase].get(), role_.layout.table_of[phase], loss,
                     predictions_.data(), work->dense->data()},
                    &team_);
    if (!refused.empty()) {
      ++result_.refused;
      free_.push_back(work);
      return Status::ok();
    }
    // Where nothing is compensated, dense values are needed for the computing only.
    if (options_.compensation == 0) free_dense_.push_back(std::exchange(work->dense, nullptr));
    pending_.push_back(work);
    return check_memory(*work);
  }

  double compute(BatchWork* work) {
    const uint32_t phase = work->item.id.block.phase;
    const Batch& batch = work->batch;
    NetInput input;
    NetGradients gradients;
    input.batch = batch.size;
    input.labels = batch.labels.data();
    input.dense = batch.dense_values.data();
    input.begin = batch.begin.empty() ? nullptr : batch.begin.data();
    input.values = batch.values.empty() ? nullptr : batch.values.data();
    input.weights = batch.weights.empty() ? nullptr : batch.weights.data();
    input.noise = batch_noise(work->item.id);
    gradients.parameters = work->dense_gradient.data();
    for (const uint32_t t : role_.layout.table_of[phase]) {
      input.tables.push_back({work->rows[t].data(), work->last_rows[t], work->first_rows[t],
                              work->plan.index().data()});
      gradients.tables.push_back(work->row_gradients[t].data());
    }
    nets_[phase]->set_parameters(work->dense->data());
    return nets_[phase]->train(input, &gradients, predictions_.data());
  }

  Status pull(const BatchWork& work, std::span<float* const> tables, float* dense) {
    std::vector<float*> list(tables.begin(), tables.end());
    PullRequest request;
    request.incarnation = kIncarnation;
    request.shards = shards_;
    request.keys = work.plan.sharded();
    request.tables = list;
    request.phase = work.item.id.block.phase;
    if (shape_.phase(request.phase).parameters() > 0) request.dense = dense;
    Status status;
    server_->pull(request, [&](const PullReply& reply) { status = reply.status; });
    return status;
  }

  Status apply_oldest() {
    const BatchWorkPtr work = pending_.front();
    pending_.pop_front();
    if (options_.compensation != 0) FLUX_RETURN_IF_ERROR(compensate_all(work.get()));
    const std::span<const ShardId> all = shards_;
    const size_t sparse = rows_scale_ == dense_scale_ ? all.size() : role_.sparse_shards;
    FLUX_RETURN_IF_ERROR(push(*work, 0, sparse, rows_scale_));
    if (sparse < all.size()) FLUX_RETURN_IF_ERROR(push(*work, sparse, all.size(), dense_scale_));
    ++result_.batches;
    result_.examples += work->batch.size;
    free_.push_back(work);
    return Status::ok();
  }

  // The shards [begin, end).
  Status push(const BatchWork& work, size_t begin, size_t end, float scale) {
    const PushWork part = work.push();
    PushRequest request;
    request.claim = {kIncarnation, work.item.geometry, {work.item.id}, Verdict::kApplied};
    request.shards = std::span(shards_).subspan(begin, end - begin);
    request.epochs = std::span(epochs_).subspan(begin, end - begin);
    request.keys = part.keys;
    request.counts = part.counts;
    request.tables = part.tables;
    request.dense = part.dense;
    request.examples = part.examples;
    request.lr_scale = part.lr_scale * scale;
    Status status;
    server_->push(request, [&](const PushReply& reply) {
      status = reply.status;
      for (const ShardAnswer& answer : reply.answers)
        if (status.is_ok() && answer.answer != Answer::kApplied)
          status = error(Code::kCorrupt, "shard {} answers {} to a push", answer.shard,
                         answer_name(answer.answer));
    });
    return status;
  }

  Status compensate_all(BatchWork* work) {
    const PhaseView phase = shape_.phase(work->item.id.block.phase);
    if (now_rows_.empty()) now_rows_.resize(work->rows.size());
    std::vector<float*> rows;
    for (size_t t = 0; t < work->rows.size(); ++t) {
      now_rows_[t].resize_discard(work->rows[t].size());
      rows.push_back(now_rows_[t].data() + (work->row_pointers[t] - work->rows[t].data()));
    }
    now_dense_.resize_discard(phase.parameters());
    FLUX_RETURN_IF_ERROR(pull(*work, rows, now_dense_.data()));
    for (size_t t = 0; t < work->rows.size(); ++t) {
      const auto first = static_cast<size_t>(work->row_pointers[t] - work->rows[t].data());
      compensate(options_.compensation, work->rows[t].size() - first, now_rows_[t].data() + first,
                 work->rows[t].data() + first, work->row_gradients[t].data() + first);
    }
    compensate(options_.compensation, phase.parameters(), now_dense_.data(), work->dense->data(),
               work->dense_gradient.data());
    return Status::ok();
  }

  void count(const BatchWork& work) {
    const PhaseView phase = shape_.phase(work.item.id.block.phase);
    keys_ += static_cast<double>(work.plan.unique());
    for (size_t t = 0; t < work.rows.size(); ++t)
      floats_ += static_cast<double>((work.last_rows[t] - work.first_rows[t]) * phase.dims[t]);
  }

  Status check_memory(const BatchWork& work) const {
    uint64_t bytes = 2 * work.gradient_bytes();  // rows, too
    bytes += work.batch.keys.size() * (sizeof(uint64_t) + sizeof(uint32_t)) +
             work.plan.unique() * 3 * sizeof(uint64_t);
    if (bytes * options_.staleness <= options_.memory_max) return Status::ok();
    return invalid(
        "--staleness {}: each of so many batches that wait needs {}, {} in all; at most {} are "
        "taken, so {} batches\ntake fewer, smaller batches (--examples-per-push), or more with "
        "--memory-gb",
        options_.staleness, human_bytes(bytes), human_bytes(bytes * options_.staleness),
        human_bytes(options_.memory_max), options_.memory_max / bytes);
  }

  Status evaluate() {
    for (uint32_t p = 0; p < role_.graphs.size(); ++p) {
      PredictorOptions options;
      options.graphs = role_.graphs;
      options.phase = p;
      options.net = {precision_, role_.job.data.batch_size};
      options.shape = shape_;
      options.slot_groups = role_.job.slot_groups;
      options.incarnation = kIncarnation;
      options.slices = slice_slots(role_.job);
      options.stop = options_.stop;
      auto one = Predictor::run(options, server_.get(), *data_.test, {});
      if (one.status().code() == Code::kCancelled) return one.status();
      if (!one.is_ok()) {
        result_.diverged = one.status().message();
        return Status::ok();
      }
      if (role_.graphs.size() == 1)
        result_.test = std::move(one).value();
      else
        result_.test.add_phase(role_.job.phases[p].name, std::move(one).value());
    }
    return Status::ok();
  }

  BatchWorkPtr free_work() {
    if (free_.empty()) return std::make_shared<BatchWork>(shape_);
    BatchWorkPtr work = std::move(free_.back());
    free_.pop_back();
    return work;
  }

  std::shared_ptr<Buffer<float>> free_dense() {
    if (free_dense_.empty()) return std::make_shared<Buffer<float>>(shape_.parameters);
    auto buffer = std::move(free_dense_.back());
    free_dense_.pop_back();
    return buffer;
  }

  const RoleJob& role_;
  const ReplayData& data_;
  const ReplayOptions options_;
  const ModelShape& shape_;
  float rows_scale_ = 1, dense_scale_ = 1;
  Schedule schedule_;
  LrSchedule lr_;
  Precision precision_ = Precision::kFp32;
  std::shared_ptr<Server> server_;
  std::vector<std::unique_ptr<Net>> nets_;
  Team team_{1};
  std::vector<ShardId> shards_;
  std::vector<ShardEpoch> epochs_;
  uint64_t before_ = 0;  // examples of passes before this one
  std::deque<BatchWorkPtr> pending_;
  std::vector<BatchWorkPtr> free_;
  std::vector<std::shared_ptr<Buffer<float>>> free_dense_;
  std::vector<Buffer<float>> now_rows_;
  Buffer<float> now_dense_, predictions_;
  double keys_ = 0, floats_ = 0;
  ReplayResult result_;
};

Status check_replayable(const Job& job) {
  if (job.test.empty()) return invalid("{}: has no data.test, which says how good it is", job.path);
  if (job.mode != "async")
    return invalid("{}: mode {}: a replay is of async training; add --set mode=async", job.path,
                   job.mode);
  if (job.data.global_shuffle)
    return invalid(
        "{}: data.global_shuffle writes files, and a replay writes none; add --set "
        "data.global_shuffle=false",
        job.path);
  return Status::ok();
}

}  // namespace

Result<ReplayData> open_replay_data(const Job& job, const std::atomic<bool>* stop) {
  FLUX_RETURN_IF_ERROR(check_replayable(job));
  const auto open = [&](std::span<const std::string> globs,
                        bool shuffle) -> Result<std::shared_ptr<const Dataset>> {
    FLUX_ASSIGN_OR_RETURN(const auto files, expand_globs(globs));
    DataOptions options = job.data;
    options.shuffle = options.shuffle && shuffle;
    FLUX_ASSIGN_OR_RETURN(const Geometry cut, scan_good(files, options, 1, stop));
    FLUX_ASSIGN_OR_RETURN(auto data, Dataset::open(cut, options));
    return std::shared_ptr<const Dataset>(std::move(data));
  };
  ReplayData data;
  for (const PassSpec& pass : job.passes) {
    FLUX_ASSIGN_OR_RETURN(auto opened, open(pass.train, true));
    data.passes.push_back(std::move(opened));
  }
  FLUX_ASSIGN_OR_RETURN(data.test, open(job.test, false));
  return data;
}

Result<ReplayResult> replay(const RoleJob& role, const ReplayData& data,
                            const ReplayOptions& options) {
  return Replay(role, data, options).run();
}

}  // namespace flux
