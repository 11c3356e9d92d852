// Evaluation, stopping, totals, the end.
#include <algorithm>
#include <bit>
#include <utility>

#include "flux/base/text.h"
#include "flux/coordinator/job_state.h"

namespace flux {
namespace {

// What belongs to shards, not to the process that has them.
void add_rows(JobTotals* sum, const JobTotals& t) {
  sum->rows += t.rows;
  sum->memory_bytes += t.memory_bytes;
  sum->occurrences.resize(std::max(sum->occurrences.size(), t.occurrences.size()));
  for (size_t i = 0; i < t.occurrences.size(); ++i) sum->occurrences[i] += t.occurrences[i];
  sum->dense.resize(std::max(sum->dense.size(), t.dense.size()));
  for (size_t p = 0; p < t.dense.size(); ++p) sum->dense[p].add(t.dense[p].min, t.dense[p].max);
  sum->expected_seen += t.expected_seen;
  sum->lost += t.lost;
  sum->doubled += t.doubled;
  sum->content_hash += t.content_hash;
}

}  // namespace

namespace {

// "test: 1,000 examples, AUC 0.77, log loss 0.46" of the first head of each phase.
std::string test_line(const MetricReport& report) {
  std::string line = fmt::format("test: {} examples", with_commas(report.examples));
  if (report.rows.empty()) return line + fmt::format(", loss {:.5f}", report.loss);
  const std::string* phase = nullptr;
  for (const MetricReport::Row& row : report.rows) {
    if (phase != nullptr && *phase == row.key.phase) continue;
    phase = &row.key.phase;
    if (!phase->empty()) line += fmt::format("; {}", *phase);
    if (row.values.auc) line += fmt::format(", AUC {:.5f}", *row.values.auc);
    if (row.values.log_loss) line += fmt::format(", log loss {:.5f}", *row.values.log_loss);
    if (row.values.auc || row.values.log_loss) continue;
    // The loss is of all phases together.
    if (row.values.accuracy && phase->empty()) line += fmt::format(", loss {:.5f}", report.loss);
    if (row.values.accuracy) line += fmt::format(", accuracy {:.5f}", *row.values.accuracy);
    if (row.values.rmse)
      line += fmt::format(", RMSE {:.5f}, MAE {:.5f}", *row.values.rmse, *row.values.mae);
  }
  return line;
}

}  // namespace

uint64_t JobMaster::State::examples_in(const std::vector<uint32_t>& masks) const {
  uint64_t sum = 0;
  for (uint32_t b = 0; b < masks.size(); ++b)
    for (uint32_t j = 0; j < geometry_->batches_in(b); ++j)
      if ((masks[b] >> j) & 1) sum += geometry_->batch_records(b, j);
  return sum;
}

uint64_t JobMaster::State::closed_examples() const {
  uint64_t sum = 0;
  for (const ClosedPass& pass : closed_) sum += pass.records * pass.repeats;
  return sum;
}

// After a pass is closed, and once at the start when every pass already is.
void JobMaster::State::evaluate() {
  if (!plan_.has_test || stopping_) return next_pass();
  slowly<Geometry>([this, self = shared_from_this()] { return plan_.scan_test(&stop_scan_); },
                   [this](Result<Geometry> test) {
                     if (ended()) return;
                     if (test.status().code() == Code::kCancelled || stopping_) return next_pass();
                     if (!test.is_ok()) {  // told at the end: the training is saved and counted
                       evaluation_ = test.status();
                       return next_pass();
                     }
                     test_ = std::move(test).value();
                     geometry_texts_[test_->hash()] = test_->to_json();
                     tell_bad_records("test data", *test_);
                     reports_.reset();
                     begin_test(0);
                   });
}

void JobMaster::State::evaluated_all() {
  set_phase(Phase::kClosing);
  test_queue_.reset();
  // Millions of predictions are sorted for it.
  const auto set = std::make_shared<MetricSet>(std::move(*metrics_));
  metrics_.reset();
  slowly<MetricReport>([set] { return set->report(); },
                       [this](Result<MetricReport> report) {
                         if (!ended()) phase_tested(std::move(report).value());
                       });
}

void JobMaster::State::phase_tested(MetricReport report) {
  const size_t phases = plan_.schedule.phases;
  if (phases == 1) return tested(std::move(report));
  if (!reports_) reports_.emplace();
  const std::string number = std::to_string(test_phase_);
  reports_->add_phase(test_phase_ < plan_.phases.size() ? plan_.phases[test_phase_] : number,
                      std::move(report));
  const auto next = static_cast<uint16_t>(test_phase_ + 1);
  if (next == phases) return tested(*std::exchange(reports_, std::nullopt));
  if (stopping_) return next_pass();
  begin_test(next);
}

void JobMaster::State::tested(MetricReport report) {
  Decision decision;
  decision.kind = "tested";
  decision.term = term_;
  decision.pass = static_cast<uint32_t>(closed_.size() - 1);
  decision.geometry = closed_.back().geometry;
  look_at_test(report, &decision);
  log_decision(decision);
  evaluation_ = Status::ok();
  tested_ = std::move(report);
  say(test_line(*tested_));
  events_->tested(closed_.back().name, *tested_);
  judge_test(*tested_);
  next_pass();
}

// Bad test data: told at the end if nothing is left to train; else it ends the job here.
void JobMaster::State::test_failed(const Status& why) {
  set_phase(Phase::kClosing);
  test_queue_.reset();
  evaluation_ = why;
  if (closed_.size() < plan_.passes.size())
    return fail(why.with_context("the model is saved, but the test"));
  next_pass();
}

// Every pass is closed, or we were asked to stop between two.
void JobMaster::State::after_pass() {
  const bool complete = closed_.size() == plan_.passes.size();
  const bool nothing_trained = last_checkpoint_.empty() && !pass_open_ && train_ns_ == 0;
  if (complete && nothing_trained && !adopted_ && !tested_ && evaluation_.is_ok() && !stopping_) {
    say("every pass of this job is closed: nothing to train");
    const uint32_t repeats = plan_.schedule.sections();
    for (const ClosedPass& pass : closed_)
      if (pass.repeats != repeats) {
        say(
            fmt::format("pass {} was trained {} x (phases times epochs); the job file says {} x, "
                        "which is not taken up",
                        pass.name, pass.repeats, repeats));
        break;
      }
    say("a closed pass is not trained again, with other settings neither: add a pass to train on "
        "(passes), give another folder with --set output=DIR, or start over with --fresh");
    if (plan_.has_test) return evaluate();
  }
  finish(complete && !(stopping_ && plan_.has_test && !tested_));
}

void JobMaster::State::stop(const std::string& why) {
  if (stopping_ || ended()) return;
  stopping_ = true;
  stop_reason_ = why;
  stop_scan_ = true;
  tell_supervisor();
  switch (phase_) {
    case Phase::kJoining:
      if (folder_open_) finish(false);  // it waits for servers
      break;
    case Phase::kLoading:
      if (!adopted_ && (!restored_ || restored_->geometry == 0)) finish(false);
      break;
    case Phase::kTraining:
      drain();
      break;
    case Phase::kEvaluating:
      set_phase(Phase::kClosing);
      test_queue_.reset();
      next_pass();
      break;
    default:
      break;  // the step under way sees it at its end
  }
  pump();
}

void JobMaster::State::drain() {
  train_ns_ += now() - train_start_;
  events_->training(false, 0, 0);
  set_phase(Phase::kDraining);
  pump();
  drained();
}

void JobMaster::State::drained() {
  const bool late = now() - phase_since_ > options_.drain_deadline_ns;
  if (!workers_.empty() && !late) return;
  if (late && !workers_.empty())
    say(fmt::format("warning: {} worker(s) did not leave within {} s", workers_.size(),
                    options_.drain_deadline_ns / kSecond));
  set_phase(Phase::kClosing);
  save_last();
}

void JobMaster::State::save_last() {
  save(false, [this](const Status& saved) {
    if (ended()) return;
    if (saved.code() == Code::kUnavailable && now() - phase_since_ < options_.call_timeout_ns) {
      executor_->post(kSecond / 5, guard([this] {
                        if (!ended()) save_last();
                      }));
      return;
    }
    if (!saved.is_ok()) return fail(saved);
    finish(false);
  });
}

// Nobody trains: what the servers have is saved before the end.
void JobMaster::State::give_up_waiting() {
  const auto end_so = [this](const Status& saved) {
    if (ended()) return;
    if (!saved.is_ok()) say("warning: no checkpoint: " + saved.message());
    fail(error(Code::kUnavailable, "no worker has been here for {} s; {}",
               options_.workers_deadline_ns / kSecond, how_to_go_on()));
  };
  if (phase_ != Phase::kTraining) return end_so(Status::ok());
  train_ns_ += now() - train_start_;
  events_->training(false, 0, 0);
  set_phase(Phase::kClosing);
  save(false, end_so);
}

// Also while totals are counted: nobody will send them any more.
void JobMaster::State::give_up(const Status& status) {
  phase_ == Phase::kEnding ? end(status) : fail(status);
}

void JobMaster::State::fail(const Status& status) {
  if (ended()) return;
  if (phase_ == Phase::kTraining) {
    train_ns_ += now() - train_start_;
    events_->training(false, 0, 0);
  }
  failure_ = status;
  end(status);
}

void JobMaster::State::finish(bool complete) {
  if (ended()) return;
  outcome_.complete = complete;
  set_phase(Phase::kEnding);
  tell_supervisor();
  counting_ = false;
  pump();
  left();
}

// The last reports come with the goodbyes.
void JobMaster::State::left() {
  const bool late = now() - phase_since_ > options_.leave_deadline_ns;
  if (counting_ || (!workers_.empty() && !late)) return;
  counting_ = true;
  outcome_.passes = closed_;
  if (!pass_open_ || !places_on_) return ask_totals();
  outcome_.open.assign(plan_.schedule.phases, {});
  const uint32_t first = has_gaps() ? 0 : section_;
  for (uint32_t s = 0; s < first; ++s) {
    OpenPhase& of = outcome_.open[plan_.schedule.section(pass_, s).phase];
    of.all += geometry_->records();
    of.any += geometry_->records();
  }
  count_open(first);
}

// Sections run one after another: those before the current one are complete, those after it are
// empty. Not so once a shard went back: it may lack what was complete, and has what was in flight
// then of sections that are to come again.
bool JobMaster::State::has_gaps() const {
  return losses_ > 0 || adopted_ || restored_;
}

void JobMaster::State::count_open(uint32_t section) {
  const auto counted = [this] {
    OpenPhase sum;
    for (const OpenPhase& of : outcome_.open) {
      sum.all += of.all;
      sum.any += of.any;
    }
    outcome_.passes.push_back({"open", sum.all, 1, 0, 0});
    const uint64_t due = geometry_->records() * plan_.schedule.sections();
    outcome_.untrained = due - std::min(due, sum.all);
    outcome_.partly = sum.any - sum.all;
    ask_totals();
  };
  if (section == plan_.schedule.sections()) return counted();
  const BlockId id = plan_.schedule.section(pass_, section);
  ask_marked(id, true, [=, this](const Result<std::vector<uint32_t>>& some) {
    if (!some.is_ok()) return end(some.status());
    const uint64_t more = examples_in(some.value());
    if (more == 0 && !has_gaps()) return counted();
    ask_marked(id, false, [=, this](const Result<std::vector<uint32_t>>& every) {
      if (!every.is_ok()) return end(every.status());
      outcome_.open[id.phase].all += examples_in(every.value());
      outcome_.open[id.phase].any += more;
      count_open(section + 1);
    });
  });
}

void JobMaster::State::ask_totals() {
  std::vector<ExpectedCount> expected;
  if (plan_.key_per_example && closed_.size() == plan_.passes.size())
    for (const ClosedPass& pass : closed_)
      expected.push_back(
          {pass.records, pass.repeats / plan_.schedule.phases * plan_.counted_phases});
  if (!places_on_) {  // no rows anywhere: nothing that counters could be compared with
    outcome_.passes.clear();
    return end(Status::ok());
  }
  const auto found = std::make_shared<std::map<ServerId, JobTotals>>();
  ask_all(
      "the totals",
      [this, expected, found](ServerAdminPort* port, AdminCall call, const AskDone& done) {
        const ServerId server = call.shards.empty() ? 0 : places_->place(call.shards[0]).primary;
        port->totals(std::move(call), true, expected,
                     [found, done, server](const Result<JobTotals>& answer) {
                       if (!answer.is_ok()) return done(answer.status(), nullptr);
                       done(Status::ok(), [found, server, totals = answer.value()] {
                         const auto [at, is_new] = found->try_emplace(server, totals);
                         if (!is_new) add_rows(&at->second, totals);
                       });
                     });
      },
      [this, found](const Status& status) {
        if (!status.is_ok()) return end(status);
        for (const auto& [server, totals] : *found) add_totals(totals);
        outcome_.rows = outcome_.totals.rows;
        end(Status::ok());
      });
}

void JobMaster::State::add_totals(const JobTotals& t) {
  JobTotals& sum = outcome_.totals;
  add_rows(&sum, t);
  sum.cpu_s += t.cpu_s;
  sum.rss_bytes += t.rss_bytes;
  sum.pulls += t.pulls;
  sum.pushes += t.pushes;
  sum.duplicates += t.duplicates;
  sum.refused += t.refused;
  sum.bytes_in += t.bytes_in;
  sum.bytes_out += t.bytes_out;
  outcome_.servers.push_back(t);
}

void JobMaster::State::end(const Status& status) {
  if (phase_ == Phase::kEnded) return;
  set_phase(Phase::kEnded);
  tell_supervisor();
  if (!status.is_ok() && failure_.is_ok()) failure_ = status;
  pump();
  outcome_.status = failure_;
  if (failure_.is_ok() && folder_open_) {  // the next start waits for nobody
    Decision over;
    over.kind = "end";
    over.term = term_;
    log_decision(over);
  }
  outcome_.evaluation = evaluation_;
  if (tested_) judge_test(*tested_);  // the last reports may have come after it
  outcome_.test = tested_;
  outcome_.progressive = progressive();
  outcome_.train_s = static_cast<double>(train_ns_) * 1e-9;
  outcome_.resumed_from = resumed_from_;
  if (best_ != 0) outcome_.best = store().path_of(best_);
  outcome_.model = last_checkpoint_.empty() ? resumed_from_ : last_checkpoint_;
  outcome_.last = this->status();
  outcome_.sum = sum_reports();
  outcome_.workers = gone_;
  for (const WorkerStatus& worker : outcome_.last.workers) outcome_.workers.push_back(worker);
  // The rows are of no use any more, where a server goes on with other jobs.
  if (places_on_ && !options_.standing_servers.empty())
    for (const ServerEntry& server : servers_)
      if (!server.gone) server.admin->close_job(make_call({}), [](const Status&) {});
  asks_.clear();
  events_->finished(outcome_);
}

}  // namespace flux
