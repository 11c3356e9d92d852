#include "flux/worker/trainer.h"

#include <algorithm>
#include <cmath>
#include <thread>
#include <utility>

namespace flux {
namespace {
constexpr TimeNs kAnswerDeadline = 60 * kSecond;
}

Result<std::unique_ptr<Trainer>> Trainer::create(const TrainerOptions& options,
                                                 std::vector<ServerPort*> servers,
                                                 CoordinatorPort* coordinator) {
  FLUX_ASSIGN_OR_RETURN(auto net, Net::compile(options.graph, options.net));
  return std::unique_ptr<Trainer>(
      new Trainer(options, std::move(net), std::move(servers), coordinator));
}

Trainer::Trainer(const TrainerOptions& options, std::unique_ptr<Net> net,
                 std::vector<ServerPort*> servers, CoordinatorPort* coordinator)
    : options_(options),
      coordinator_(coordinator),
      net_(std::move(net)),
      client_(options.client, std::move(servers), coordinator, &executor_),
      dense_(options.graph->parameter_count()),
      predictions_(options.net.batch_max) {
  const Graph& graph = net_->graph();
  for (const std::string& table : graph.tables()) dims_.push_back(graph.inputs().tables.at(table));
}

void Trainer::spend(Stage stage) {
  const TimeNs now = steady_now_ns();
  batch_ns_[static_cast<size_t>(stage)] += now - last_ns_;
  last_ns_ = now;
}

Trainer::Work* Trainer::free_work() {
  if (free_.empty()) {
    works_.push_back(std::make_unique<Work>(options_.sparse_shards));
    works_.back()->rows.resize(dims_.size());
    works_.back()->row_gradients.resize(dims_.size());
    works_.back()->row_pointers.resize(dims_.size());
    works_.back()->dense_gradient.resize_discard(options_.graph->parameter_count());
    free_.push_back(works_.back().get());
  }
  Work* work = free_.back();
  free_.pop_back();
  return work;
}

Status Trainer::prepare(Feed* feed, bool* ended) {
  Work* work = free_work();
  if (!feed->next(&work->item)) {
    free_.push_back(work);
    *ended = true;
    spend(Stage::kFeed);
    return Status::ok();
  }
  spend(Stage::kFeed);
  FLUX_RETURN_IF_ERROR(work->item.reader->read_batch(work->item.id.batch, &work->batch));
  spend(Stage::kRead);
  work->plan.build(work->batch.keys);
  for (size_t t = 0; t < dims_.size(); ++t) {
    work->rows[t].resize_discard(work->plan.unique() * dims_[t]);
    work->row_gradients[t].resize_discard(work->plan.unique() * dims_[t]);
    work->row_pointers[t] = work->rows[t].data();
  }
  spend(Stage::kPlan);
  work->pulled = false;
  client_.pull(work->plan.sharded(), work->row_pointers, nullptr, [work](const Status& status) {
    work->status = status;
    work->pulled = true;
  });
  ready_.push_back(work);
  spend(Stage::kPull);
  return Status::ok();
}

Status Trainer::compute_and_push(uint64_t geometry) {
  Work* work = ready_.front();
  ready_.pop_front();
  FLUX_CHECK(work->pulled, "the in-process port answers inside the call");
  FLUX_RETURN_IF_ERROR(work->status);
  // Dense values are pulled as late as possible: they move with every batch.
  Status dense_status;
  if (dense_.size() > 0) {
    const std::vector<uint32_t> none(options_.sparse_shards + 1, 0);
    client_.pull({nullptr, none.data()}, {}, dense_.data(),
                 [&](const Status& status) { dense_status = status; });
  }
  FLUX_RETURN_IF_ERROR(dense_status);
  spend(Stage::kPull);

  NetInput input;
  input.batch = work->batch.size;
  input.labels = work->batch.labels.data();
  input.dense = work->batch.dense_values.data();
  NetGradients gradients;
  gradients.parameters = work->dense_gradient.data();
  for (size_t t = 0; t < dims_.size(); ++t) {
    input.tables.push_back({work->rows[t].data(), work->plan.unique(), work->plan.index().data()});
    gradients.tables.push_back(work->row_gradients[t].data());
  }
  if (dense_.size() > 0) net_->set_parameters(dense_.data());
  const double loss = net_->train(input, &gradients, predictions_.data());
  spend(Stage::kCompute);

  const uint32_t n = work->batch.size;
  if (!std::isfinite(loss)) [[unlikely]]
    return invalid(
        "the loss of {} is {}: the model diverged; lower the learning rate (the last "
        "checkpoint is good, nothing of this batch was applied)",
        to_string(work->item.id), loss);
  {
    const std::lock_guard lock(progress_mutex_);
    progress_.metrics.add(work->batch.labels.data(), predictions_.data(), n, loss);
    progress_.examples += n;
    ++progress_.batches;
  }
  examples_.fetch_add(n, std::memory_order_relaxed);
  if (!client_.has_room()) FLUX_RETURN_IF_ERROR(wait_for_room());
  push(work, geometry);
  spend(Stage::kPush);
  const std::lock_guard lock(progress_mutex_);
  for (size_t s = 0; s < kStages; ++s) progress_.stage_ns[s] += std::exchange(batch_ns_[s], 0);
  progress_.duplicates = client_.duplicates();
  return client_.status();
}

void Trainer::push(Work* work, uint64_t geometry) {
  PushWork push;
  push.ids = {work->item.id};
  push.geometry = geometry;
  push.keys = work->plan.sharded();
  push.counts = work->plan.counts().data();
  for (size_t t = 0; t < dims_.size(); ++t) {
    push.tables.push_back(work->row_gradients[t].data());
    push.bytes += work->row_gradients[t].size() * sizeof(float);
  }
  push.dense = work->dense_gradient.data();
  push.bytes += work->dense_gradient.size() * sizeof(float);
  push.examples = work->batch.size;
  push.released = [this, work] {
    coordinator_->batch_applied(work->item.id);
    work->item.reader.reset();
    free_.push_back(work);
  };
  client_.push(std::move(push));
}

Status Trainer::wait_for_room() {
  return wait_until("room for a push", [this] { return client_.has_room(); });
}

Status Trainer::wait_for_answers() {
  return wait_until("the last pushes", [this] { return client_.in_flight() == 0; });
}

Status Trainer::wait_until(const char* what, const std::function<bool()>& done) {
  const TimeNs deadline = steady_now_ns() + kAnswerDeadline;
  while (!done()) {
    FLUX_RETURN_IF_ERROR(client_.status());
    if (steady_now_ns() > deadline)
      return error(Code::kUnavailable, "waited {} s for {}: no server answers",
                   kAnswerDeadline / kSecond, what);
    if (executor_.run_ready() == 0) std::this_thread::yield();
  }
  return client_.status();
}

Status Trainer::run(Feed* feed, uint64_t geometry) {
  last_ns_ = steady_now_ns();
  bool ended = false;
  Status status;
  while (status.is_ok()) {
    while (status.is_ok() && !ended && ready_.size() <= options_.pull_ahead)
      status = prepare(feed, &ended);
    if (!status.is_ok() || ready_.empty()) break;
    status = compute_and_push(geometry);
    executor_.run_ready();
    if (status.is_ok() && between_batches_ && ready_.empty()) between_batches_();
  }
  if (status.is_ok()) status = wait_for_answers();
  for (Work* work : ready_) free_.push_back(work);
  ready_.clear();
  if (!status.is_ok()) feed->fail(status);
  return status;
}

void Trainer::add_progress(Progress* sum) const {
  const std::lock_guard lock(progress_mutex_);
  sum->examples += progress_.examples;
  sum->batches += progress_.batches;
  sum->duplicates += progress_.duplicates;
  for (size_t s = 0; s < kStages; ++s) sum->stage_ns[s] += progress_.stage_ns[s];
  sum->metrics.merge(progress_.metrics);
}

}  // namespace flux
