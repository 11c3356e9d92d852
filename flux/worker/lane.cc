#include "flux/worker/lane.h"

#include <algorithm>
#include <utility>

#include "flux/worker/batch_noise.h"
#include "flux/worker/evaluated_check.h"
#include "flux/worker/key_groups.h"
#include "flux/worker/scored.h"

namespace flux {
namespace {

constexpr TimeNs kFar = 3600 * kSecond;

}  // namespace

Lane::Lane(LaneOptions options, Executor* executor, std::vector<std::unique_ptr<Net>> nets,
           ClusterMap map, ReachServer reach, FetchRoute fetch_route, BatchSource* source,
           WorkerMode* mode)
    : options_(std::move(options)),
      executor_(executor),
      source_(source),
      client_(with_model(options_.client, graphs_of(nets)), std::move(map), std::move(reach),
              std::move(fetch_route), executor),
      host_(std::make_shared<LaneHost>()),
      no_keys_(options_.client.shape.sparse_shards + 1, 0),
      last_ns_(executor->now_ns()) {
  ModelLayout layout = model_layout(graphs_of(nets), options_.client.shape.sparse_shards);
  options_.client = with_model(options_.client, graphs_of(nets));
  size_t heads = 0;
  for (size_t p = 0; p < nets.size(); ++p) {
    heads = std::max(heads, nets[p]->graph().heads().size());
    nets_.push_back({std::move(nets[p]), std::move(layout.table_of[p]), nullptr, 0});
  }
  for (const SliceSlot& slot : options_.slices) progress_.metrics = ProgressiveSet(slot.values_max);
  predictions_.resize_discard(options_.batch_max * heads);
  host_->index = options_.index;
  host_->executor = executor;
  host_->client = &client_;
  host_->acknowledged = [weak = std::weak_ptr<Lane*>(self_)](const BatchWorkPtr& work) {
    if (const auto self = weak.lock()) (*self)->acknowledged(work);
  };
  host_->wake = [weak = std::weak_ptr<Lane*>(self_)] {
    if (const auto self = weak.lock()) (*self)->notify();
  };
  mode_ = mode->lane(host_);
  client_.on_failure([this] { notify(); });
}

Lane::~Lane() = default;

void Lane::notify() {
  if (notify_) notify_();
}

void Lane::spend(Stage stage) {
  const TimeNs now = executor_->now_ns();
  batch_ns_[static_cast<size_t>(stage)] += now - last_ns_;
  last_ns_ = now;
}

void Lane::spend_on_wait() {
  switch (wait_) {
    case Wait::kPull:
      return spend(Stage::kPull);
    case Wait::kRoom:
    case Wait::kLastPushes:
      return spend(Stage::kPush);
    case Wait::kBlock:
    case Wait::kNothing:
      return spend(Stage::kFeed);
  }
}

uint32_t Lane::phase_of(const BatchWork& work) const {
  return std::min<uint32_t>(network_of(work.item.id.block),
                            static_cast<uint32_t>(nets_.size() - 1));
}

PhaseView Lane::shape_of(const BatchWork& work) const {
  return options_.client.shape.phase(phase_of(work));
}

BatchWorkPtr Lane::free_work() {
  if (free_.empty()) return std::make_shared<BatchWork>(options_.client.shape);
  BatchWorkPtr work = std::move(free_.back());
  free_.pop_back();
  return work;
}

void Lane::recycle(BatchWorkPtr work) {
  work->item = {};
  if (work->dense) free_dense_.push_back(std::exchange(work->dense, nullptr));
  free_.push_back(std::move(work));
}

std::shared_ptr<Buffer<float>> Lane::free_dense() {
  if (free_dense_.empty()) return std::make_shared<Buffer<float>>(options_.client.shape.parameters);
  auto buffer = std::move(free_dense_.back());
  free_dense_.pop_back();
  return buffer;
}

bool Lane::step() {
  if (finished_) return false;
  spend_on_wait();
  if (!client_.status().is_ok()) {
    fail(client_.status());
    finish();
    return true;
  }
  if (!ended_ && source_->stopping()) {
    ended_ = true;
    drop_queue();
  }
  bool moved = prepare();
  moved = start_pulls() || moved;
  moved = compute_front() || moved;
  if (!moved) moved = end_if_drained();
  if (!moved) return wait_or_give_up();
  ++events_;
  wait_ = Wait::kNothing;
  return true;
}

bool Lane::prepare() {
  if (ended_ || failing_ || queue_.size() > options_.pull_ahead || !mode_->may_take()) return false;
  BatchWorkPtr work = free_work();
  const BatchSource::Next next = source_->next(options_.index, &work->item);
  spend(Stage::kFeed);
  if (next != BatchSource::Next::kItem) {
    recycle(std::move(work));
    if (next == BatchSource::Next::kEnd)
      ended_ = true;
    else if (queue_.empty())
      mode_->idle();
    return ended_;
  }
  if (!work->item.evaluate) mode_->busy();
  if (!work->item.evaluate && options_.on_begin) options_.on_begin(work->item.id);
  const Status status = work->item.reader->read_batch(work->item.id.batch, &work->batch);
  if (!status.is_ok()) {
    fail(status);
    return true;
  }
  spend(Stage::kRead);
  find_key_groups(work->batch, options_.slot_groups, &work->groups);
  work->plan.build(work->batch.keys, work->groups);
  work->size_for(options_.client.shape, phase_of(*work));
  work->stage = BatchWork::Stage::kPlanned;
  queue_.push_back(std::move(work));
  spend(Stage::kPlan);
  return true;
}

bool Lane::start_pulls() {
  if (failing_) return false;
  bool moved = false;
  size_t pulled_before = 0;
  for (size_t i = 0; i < queue_.size(); ++i) {
    const BatchWorkPtr work = queue_[i];
    if (work->stage != BatchWork::Stage::kPlanned) {
      ++pulled_before;
      continue;
    }
    if (!mode_->may_pull(pulled_before)) break;
    ++pulled_before;
    work->stage = BatchWork::Stage::kPulling;
    work->pull_number = ++pulls_;
    const bool dense = shape_of(*work).parameters() > 0 && !options_.separate_dense;
    if (dense) work->dense = free_dense();
    work->marks.clear();
    client_.pull({work->plan.sharded(), work->row_pointers, dense ? work->dense->data() : nullptr,
                  work, phase_of(*work), &work->marks},
                 [this, work](const Status& status) { pulled(work, status); });
    moved = true;
  }
  if (moved) spend(Stage::kPull);
  return moved;
}

void Lane::pulled(const BatchWorkPtr& work, const Status& status) {
  ++events_;
  work->stage = BatchWork::Stage::kPulled;
  if (!status.is_ok()) {
    // Not that of a batch that was dropped meanwhile.
    if (std::find(queue_.begin(), queue_.end(), work) != queue_.end()) fail(status);
  } else if (PhaseNet& of = net_of(*work); work->dense && work->pull_number > of.newest_pull) {
    std::swap(of.newest_dense, work->dense);
    of.newest_pull = work->pull_number;
  }
  if (work->dense) free_dense_.push_back(std::exchange(work->dense, nullptr));
  notify();
}

// With separate_dense: asks for the dense values of the front batch; true when they have come.
bool Lane::dense_is_here(const BatchWork& front) {
  if (!options_.separate_dense || shape_of(front).parameters() == 0) return true;
  if (!dense_asked_) {
    dense_asked_ = true;
    dense_here_ = false;
    auto& newest = net_of(front).newest_dense;
    if (!newest) newest = free_dense();
    client_.pull({{nullptr, no_keys_.data()}, {}, newest->data(), newest, phase_of(front), nullptr},
                 [this](const Status& status) {
                   ++events_;
                   dense_here_ = true;
                   if (!status.is_ok()) fail(status);
                   notify();
                 });
    spend(Stage::kPull);
  }
  return dense_here_;
}

bool Lane::compute_front() {
  if (failing_ || queue_.empty()) return false;
  const BatchWorkPtr work = queue_.front();
  if (work->stage != BatchWork::Stage::kPulled) return false;
  if (!work->item.evaluate && !mode_->may_compute()) return false;
  if (!dense_is_here(*work) || failing_) return false;
  queue_.pop_front();
  dense_asked_ = false;
  fill_input(work.get());
  if (work->item.evaluate) {
    evaluate(work.get());
    recycle(work);
    return true;
  }
  if (!train(work)) return true;
  ++in_flight_;
  mode_->push(work);
  spend(Stage::kPush);
  const std::lock_guard lock(progress_mutex_);
  for (size_t s = 0; s < kStages; ++s) progress_.stage_ns[s] += std::exchange(batch_ns_[s], 0);
  progress_.duplicates = client_.duplicates();
  progress_.push_times = client_.push_times();
  progress_.push_ages = client_.push_ages();
  resends_.store(client_.resends(), std::memory_order_relaxed);
  return true;
}

void Lane::fill_input(BatchWork* work) {
  input_.batch = work->batch.size;
  input_.labels = work->batch.labels.data();
  input_.dense = work->batch.dense_values.data();
  input_.begin = work->batch.begin.empty() ? nullptr : work->batch.begin.data();
  input_.values = work->batch.values.empty() ? nullptr : work->batch.values.data();
  input_.weights = work->batch.weights.empty() ? nullptr : work->batch.weights.data();
  input_.noise = batch_noise(work->item.id);
  input_.tables.clear();
  gradients_.parameters = work->dense_gradient.data();
  gradients_.tables.clear();
  const PhaseNet& of = net_of(*work);
  for (const uint32_t t : of.tables) {
    input_.tables.push_back(
        {work->rows[t].data(), work->last_rows[t], work->first_rows[t], work->plan.index().data()});
    gradients_.tables.push_back(work->row_gradients[t].data());
  }
  if (of.newest_dense) of.net->set_parameters(of.newest_dense->data());
}

Computed Lane::computed(const BatchWork& work, double loss) {
  const PhaseNet& of = net_of(work);
  return {&work, &of.net->graph(),    of.tables,
          loss,  predictions_.data(), of.newest_dense ? of.newest_dense->data() : nullptr};
}

// False: the batch was refused.
bool Lane::train(const BatchWorkPtr& work) {
  Net* const net = net_of(*work).net.get();
  const double loss = net->train(input_, &gradients_, predictions_.data());
  spend(Stage::kCompute);
  std::string refused = why_refused(computed(*work, loss));
  if (!refused.empty()) [[unlikely]] {
    source_->refused(options_.index, work->item.id, std::move(refused));
    recycle(work);
    return false;
  }
  note_progress(*work, loss);
  return true;
}

void Lane::note_progress(const BatchWork& work, double loss) {
  const uint32_t n = work.batch.size;
  const Net& net = *net_of(work).net;
  const std::vector<Slice> slices = slices_of(work.batch, options_.slices);
  const uint32_t phase = phase_of(work);
  const std::lock_guard lock(progress_mutex_);
  for (LabelledHead& head : labelled_heads(net.graph(), work.batch, predictions_.data())) {
    if (!options_.metrics) break;
    if (phase < options_.phases.size()) head.key.phase = options_.phases[phase];
    progress_.metrics.add(head.key, {phase, static_cast<uint32_t>(head.index)}, head.batch);
    progress_.metrics.add_slices(head.key, head.batch, slices);
  }
  progress_.last_phase = phase;
  progress_.phases.resize(std::max<size_t>(progress_.phases.size(), phase + 1));
  progress_.phases[phase].examples += n;
  progress_.phases[phase].loss_sum += loss;
  progress_.loss_sum += loss;
  progress_.examples += n;
  ++progress_.batches;
  examples_.fetch_add(n, std::memory_order_relaxed);
}

void Lane::evaluate(BatchWork* work) {
  Net* const net = net_of(*work).net.get();
  const double loss = net->predict(input_, predictions_.data());
  const Status usable = check_evaluated(loss, input_, net, *work->item.reader, work->item.id);
  if (!usable.is_ok()) [[unlikely]]
    return fail(usable.with_context("evaluation"));
  const ScoredBatches scored(net->graph(), work->batch, predictions_.data(), options_.slices);
  source_->evaluated(options_.index,
                     {work->item.id, encode_scored(work->batch.size, loss, scored.all())});
  spend(Stage::kCompute);
}

void Lane::acknowledged(const BatchWorkPtr& work) {
  ++events_;
  --in_flight_;
  source_->applied(options_.index, work->item.id);
  recycle(work);
  notify();
}

void Lane::drop_queue() {
  queue_.clear();  // answers that still come find their work in the request
  dense_asked_ = false;
}

void Lane::end_mode() {
  if (mode_ended_) return;
  mode_ended_ = true;
  mode_->end();
}

bool Lane::end_if_drained() {
  if ((!ended_ && !failing_) || !queue_.empty()) return false;
  end_mode();
  // Of other lanes' batches too, which this one pushed for them.
  if (in_flight_ > 0 || client_.in_flight() > 0) return false;
  finish();
  return true;
}

void Lane::fail(Status status) {
  if (failing_ || finished_) return;
  failing_ = true;
  status_ = std::move(status);
  drop_queue();
  source_->failed(options_.index, status_);
}

void Lane::abort(Status status) {
  if (finished_) return;
  if (status_.is_ok()) status_ = std::move(status);
  finish();
}

void Lane::finish() {
  drop_queue();
  end_mode();
  finished_ = true;
  wait_ = Wait::kNothing;
  const std::lock_guard lock(progress_mutex_);
  wait_text_.clear();
  progress_.duplicates = client_.duplicates();
  progress_.push_times = client_.push_times();
  progress_.push_ages = client_.push_ages();
  resends_.store(client_.resends(), std::memory_order_relaxed);
  for (size_t s = 0; s < kStages; ++s) progress_.stage_ns[s] += std::exchange(batch_ns_[s], 0);
}

Lane::Wait Lane::find_wait() const {
  if (queue_.empty()) return ended_ || failing_ ? Wait::kLastPushes : Wait::kBlock;
  switch (queue_.front()->stage) {
    case BatchWork::Stage::kPlanned:
      return Wait::kRoom;  // the mode wants an acknowledgement first
    case BatchWork::Stage::kPulling:
      return Wait::kPull;
    case BatchWork::Stage::kPulled:
      return dense_asked_ && !dense_here_ ? Wait::kPull : Wait::kRoom;
  }
  return Wait::kNothing;
}

std::string Lane::wait_text_of(Wait wait) const {
  switch (wait) {
    case Wait::kNothing:
      return "";
    case Wait::kBlock:
      if (client_.in_flight() == 0) return "a block";
      return fmt::format("a block, with {} pushes to be replicated by {}", client_.in_flight(),
                         client_.waits_for_push());
    case Wait::kPull:
      return "pull from " + client_.waits_for_pull();
    case Wait::kRoom:
      return "room for a push: " + mode_->waits();
    case Wait::kLastPushes:
      return "the last pushes: " + mode_->waits();
  }
  return "";
}

std::string Lane::waits() const {
  return finished_ ? "" : wait_text_of(wait_);
}

// False: goes on waiting. True: gave up.
bool Lane::wait_or_give_up() {
  const Wait wait = find_wait();
  const TimeNs now = executor_->now_ns();
  if (wait != wait_ || wait_events_ != events_) {
    wait_ = wait;
    wait_events_ = events_;
    wait_since_ = now;
    const std::lock_guard lock(progress_mutex_);
    wait_text_ = wait_text_of(wait);
    wait_text_since_ = now;
    return false;
  }
  if (wait == Wait::kBlock || now - wait_since_ < options_.answer_deadline_ns) return false;
  const Status status = error(Code::kUnavailable, "lane {} waited {} s for {}; is it overloaded?",
                              options_.index, (now - wait_since_) / kSecond, wait_text_of(wait));
  fail(status);
  finish();
  return true;
}

TimeNs Lane::next_time() const {
  if (wait_ == Wait::kNothing || wait_ == Wait::kBlock) return executor_->now_ns() + kFar;
  return wait_since_ + options_.answer_deadline_ns;
}

std::string Lane::wait_text(TimeNs now) const {
  const std::lock_guard lock(progress_mutex_);
  if (wait_text_.empty() || now - wait_text_since_ < kSecond / 10) return "";
  return fmt::format("{} for {:.1f} s", wait_text_,
                     static_cast<double>(now - wait_text_since_) * 1e-9);
}

void Lane::look_at_servers() {
  const TimeNs now = executor_->now_ns();
  std::vector<ServerId> found;
  if (!finished_) found = client_.suspects(wait_ == Wait::kNothing ? now : wait_since_);
  const std::lock_guard lock(progress_mutex_);
  suspects_ = std::move(found);
  looked_ns_ = now;
}

std::vector<ServerId> Lane::suspects(TimeNs now) const {
  const std::lock_guard lock(progress_mutex_);
  if (now - looked_ns_ > kSecond) return {};
  return suspects_;
}

void Lane::add_progress(Progress* sum) const {
  const std::lock_guard lock(progress_mutex_);
  sum->examples += progress_.examples;
  sum->batches += progress_.batches;
  sum->loss_sum += progress_.loss_sum;
  sum->duplicates += progress_.duplicates;
  sum->push_times.merge(progress_.push_times);
  sum->push_ages.merge(progress_.push_ages);
  for (size_t s = 0; s < kStages; ++s) sum->stage_ns[s] += progress_.stage_ns[s];
  sum->metrics.merge(progress_.metrics);
  sum->phases.resize(std::max(sum->phases.size(), progress_.phases.size()));
  for (size_t p = 0; p < progress_.phases.size(); ++p) {
    sum->phases[p].examples += progress_.phases[p].examples;
    sum->phases[p].loss_sum += progress_.phases[p].loss_sum;
  }
  if (progress_.examples > 0) sum->last_phase = progress_.last_phase;
}

}  // namespace flux
