// Commands that look at a job before it is trained: graph, run --dry-run, run --smoke.
#include <cstdio>

#include "flux/base/text.h"
#include "flux/main/checked_job.h"
#include "flux/main/commands.h"
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
  fmt::print("{}", forecast_text(forecast(role, files.size(), trial, ids)));
  return Status::ok();
}

Status smoke(const Job& job, uint64_t batches) {
  FLUX_ASSIGN_OR_RETURN(const RoleJob role, open_role_job(job));
  const std::vector<std::string> phases = phase_names(job);
  for (size_t p = 0; p < phases.size(); ++p)
    fmt::print("good: {}; {} nodes, {}, {}\n",
               phases.size() == 1 ? "the job file" : "phase " + phases[p],
               role.graphs[p]->nodes().size(),
               counted(role.graphs[p]->parameter_count(), "dense parameter"),
               counted(role.graphs[p]->tables().size(), "table"));
  std::fflush(stdout);
  FLUX_ASSIGN_OR_RETURN(const Trial trial, run_trial(job, batches, install_stop_signal()));
  FLUX_RETURN_IF_ERROR(check_trial(trial));
  const Summary& s = trial.summary;
  fmt::print("good: {} examples read, trained and counted once; log loss {:.5f}, {} rows\n",
             with_commas(s.examples), s.train_logloss, with_commas(s.rows));
  fmt::print("good: a checkpoint written, read back, and evaluated to the same loss\n");
  fmt::print("good: {} {} examples evaluated: {}\n", with_commas(trial.read_back.examples),
             trial.own_test ? "test" : "training",
             trial.read_back.whole() != nullptr ? metric_line(*trial.read_back.whole()) : "");
  for (const PhaseSummary& phase : s.phases)
    fmt::print("good: phase {}: {}\n", phase.name, accounting_line(phase.accounting));
  fmt::print("the job is right as far as {} batches can tell\n", batches);
  return Status::ok();
}

}  // namespace

int dry_run_command(const Job& job) {
  return report(dry_run(job));
}

int smoke_command(const Job& job, uint64_t batches) {
  return report(smoke(job, batches).with_context("smoke test"));
}

int graph_command(const GraphArguments& arguments) {
  const auto job = load_checked_job(arguments.job);
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
