// Checkpoints, and closing a pass by one.
#include <algorithm>
#include <utility>

#include "flux/base/check.h"
#include "flux/coordinator/job_state.h"

namespace flux {
namespace {
constexpr TimeNs kAgainNs = 200 * kMillisecond;
}

void JobMaster::State::maybe_checkpoint() {
  if (plan_.checkpoint_every_s <= 0 || now() < next_checkpoint_ || saving_ || verifying_) return;
  if (plan_.deterministic) {
    hold_ = true;  // the next lease waits; every batch leased so far is applied first
    if (queue_ && queue_->pending() > 0) return;
  }
  save(false, [this](const Status& status) {
    if (!status.is_ok() && !ended())
      say("warning: no checkpoint, training goes on: " + status.message());
    const auto every = static_cast<TimeNs>(plan_.checkpoint_every_s * static_cast<double>(kSecond));
    const bool soon = status.code() == Code::kUnavailable;  // a shard changed hands meanwhile
    next_checkpoint_ = now() + (soon ? std::min(every, kAgainNs) : every);
    hold_ = false;
    pump();
  });
}

uint64_t JobMaster::State::examples_by_hints() const {
  uint64_t sum = geometry_->records() * section_;
  if (!queue_ || section_ >= plan_.schedule.sections()) return sum;
  std::vector<uint32_t> masks(geometry_->blocks.size());
  for (uint32_t b = 0; b < masks.size(); ++b) masks[b] = queue_->applied_mask(b);
  return sum + examples_in(masks);
}

// One at a time: a second one waits for the first.
void JobMaster::State::save(bool closing, Then then) {
  if (saving_) {
    after_save_.push_back([this, closing, pass = pass_, then = std::move(then)] {
      // The one before may have closed the pass: then this one has nothing to save, or to close.
      if (pass_open_ && pass_ == pass) return save(closing, then);
      if (!closing) then(Status::ok());
    });
    return;
  }
  saving_ = true;
  const Then finished = [this, begun = now(), then = std::move(then)](const Status& status) {
    saving_ = false;
    if (status.is_ok()) checkpoint_time_ = begun;  // no shard's rows in it are older
    if (status.code() == Code::kStale) fail(status);
    then(status);
    while (!saving_ && !after_save_.empty() && phase_ != Phase::kEnded) {
      const auto next = std::move(after_save_.front());
      after_save_.erase(after_save_.begin());
      next();
    }
  };
  const uint64_t point = queue_ ? queue_->mark_point() : 0;
  lost_since_save_.clear();
  slowly<uint64_t>(
      [this, self = shared_from_this()]() -> Result<uint64_t> {
        FLUX_RETURN_IF_ERROR(still_mine());
        return store().begin(last_number_);
      },
      [this, closing, finished, point](const Result<uint64_t>& number) {
        if (!number.is_ok()) return finished(number.status());
        last_number_ = number.value();
        using Saved = std::vector<SavedShard>;
        const auto all = std::make_shared<Saved>();
        // A shard that changes hands on the way ends it: two servers must not write one file.
        ask_all(
            fmt::format("checkpoint {}", last_number_),
            [this, all](ServerAdminPort* port, AdminCall call, const AskDone& done) {
              port->save(std::move(call), checkpoint_folder_, last_number_, committed_,
                         [all, done](const Result<Saved>& saved) {
                           if (!saved.is_ok()) return done(saved.status(), nullptr);
                           done(Status::ok(), [all, part = saved.value()] {
                             all->insert(all->end(), part.begin(), part.end());
                           });
                         });
            },
            [this, closing, finished, point, all, n = last_number_](const Status& status) {
              if (!status.is_ok()) return abandon(n, status, finished);
              write_manifest(n, closing, point, std::move(*all), finished);
            },
            false);
      });
}

void JobMaster::State::abandon(uint64_t number, const Status& why, const Then& then) {
  slowly<bool>(
      [this, self = shared_from_this(), number]() -> Result<bool> {
        FLUX_RETURN_IF_ERROR(still_mine());
        return store().abandon(number).is_ok();  // else it is a leftover of the next start
      },
      // Whoever has taken the job over has removed what is not committed: that is why.
      [why, then](const Result<bool>& mine) {
        then(mine.status().code() == Code::kStale ? mine.status() : why);
      });
}

void JobMaster::State::write_manifest(uint64_t number, bool closing, uint64_t point,
                                      std::vector<SavedShard> saved, Then then) {
  FLUX_CHECK(pass_ < plan_.passes.size(), "checkpoint {} after the last pass", number);
  std::sort(saved.begin(), saved.end(),
            [](const SavedShard& a, const SavedShard& b) { return a.shard < b.shard; });
  for (size_t s = 0; s < saved.size(); ++s)
    if (saved[s].shard != s || saved.size() != plan_.all_shards)
      return abandon(
          number,
          error(Code::kCorrupt, "{} shards were saved of {}", saved.size(), plan_.all_shards),
          then);
  Manifest base;
  base.number = number;
  base.job = plan_.name;
  base.incarnation = incarnation_;
  base.epoch = {term_, places_->version() & 0xFFFFFFFF};
  base.model = plan_.model;
  base.closed = closed_;
  const std::string pass_name = plan_.passes[pass_];
  if (closing) {
    base.closed.push_back(
        {pass_name, geometry_->records(), plan_.schedule.sections(), geometry_->hash(), 0});
    base.closed.back().batches = geometry_->batches();
    base.closed.back().bad_records = geometry_->bad_records();
  } else {
    base.geometry = geometry_->hash();
    base.open_pass = pass_name;
    base.examples = examples_by_hints();
  }
  auto linked = link_shards(saved, committed_ != 0 ? &*newest_ : nullptr);
  if (!linked.is_ok()) {
    committed_ = 0;  // the next save builds on nothing
    return abandon(number, linked.status(), then);
  }
  base.shards = std::move(linked).value();
  slowly<Manifest>(
      [this, self = shared_from_this(), base = std::move(base), closing, geometry = *geometry_,
       pass = pass_]() -> Result<Manifest> {
        FLUX_RETURN_IF_ERROR(still_mine());
        const PassToClose close{pass, plan_.schedule, &geometry};
        return commit_checkpoint(store(), base, closing ? nullptr : &geometry,
                                 closing ? &close : nullptr);
      },
      [this, closing, point, then = std::move(then)](const Result<Manifest>& written) {
        if (!written.is_ok()) return then(written.status());
        last_checkpoint_ = store().path_of(written.value().number);
        committed_ = written.value().number;
        newest_ = written.value();
        checkpoint_time_ = now();
        if (closing) closed_ = written.value().closed;
        if (queue_ && !closing) queue_->applied_before_are_safe(point);
        events_->saved(last_checkpoint_);
        if (closing) events_->pass_closed(closed_.back());
        slowly<bool>(
            [this, self = shared_from_this()]() -> Result<bool> {
              FLUX_RETURN_IF_ERROR(still_mine());
              FLUX_RETURN_IF_ERROR(store().prune(plan_.checkpoint_keep, best_));
              return true;
            },
            [this, then](const Result<bool>& pruned) {
              // The checkpoint stands, whatever becomes of older ones.
              if (!pruned.is_ok()) say("warning: " + pruned.status().message());
              then(Status::ok());
            });
      });
}

void JobMaster::State::close_pass() {
  if (phase_ == Phase::kTraining) {
    train_ns_ += now() - train_start_;
    events_->training(false, 0, 0);
  }
  set_phase(Phase::kClosing);
  verifying_ = false;
  save(true, [this](const Status& saved) {
    if (ended()) return;
    // kCorrupt: a shard lacks a batch, which was restored from an older state perhaps.
    constexpr uint32_t kIncompleteMax = 5;
    const bool again = saved.code() == Code::kUnavailable ||
                       (saved.code() == Code::kCorrupt && ++close_tries_ <= kIncompleteMax);
    if (again) return close_again(saved, kAgainNs);
    if (saved.code() == Code::kIo && wait_for_disk(saved)) return;
    close_tries_ = 0;
    unwritten_since_.reset();
    if (!saved.is_ok())
      return fail(
          Status(saved.code(),
                 fmt::format("{}\nthe end of pass {} was not saved; mend this and run again: "
                             "training goes on from {}",
                             saved.message(), plan_.passes[pass_],
                             last_checkpoint_.empty() ? "its start" : last_checkpoint_)));
    pass_open_ = false;
    queue_.reset();
    // What was restored from an older checkpoint meanwhile is behind the pass that is closed now.
    for (const ShardId s : std::exchange(lost_since_save_, {})) places_->lose(s);
    recount_ = false;
    pump_places();
    pass_closed();
  });
}

// A disk that is full can be emptied while the servers keep everything. False: it was waited for
// long enough, or the job is to stop.
bool JobMaster::State::wait_for_disk(const Status& why) {
  if (!unwritten_since_) unwritten_since_ = now();
  const TimeNs waited = now() - *unwritten_since_, left = options_.disk_patience_ns - waited;
  if (stopping_ || left <= 0) return false;
  const Status told = why.with_context(
      fmt::format("nothing is lost yet; there are {} s left to mend this", left / kSecond));
  close_again(told, std::clamp(waited / 2, kSecond, 20 * kSecond));
  return true;
}

// A shard changed hands while it was saved, or a disk was full. What shards have now is looked at
// before the next try.
void JobMaster::State::close_again(const Status& why, TimeNs later) {
  say("warning: the pass is not closed yet, it is tried again: " + why.message());
  executor_->post(later, guard([this] {
                    if (ended() || phase_ != Phase::kClosing) return;
                    recount_ = false;
                    look_again();
                  }));
}

void JobMaster::State::pass_closed() {
  set_phase(Phase::kClosing);
  const auto below = static_cast<uint32_t>(closed_.size());
  tell_all(
      "passes to be closed",
      [below](ServerAdminPort* port, AdminCall call, ServerAdminPort::Done done) {
        port->close_below(std::move(call), below, std::move(done));
      },
      [this, below](const Status& status) {
        if (ended()) return;
        if (!status.is_ok()) return fail(status);
        const bool taken_up = adopted_ && open_geometry(below) != 0;
        if (taken_up || (adopted_ && below > 0 && was_tested(below - 1) && !tested_))
          return next_pass();
        evaluate();
      });
}

}  // namespace flux
