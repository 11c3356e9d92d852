#include "flux/worker/trainer.h"

#include <algorithm>
#include <utility>

#include "flux/worker/batch_noise.h"
#include "flux/worker/evaluated_check.h"
#include "flux/worker/scored.h"

namespace flux {
namespace {

constexpr TimeNs kFar = 3600 * kSecond;

TrainerOptions with_layout(TrainerOptions options, const std::vector<const Graph*>& graphs,
                           Team* team) {
  options.client = with_model(options.client, graphs);
  options.client.team = team;
  if (options.prepare_ahead == 0) options.prepare_ahead = team->members();
  return options;
}

}  // namespace

Trainer::Trainer(TrainerOptions options, Executor* executor, Team* team,
                 std::vector<std::unique_ptr<Net>> nets, ClusterMap map, ReachServer reach,
                 FetchRoute fetch_route, BatchSource* source, const Mode* mode)
    : options_(with_layout(std::move(options), graphs_of(nets), team)),
      executor_(executor),
      team_(team),
      source_(source),
      client_(options_.client, std::move(map), std::move(reach), std::move(fetch_route), executor),
      mode_(mode),
      preparer_(team, executor, options_.slot_groups),
      no_keys_(options_.client.shape.sparse_shards + 1, 0),
      last_ns_(executor->now_ns()) {
  ModelLayout layout = model_layout(graphs_of(nets), options_.client.shape.sparse_shards);
  size_t heads = 0;
  for (size_t p = 0; p < nets.size(); ++p) {
    heads = std::max(heads, nets[p]->graph().heads().size());
    nets_.push_back({std::move(nets[p]), std::move(layout.table_of[p]), nullptr, 0});
  }
  progress_.change([&](Progress* progress) {
    for (const SliceSlot& slot : options_.slices)
      progress->metrics = ProgressiveSet(slot.values_max);
  });
  predictions_.resize_discard(options_.batch_max * heads);
  client_.on_failure([this] { notify(); });
}

Trainer::~Trainer() = default;

void Trainer::notify() {
  if (notify_) notify_();
}

void Trainer::spend(Stage stage) {
  const TimeNs now = executor_->now_ns();
  batch_ns_[static_cast<size_t>(stage)] += now - last_ns_;
  last_ns_ = now;
}

// What was prepared together took this share of its time to read, and the rest to plan.
void Trainer::spend_on_prepared(double read_share) {
  const TimeNs now = executor_->now_ns(), took = now - last_ns_;
  const auto read = static_cast<TimeNs>(static_cast<double>(took) * read_share);
  batch_ns_[static_cast<size_t>(Stage::kRead)] += read;
  batch_ns_[static_cast<size_t>(Stage::kPlan)] += took - read;
  last_ns_ = now;
}

void Trainer::spend_on_wait() {
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

uint32_t Trainer::phase_of(const BatchWork& work) const {
  return std::min<uint32_t>(network_of(work.item.id.block),
                            static_cast<uint32_t>(nets_.size() - 1));
}

PhaseView Trainer::shape_of(const BatchWork& work) const {
  return options_.client.shape.phase(phase_of(work));
}

BatchWorkPtr Trainer::free_work() {
  if (free_.empty()) return std::make_shared<BatchWork>(options_.client.shape);
  BatchWorkPtr work = std::move(free_.back());
  free_.pop_back();
  return work;
}

void Trainer::make_space(BatchWork* work) {
  if (!free_spaces_.empty()) {
    work->space() = std::move(free_spaces_.back());
    free_spaces_.pop_back();
  }
  work->size_for(options_.client.shape, phase_of(*work));
}

void Trainer::recycle(BatchWorkPtr work) {
  work->item = {};
  if (work->stage != BatchWork::Stage::kPlanned) {
    const size_t tables = work->rows.size();
    free_spaces_.push_back(std::move(work->space()));
    work->rows.resize(tables);
    work->row_gradients.resize(tables);
    work->stage = BatchWork::Stage::kPlanned;
  }
  if (work->dense) free_dense_.push_back(std::exchange(work->dense, nullptr));
  free_.push_back(std::move(work));
}

std::shared_ptr<Buffer<float>> Trainer::free_dense() {
  if (free_dense_.empty()) return std::make_shared<Buffer<float>>(options_.client.shape.parameters);
  auto buffer = std::move(free_dense_.back());
  free_dense_.pop_back();
  return buffer;
}

bool Trainer::step() {
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

// Up to `most` batches from the source, in its order.
std::vector<BatchWorkPtr> Trainer::take_batches(uint32_t most) {
  std::vector<BatchWorkPtr> taken;
  while (taken.size() < most && !ended_) {
    BatchWorkPtr work = free_work();
    const BatchSource::Next next = source_->next(&work->item);
    if (next != BatchSource::Next::kItem) {
      recycle(std::move(work));
      ended_ = next == BatchSource::Next::kEnd;
      break;
    }
    if (!work->item.evaluate && options_.on_begin) options_.on_begin(work->item.id);
    taken.push_back(std::move(work));
  }
  return taken;
}

// When all that were prepared are being pulled, the next ones are prepared together.
bool Trainer::prepare() {
  const bool needed = unpulled_ == 0 && queue_.size() <= options_.pull_ahead;
  if (ended_ || failing_ || !needed) return false;
  const std::vector<BatchWorkPtr> works = take_batches(options_.prepare_ahead);
  spend(Stage::kFeed);
  if (works.empty()) return ended_;
  const Status status = preparer_.prepare(works);
  spend_on_prepared(preparer_.read_share());
  if (!status.is_ok()) {
    fail(status);
    return true;
  }
  queue_.insert(queue_.end(), works.begin(), works.end());
  unpulled_ += works.size();
  return true;
}

bool Trainer::start_pulls() {
  if (failing_) return false;
  bool moved = false;
  while (unpulled_ > 0) {
    const size_t pulled_before = queue_.size() - unpulled_;
    if (pulled_before > options_.pull_ahead || !mode_->may_pull(client_, pulled_before)) break;
    const BatchWorkPtr work = queue_[pulled_before];
    --unpulled_;
    make_space(work.get());
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

void Trainer::pulled(const BatchWorkPtr& work, const Status& status) {
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
bool Trainer::dense_is_here(const BatchWork& front) {
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

bool Trainer::compute_front() {
  if (failing_ || queue_.empty()) return false;
  const BatchWorkPtr work = queue_.front();
  if (work->stage != BatchWork::Stage::kPulled) return false;
  if (!work->item.evaluate && !mode_->may_compute(client_)) return false;
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
  push(work);
  spend(Stage::kPush);
  tell_times();
  return true;
}

void Trainer::push(const BatchWorkPtr& work) {
  ++in_flight_;
  PushWork push = work->push();
  push.memory = work;
  push.applied = [this] { notify(); };
  push.released = [this, work] { acknowledged(work); };
  client_.push(std::move(push));
}

void Trainer::tell_times() {
  progress_.change([&](Progress* progress) {
    for (size_t s = 0; s < kStages; ++s) progress->stage_ns[s] += std::exchange(batch_ns_[s], 0);
    progress->duplicates = client_.duplicates();
    progress->resends = client_.resends();
    progress->push_times = client_.push_times();
    progress->push_ages = client_.push_ages();
  });
}

void Trainer::fill_input(BatchWork* work) {
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
    if (team_->members() > 1) {  // one thread adds up in the order of occurrences
      input_.tables.back().row_begin = work->plan.first().data();
      input_.tables.back().occurrences = work->plan.occurrences().data();
    }
    gradients_.tables.push_back(work->row_gradients[t].data());
  }
  if (of.newest_dense) of.net->set_parameters(of.newest_dense->data());
}

Computed Trainer::computed(const BatchWork& work, double loss) {
  const PhaseNet& of = net_of(work);
  return {&work, &of.net->graph(),    of.tables,
          loss,  predictions_.data(), of.newest_dense ? of.newest_dense->data() : nullptr};
}

// False: the batch was refused.
bool Trainer::train(const BatchWorkPtr& work) {
  Net* const net = net_of(*work).net.get();
  const double loss = net->train(input_, &gradients_, predictions_.data());
  spend(Stage::kCompute);
  std::string refused = why_refused(computed(*work, loss), team_);
  if (!refused.empty()) [[unlikely]] {
    source_->refused(work->item.id, std::move(refused));
    recycle(work);
    return false;
  }
  note_progress(*work, loss);
  return true;
}

void Trainer::note_progress(const BatchWork& work, double loss) {
  const uint32_t n = work.batch.size;
  const Net& net = *net_of(work).net;
  const std::vector<Slice> slices = slices_of(work.batch, options_.slices);
  const uint32_t phase = phase_of(work);
  std::vector<LabelledHead> heads = labelled_heads(net.graph(), work.batch, predictions_.data());
  progress_.change([&](Progress* progress) {
    for (LabelledHead& head : heads) {
      if (!options_.metrics) break;
      if (phase < options_.phases.size()) head.key.phase = options_.phases[phase];
      progress->metrics.add(head.key, {phase, static_cast<uint32_t>(head.index)}, head.batch);
      progress->metrics.add_slices(head.key, head.batch, slices);
    }
    progress->last_phase = phase;
    progress->phases.resize(std::max<size_t>(progress->phases.size(), phase + 1));
    progress->phases[phase].examples += n;
    progress->phases[phase].loss_sum += loss;
    progress->loss_sum += loss;
    progress->examples += n;
    ++progress->batches;
    health_.add(net.graph(), phase, work, predictions_.data(), loss);
  });
}

void Trainer::evaluate(BatchWork* work) {
  Net* const net = net_of(*work).net.get();
  const double loss = net->predict(input_, predictions_.data());
  const Status usable = check_evaluated(loss, input_, net, *work->item.reader, work->item.id);
  if (!usable.is_ok()) [[unlikely]]
    return fail(usable.with_context("evaluation"));
  const ScoredBatches scored(net->graph(), work->batch, predictions_.data(), options_.slices);
  source_->evaluated({work->item.id, encode_scored(work->batch.size, loss, scored.all())});
  spend(Stage::kCompute);
}

void Trainer::acknowledged(const BatchWorkPtr& work) {
  ++events_;
  --in_flight_;
  source_->applied(work->item.id);
  recycle(work);
  notify();
}

void Trainer::drop_queue() {
  queue_.clear();  // answers that still come find their work in the request
  unpulled_ = 0;
  dense_asked_ = false;
}

bool Trainer::end_if_drained() {
  if ((!ended_ && !failing_) || !queue_.empty()) return false;
  if (in_flight_ > 0 || client_.in_flight() > 0) return false;
  finish();
  return true;
}

void Trainer::fail(Status status) {
  if (failing_ || finished_) return;
  failing_ = true;
  status_ = std::move(status);
  drop_queue();
  source_->failed(status_);
}

void Trainer::abort(Status status) {
  if (finished_) return;
  if (status_.is_ok()) status_ = std::move(status);
  finish();
}

void Trainer::finish() {
  drop_queue();
  finished_ = true;
  wait_ = Wait::kNothing;
  wait_report_.waits_for("", executor_->now_ns());
  tell_times();
}

Trainer::Wait Trainer::find_wait() const {
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

std::string Trainer::wait_text_of(Wait wait) const {
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
      return "room for a push: " + mode_->waits(client_);
    case Wait::kLastPushes:
      return "the last pushes: " + mode_->waits(client_);
  }
  return "";
}

std::string Trainer::waits() const {
  return finished_ ? "" : wait_text_of(wait_);
}

// False: goes on waiting. True: gave up.
bool Trainer::wait_or_give_up() {
  const Wait wait = find_wait();
  const TimeNs now = executor_->now_ns();
  if (wait != wait_ || wait_events_ != events_) {
    wait_ = wait;
    wait_events_ = events_;
    wait_since_ = now;
    wait_report_.waits_for(wait_text_of(wait), now);
    return false;
  }
  if (wait == Wait::kBlock || now - wait_since_ < options_.answer_deadline_ns) return false;
  const Status status =
      error(Code::kUnavailable, "the trainer waited {} s for {}; is it overloaded?",
            (now - wait_since_) / kSecond, wait_text_of(wait));
  fail(status);
  finish();
  return true;
}

TimeNs Trainer::next_time() const {
  if (wait_ == Wait::kNothing || wait_ == Wait::kBlock) return executor_->now_ns() + kFar;
  return wait_since_ + options_.answer_deadline_ns;
}

void Trainer::look_at_servers() {
  const TimeNs now = executor_->now_ns();
  std::vector<ServerId> found;
  if (!finished_) found = client_.suspects(wait_ == Wait::kNothing ? now : wait_since_);
  wait_report_.suspect(std::move(found), now);
}

}  // namespace flux
