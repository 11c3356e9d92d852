#include "flux/main/job_console.h"

#include <algorithm>
#include <map>
#include <utility>

#include "flux/base/cpu.h"
#include "flux/base/text.h"
#include "flux/main/metric_json.h"
#include "flux/storage/atomic_file.h"
#include "flux/worker/progress.h"

namespace flux {
namespace {

// How the run that trained the model saw its training.
void take_told(const nlohmann::ordered_json& told, Summary* s) {
  const auto number = [&](const char* name) -> std::optional<double> {
    if (!told.contains(name) || !told[name].is_number()) return std::nullopt;
    return told[name].get<double>();
  };
  if (!told.contains("train") || !told["train"].is_object()) return;
  s->train_auc = number("train_auc");
  s->train_logloss = number("train_logloss");
  s->told = told["train"].dump();
  if (!told.contains("warnings") || !told["warnings"].is_array()) return;
  for (const auto& one : told["warnings"]) {  // of then; tests were made again
    if (!one.is_object()) continue;
    const std::string id = one.value("id", "");
    if (id.empty() || id.starts_with("test_")) continue;
    s->warnings.push_back({id, one.value("phase", ""), one.value("part", ""), one.value("text", ""),
                           one.value("examples", uint64_t{0}), one.value("active", true)});
    if (s->warnings.back().active) s->quality = "suspect";
  }
}

}  // namespace

JobConsole::JobConsole(JobConsoleOptions options)
    : options_(std::move(options)),
      start_(steady_now_ns()),
      view_(options_.json || options_.quiet ? ProgressView::Show::kNothing
            : options_.terminal             ? ProgressView::Show::kBar
                                            : ProgressView::Show::kLines,
            &curve_, options_.log_loss),
      record_(options_.output),
      events_(options_.json) {
  events_.emit("started", {{"job", options_.job},
                           {"output", options_.output},
                           {"passes", options_.passes},
                           {"mode", options_.mode},
                           {"precision", options_.precision},
                           {"threads", options_.threads}});
}

std::string JobConsole::in_output(const char* name) const {
  return join_path(options_.output, name);
}

void JobConsole::say(const std::string& line) {
  if (!options_.quiet) events_.message(line);
  view_.say(line);
}

void JobConsole::warn(const Status& status) {
  if (!status.is_ok()) say("warning: " + status.message());
}

void JobConsole::tell_new_rows() {
  const bool news = rows_told_ < curve_.rows().size();
  const MetricReport seen = news && progressive_ ? progressive_() : MetricReport();
  const bool parts = seen.rows.size() > 1;  // phases, heads or slices
  for (; rows_told_ < curve_.rows().size(); ++rows_told_) {
    const CurveRow& row = curve_.rows()[rows_told_];
    const bool last = rows_told_ + 1 == curve_.rows().size();
    warn(record_.row(row, parts && last ? seen : MetricReport()));
    nlohmann::ordered_json event = {{"examples", row.examples},
                                    {"total", total_},
                                    {"loss_since", row.loss_since},
                                    {"loss_average", row.loss_average},
                                    {"auc", nullptr},
                                    {"examples_per_s", row.examples_per_s}};
    if (row.auc) event["auc"] = *row.auc;
    if (parts && last) event["heads"] = metrics_json(seen)["heads"];
    events_.emit("progress", event);
  }
}

ProgressPoint JobConsole::point(const JobStatus& status) const {
  ProgressPoint p;
  p.examples = status.examples_run;
  p.loss_sum = status.phase_loss_sum;
  p.auc = status.train_auc;
  p.phase = status.phase_name;
  p.phase_examples = status.phase_examples;
  p.phase_loss_sum = status.phase_loss_sum;
  p.applied = status.examples_applied;
  return p;
}

void JobConsole::training(bool on, uint64_t before, uint64_t total) {
  const ProgressPoint now = point(snapshot_());
  if (on) {
    if (!curve_loaded_) {
      curve_.load(in_output("curve.tsv"), before);
      rows_told_ = curve_.rows().size();
      warn(record_.begin(before));
    }
    curve_loaded_ = true;
    total_ = total;
    view_.begin(now, total, steady_now_ns());
  } else {
    view_.finish(now, steady_now_ns());
    tell_new_rows();
  }
  training_ = on;
}

void JobConsole::tick() {
  if (!training_) return;
  const TimeNs now = steady_now_ns();
  const ProgressPoint p = point(snapshot_());
  if (view_.due(p.examples, now)) view_.update(p, now);
  tell_new_rows();
  view_.draw_bar(p, now);
}

void JobConsole::saved(const std::string& path) {
  warn(curve_.save(in_output("curve.tsv")));
  events_.emit("checkpoint", {{"path", path}});
}

void JobConsole::warned(const TrainingWarning& warning) {
  events_.emit("warning", {{"id", warning.id},
                           {"phase", warning.phase},
                           {"part", warning.part},
                           {"examples", warning.examples},
                           {"text", warning.text}});
  view_.warn("warning: " + to_string(warning));
}

void JobConsole::pass_closed(const ClosedPass& pass) {
  events_.emit("pass_done", {{"pass", pass.name},
                             {"examples", pass.records},
                             {"repeats", pass.repeats},
                             {"skipped", pass.skipped_examples + pass.bad_records * pass.repeats}});
}

void JobConsole::tested(const std::string& pass, const MetricReport& report) {
  const uint64_t trained = snapshot_().examples_applied;
  warn(record_.tested(pass, trained, report));
  events_.emit("evaluated", {{"pass", pass}, {"trained", trained}, {"test", metrics_json(report)}});
}

void JobConsole::finished(const JobOutcome& outcome) {
  outcome_ = outcome;
  if (curve_loaded_ && outcome.status.is_ok())
    view_.finish(point(outcome.last), steady_now_ns());  // what came in after the last row
  tell_new_rows();
}

std::vector<RoleCost> JobConsole::roles() const {
  const JobOutcome& o = *outcome_;
  std::vector<RoleCost> roles;
  if (options_.embedded) {
    roles.push_back({"embedded", options_.job, process_cpu_s(), peak_rss_bytes(), 0, 0});
    return roles;
  }
  roles.push_back({"coordinator", "coordinator", process_cpu_s(), peak_rss_bytes(), 0, 0});
  for (size_t i = 0; i < o.servers.size(); ++i) {
    const JobTotals& t = o.servers[i];
    roles.push_back({"server", i < o.last.servers.size() ? o.last.servers[i].name : "", t.cpu_s,
                     t.rss_bytes, t.bytes_in, t.bytes_out});
  }
  for (const WorkerStatus& w : o.workers)
    roles.push_back({"worker", w.name, w.report.cpu_s, w.report.rss_bytes, w.report.bytes_received,
                     w.report.bytes_sent});
  return roles;
}

Summary JobConsole::summarize() const {
  const JobOutcome& o = *outcome_;
  Summary s;
  s.job = options_.job;
  s.state = o.complete ? "complete" : "stopped";
  s.examples = o.sum.examples;
  s.train_s = o.train_s;
  s.examples_per_s = s.train_s > 0 ? static_cast<double>(s.examples) / s.train_s : 0;
  s.pushes = {o.sum.push_times, o.totals.duplicates, o.totals.refused, o.sum.push_ages};
  s.auc = o.last.auc;
  s.logloss = o.last.logloss;
  s.test = o.test;
  s.progressive = o.progressive;
  if (const MetricValues* seen = s.progressive.whole(); seen != nullptr) {
    s.train_auc = seen->auc;
    s.train_logloss = seen->log_loss;
  }
  const bool all_closed =
      std::none_of(o.passes.begin(), o.passes.end(),
                   [](const ClosedPass& p) { return p.name == "open" && p.geometry == 0; }) &&
      o.passes.size() == options_.passes;
  CountedModel counted = options_.counted;
  counted.key_per_example = counted.key_per_example && all_closed;
  s.accounting = account(o.totals, o.passes, o.open, counted);
  const size_t phases = options_.phases.size();
  const auto by_phase = account_phases(o.totals, o.passes, o.open, phases);
  for (size_t p = 0; p < phases && phases > 1; ++p)
    s.phases.push_back({options_.phases[p], by_phase[p]});
  s.rows = o.rows;
  s.resumed_from = o.resumed_from;
  s.quality = o.last.quality;
  s.warnings = o.last.warnings;
  s.stopped_by = o.stopped_by;
  s.untrained = o.untrained;
  s.passes_left = options_.passes - std::min(options_.passes, o.passes.size());
  s.best = o.best;
  s.precision = options_.precision;
  s.isa = isa_name();
  s.threads = options_.threads;
  s.mode = options_.mode;
  s.wire = options_.wire;
  s.model_hash = o.totals.content_hash;
  s.roles = roles();
  for (const RoleCost& role : s.roles) s.peak_rss_bytes += role.peak_rss_bytes;
  std::map<std::string, uint32_t> threads;  // a worker that came back counts once
  for (const WorkerStatus& w : o.workers) threads[w.name] = w.threads;
  if (!options_.embedded)
    for (const auto& [name, n] : threads) s.threads += n;
  s.wall_s = static_cast<double>(steady_now_ns() - start_) * 1e-9;
  return s;
}

// What the run before left about the model that is here; nothing if that was another model.
nlohmann::ordered_json JobConsole::told_before(const Summary& s) const {
  const auto text = read_whole_file(in_output("summary.json"), 64ULL << 20);
  if (!text.is_ok()) return {};
  const auto told = nlohmann::ordered_json::parse(text.value(), nullptr, false);
  const bool same = told.is_object() && told.value("state", "") == s.state &&
                    told.value("model_hash", "") == fmt::format("{:016x}", s.model_hash);
  return same ? told : nlohmann::ordered_json();
}

Result<Summary> JobConsole::result() {
  FLUX_CHECK(ended(), "the job goes on");
  FLUX_RETURN_IF_ERROR(outcome_->status);
  Summary s = summarize();
  if (outcome_->complete && !curve_loaded_) {  // what was trained, was by earlier runs
    curve_.load(in_output("curve.tsv"), UINT64_MAX);
    if (!curve_.rows().empty()) s.train_auc = curve_.rows().back().auc;
  }
  const auto before = curve_loaded_ ? nlohmann::ordered_json() : told_before(s);
  take_told(before, &s);
  // A run that never got to train has nothing to say about the model that is here.
  const bool keep = !outcome_->complete && !curve_loaded_ && path_exists(in_output("summary.json"));
  if (!keep) FLUX_RETURN_IF_ERROR(write_files(s, before));
  print_end(s);
  if (!options_.quiet)
    events_.emit("finished", {{"summary", nlohmann::ordered_json::parse(summary_json(s))}});
  if (!outcome_->evaluation.is_ok())
    return outcome_->evaluation.with_context("the model is saved, but the test");
  return s;
}

// `before`: what told_before() found.
Status JobConsole::write_files(const Summary& s, const nlohmann::ordered_json& before) const {
  const std::string summary = summary_json(s);
  FLUX_RETURN_IF_ERROR(write_file_atomic(in_output("summary.json"), summary));
  if (before.contains("test") && before["test"] == nlohmann::ordered_json::parse(summary)["test"] &&
      path_exists(in_output("report.html")))
    return Status::ok();  // the report of then has more: each test, the speed
  if (!curve_.rows().empty()) FLUX_RETURN_IF_ERROR(curve_.save(in_output("curve.tsv")));
  FLUX_RETURN_IF_ERROR(record_.write_report(s, curve_.rows()));
  return write_file_atomic(in_output("curve.svg"), curve_.to_svg(options_.job, s.auc.value_or(0)));
}

// The last thing that is said of a training that looks sick.
void JobConsole::print_quality(const Summary& s) {
  if (s.quality == "ok") return;
  const std::string bar(72, '!');
  std::string text = bar + "\nQUALITY SUSPECT: the run ended well, its model may be worthless";
  for (const TrainingWarning& warning : s.warnings)
    if (warning.active) text += fmt::format("\n{}: {}", warning.id, to_string(warning));
  view_.warn(text + "\n" + bar);
}

// Heads, phases and slices, a line each; nothing if there is only one.
void JobConsole::print_parts(const char* what, const MetricReport& report) {
  if (report.rows.size() < 2) return;
  for (const MetricReport::Row& row : report.rows) {
    const std::string name = to_string(row.key);
    say(fmt::format("{} {}: {} examples · {}", what, name.empty() ? "all" : name,
                    with_commas(row.values.examples), metric_line(row.values)));
  }
}

void JobConsole::print_end(const Summary& s) {
  const std::vector<int64_t>& stages = outcome_->sum.stage_ns;
  int64_t total = 0;
  for (const int64_t ns : stages) total += ns;
  std::string line;
  for (size_t i = 0; i < std::min(kStages, stages.size()) && total > 0; ++i)
    line += fmt::format("{}{} {:.1f}%", i > 0 ? ", " : "", stage_name(static_cast<Stage>(i)),
                        100.0 * static_cast<double>(stages[i]) / static_cast<double>(total));
  if (!line.empty()) say("time by stage: " + line);
  print_parts("while training", s.progressive);
  if (s.test) print_parts("test", *s.test);
  for (const PhaseSummary& phase : s.phases)
    say(fmt::format("phase {}: {}", phase.name, accounting_line(phase.accounting)));
  say(accounting_line(s));
  if (!outcome_->model.empty())
    say(fmt::format("model: {} ({} rows)\nreport: {}", outcome_->model, with_commas(s.rows),
                    in_output("report.html")));
  if (!s.best.empty()) say("best checkpoint: " + s.best);
  if (!s.stopped_by.empty()) {
    say(fmt::format("stopped by {}; {}", s.stopped_by, left_line(s)));
    events_.emit("stopped", {{"by", s.stopped_by},
                             {"untrained", s.untrained},
                             {"passes_left", s.passes_left},
                             {"best", s.best}});
  } else if (s.state == "stopped") {
    say(fmt::format("stopped; to go on: {}", options_.resume_command));
  }
  print_quality(s);
}

}  // namespace flux
