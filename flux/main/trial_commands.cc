// Commands that look at a job before it is trained: graph, run --dry-run, run --smoke.
#include <cstdio>

#include "flux/base/text.h"
#include "flux/main/checked_job.h"
#include "flux/main/commands.h"
#include "flux/main/dense_note.h"
#include "flux/main/event_lines.h"
#include "flux/main/forecast.h"
#include "flux/main/stop_signal.h"
#include "flux/main/trial.h"
#include "flux/nn/operator.h"
#include "flux/report/graph_svg.h"
#include "flux/storage/atomic_file.h"

namespace flux {
namespace {

constexpr uint64_t kForecastBatches = 64;

// The networks of all phases in one picture, names with the phase before them.
std::vector<PictureNode> picture_of_job(const RoleJob& role) {
  if (role.graphs.size() == 1) return picture_of(*role.graphs[0]);
  std::vector<PictureNode> all;
  for (size_t p = 0; p < role.graphs.size(); ++p) {
    const auto first = static_cast<uint32_t>(all.size());
    for (PictureNode& node : picture_of(*role.graphs[p])) {
      node.name = role.job.phases[p].name + "/" + node.name;
      for (uint32_t& input : node.inputs) input += first;
      all.push_back(std::move(node));
    }
  }
  return all;
}

Status dry_run(const Job& job) {
  FLUX_ASSIGN_OR_RETURN(const RoleJob role, open_role_job(job));
  FLUX_ASSIGN_OR_RETURN(const auto files, training_files(job));
  FLUX_ASSIGN_OR_RETURN(const Trial trial, run_trial(job, kForecastBatches, install_stop_signal()));
  FLUX_RETURN_IF_ERROR(check_trial(trial));
  Job sampled = job;
  sampled.data = trial.data;
  FLUX_ASSIGN_OR_RETURN(const IdCounts ids, count_ids(trial.text, sampled));
  fmt::print("{}", forecast_text(forecast(role, files.paths.size(), trial, ids)));
  return Status::ok();
}

// Lines for people: on standard output, or as events of it.
class Told {
 public:
  explicit Told(bool json) : events_(json) {}
  bool json() const { return events_.on(); }
  void say(const std::string& line) const {
    if (json()) return events_.message(line);
    fmt::print("{}\n", line);
    std::fflush(stdout);
  }
  void finished(const Summary& summary) const {
    events_.emit("finished", {{"summary", nlohmann::ordered_json::parse(summary_json(summary))}});
  }

 private:
  const EventLines events_;
};

void tell_networks(const RoleJob& role, const Told& told) {
  const std::vector<std::string> phases = phase_names(role.job);
  for (size_t p = 0; p < phases.size(); ++p)
    told.say(fmt::format("good: {}; {} nodes, {}, {}",
                         phases.size() == 1 ? "the job file" : "phase " + phases[p],
                         role.graphs[p]->nodes().size(),
                         counted(role.graphs[p]->parameter_count(), "dense parameter"),
                         counted(role.graphs[p]->tables().size(), "table")));
}

// The metrics of every head, by name where there are several; of losses without a label the loss.
void tell_evaluation(const Trial& trial, const Told& told) {
  const MetricReport& report = trial.read_back;
  std::vector<const MetricReport::Row*> heads;
  for (const MetricReport::Row& row : report.rows)
    if (row.key.slice.empty()) heads.push_back(&row);
  told.say(fmt::format(
      "good: {} {} examples evaluated: {}", with_commas(report.examples),
      trial.own_test ? "test" : "training",
      heads.size() == 1 ? metric_line(heads[0]->values) : fmt::format("loss {:.5f}", report.loss)));
  for (size_t h = 0; heads.size() > 1 && h < heads.size(); ++h)
    told.say(fmt::format("good: {}: {}", to_string(heads[h]->key), metric_line(heads[h]->values)));
}

Result<Summary> smoke(const Job& job, uint64_t batches, const Told& told) {
  FLUX_ASSIGN_OR_RETURN(const RoleJob role, open_role_job(job));
  tell_networks(role, told);
  FLUX_ASSIGN_OR_RETURN(const Trial trial,
                        run_trial(job, batches, install_stop_signal(), told.json()));
  FLUX_RETURN_IF_ERROR(check_trial(trial));
  const Summary& s = trial.summary;
  told.say(fmt::format("good: {} examples read, trained and counted once; loss {:.5f}, {} rows",
                       with_commas(s.examples), s.progressive.loss, with_commas(s.rows)));
  FLUX_ASSIGN_OR_RETURN(const std::string note, dense_note(trial.text, trial.data, job));
  if (!note.empty()) told.say(note);
  told.say("good: a checkpoint written, read back, and evaluated to the same loss");
  tell_evaluation(trial, told);
  for (const PhaseSummary& phase : s.phases)
    told.say(fmt::format("good: phase {}: {}", phase.name, accounting_line(phase.accounting)));
  told.say(fmt::format("the job is right as far as {} batches can tell", batches));
  told.finished(s);
  return s;
}

}  // namespace

int dry_run_command(const Job& job) {
  return report(dry_run(job));
}

int smoke_command(const Job& job, const RunArguments& arguments) {
  Result<Summary> done = smoke(job, arguments.smoke, Told(arguments.json));
  if (!done.is_ok()) done = done.status().with_context("smoke test");
  return end_of_run(done, arguments.summary, arguments.json);
}

int graph_command(const GraphArguments& arguments) {
  const auto job = load_checked_job(arguments.job, {}, false);
  if (!job.is_ok()) return report(job.status());
  const auto role = open_role_job(job.value());
  if (!role.is_ok()) return report(role.status());
  const std::vector<PictureNode> nodes = picture_of_job(role.value());
  const std::string svg = graph_svg(job.value().name, nodes);
  if (arguments.out == "-") {
    std::fputs(svg.c_str(), stdout);
    return 0;
  }
  const Status written = write_file_atomic(arguments.out, svg);
  if (written.is_ok()) fmt::print("{}: {} nodes\n", arguments.out, nodes.size());
  return report(written);
}

}  // namespace flux
