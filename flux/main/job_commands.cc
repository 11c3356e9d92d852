// Commands that take a job file: check, run, eval, predict.
#include <algorithm>
#include <cstdio>
#include <iterator>
#include <memory>

#include <unistd.h>

#include "flux/base/text.h"
#include "flux/data/dataset.h"
#include "flux/job/job.h"
#include "flux/main/checked_job.h"
#include "flux/main/commands.h"
#include "flux/main/evaluate.h"
#include "flux/main/event_lines.h"
#include "flux/main/metric_json.h"
#include "flux/main/not_an_input.h"
#include "flux/main/run_job.h"
#include "flux/main/saved_model.h"
#include "flux/main/stop_signal.h"
#include "flux/main/supervisor.h"
#include "flux/main/text_out.h"
#include "flux/main/unlabelled.h"
#include "flux/storage/atomic_file.h"

namespace flux {
namespace {

// A line for each example, with a column for each head of the model: the shortest numbers that read
// back as the same floats (rates of clicks can be far below 1e-6).
std::string predictions_text(std::span<const float> predictions, size_t heads) {
  std::string text;
  for (size_t i = 0; i < predictions.size(); ++i)
    fmt::format_to(std::back_inserter(text), "{}{}", predictions[i],
                   (i + 1) % heads == 0 ? '\n' : '\t');
  return text;
}

// "AUC 0.77921 · log loss 0.46120 · ...": of the first head over all examples.
std::string metrics_text(const MetricReport& report) {
  const MetricValues* values = report.whole();
  return values != nullptr ? metric_line(*values) : "nothing evaluated";
}

// By name; none said: the first.
Result<uint32_t> find_phase(const Job& job, const std::string& name) {
  const std::vector<std::string> names = phase_names(job);
  if (name.empty()) return 0U;
  if (job.phases.empty()) return invalid("--phase {}: the job has one network and no phases", name);
  for (uint32_t p = 0; p < names.size(); ++p)
    if (names[p] == name) return p;
  return invalid("--phase {}: the job has no such phase{}; phases: {}", name,
                 did_you_mean(name, names), join(names, ", "));
}

// The names of the heads, as the first line.
std::string header_text(const std::vector<Head>& heads) {
  std::vector<std::string> names;
  names.reserve(heads.size());
  for (const Head& head : heads) names.push_back(head.name);
  return join(names, "\t") + "\n";
}

// Predictions for `files`, whose lines have labels.
Result<MetricReport> write_predictions(const PredictArguments& arguments, const SavedModel& model,
                                       const std::vector<std::string>& files, uint32_t phase,
                                       TextOut* out) {
  const std::vector<Head>& heads = model.role.graphs[phase]->heads();
  if (arguments.header) FLUX_RETURN_IF_ERROR(out->write(header_text(heads)));
  FLUX_ASSIGN_OR_RETURN(MetricReport metrics,
                        predict(model, files, phase, [&](std::span<const float> values) {
                          return out->write(predictions_text(values, heads.size()));
                        }));
  FLUX_RETURN_IF_ERROR(out->finish());
  return metrics;
}

// The same for files whose lines have none.
Result<MetricReport> predict_unlabelled(const PredictArguments& arguments, SavedModel* model,
                                        const std::vector<std::string>& files, uint32_t phase,
                                        TextOut* out) {
  DataOptions& data = model->role.job.data;
  FLUX_ASSIGN_OR_RETURN(auto paths, expand_globs(files));
  FLUX_ASSIGN_OR_RETURN(const LabelledCopy copy, LabelledCopy::make(std::move(paths), data));
  data.pipe = {};  // done already
  auto metrics = write_predictions(arguments, *model, copy.files(), phase, out);
  if (!metrics.is_ok()) return copy.in_own_files(metrics.status());
  return metrics;
}

Status predict(const PredictArguments& arguments) {
  FormatOf format_of{true, arguments.input};
  if (arguments.no_labels) format_of.input.clear();  // such lines look like those of others
  FLUX_ASSIGN_OR_RETURN(const Job job, load_checked_job(arguments.job, format_of));
  const std::vector<std::string>& input = arguments.input.empty() ? job.test : arguments.input;
  if (input.empty()) return invalid("nothing to predict: give --input FILE or data.test");
  if (is_folder(arguments.out)) return invalid("--out {}: it is a folder", arguments.out);
  if (const auto files = expand_globs(input); files.is_ok())
    FLUX_RETURN_IF_ERROR(not_an_input(arguments.out, files.value()));
  FLUX_ASSIGN_OR_RETURN(const auto model, open_saved_model(job, arguments.checkpoint));
  FLUX_ASSIGN_OR_RETURN(const uint32_t phase, find_phase(job, arguments.phase));
  FLUX_ASSIGN_OR_RETURN(const auto out, TextOut::create(arguments.out));
  FLUX_ASSIGN_OR_RETURN(const MetricReport metrics,
                        arguments.no_labels
                            ? predict_unlabelled(arguments, model.get(), input, phase, out.get())
                            : write_predictions(arguments, *model, input, phase, out.get()));
  if (!out->to_screen())
    fmt::print("{} in {}{}\n", counted(metrics.examples, "prediction"), arguments.out,
               arguments.no_labels ? "" : "; " + metrics_text(metrics));
  return Status::ok();
}

int run_cluster(const RunArguments& arguments, const Job& job) {
  SupervisorOptions options;
  options.run = arguments;
  options.run.servers = std::max(1U, arguments.servers);
  options.run.workers = std::max(1U, arguments.workers);
  options.stop = install_stop_signal();
  return supervise(job, options);
}

}  // namespace

int report(const Status& status) {
  if (status.is_ok()) return 0;
  std::fflush(stdout);
  fmt::print(stderr, "flux: {}\n", status.message());
  const bool persons_mistake = status.code() == Code::kInvalid ||
                               status.code() == Code::kNotFound ||
                               status.code() == Code::kCorrupt || status.code() == Code::kStale;
  return persons_mistake ? 2 : 1;
}

int check_command(const JobArguments& arguments) {
  const auto job = load_checked_job(arguments);
  if (!job.is_ok()) return report(job.status());
  const auto graphs = build_graphs(job.value(), features_of(job.value().data));
  if (!graphs.is_ok()) return report(graphs.status());
  fmt::print("{}: good\n", arguments.job);
  const std::vector<std::string> names = phase_names(job.value());
  for (size_t p = 0; p < names.size(); ++p) {
    if (names.size() > 1) fmt::print("phase {}:\n", names[p]);
    fmt::print("{}", graphs.value()[p]->to_text());
  }
  return 0;
}

int schema_command() {
  fmt::print("{}\n", job_json_schema());
  return 0;
}

// A file for the summary that can be written at the end; empty: none is wanted.
Status check_summary(const std::string& file) {
  if (!file.empty() && (is_folder(file) || !is_folder(parent_folder(file))))
    return invalid("--summary {}: {}", file,
                   is_folder(file) ? "it is a folder" : "its folder does not exist");
  return Status::ok();
}

// Where a run writes is there, or made.
Status prepare_places(const RunArguments& arguments, const Job& job) {
  if (job.output.empty())
    return invalid("{}: no output folder; add 'output: DIR' or --set output=DIR",
                   arguments.job.job);
  FLUX_RETURN_IF_ERROR(make_folders(job.output));  // the summary may be meant to lie there
  return check_summary(arguments.summary);
}

// What a run would refuse before it trains.
Status would_go_on(const RunArguments& arguments, const Job& job) {
  if (arguments.fresh || job.output.empty()) return Status::ok();
  FLUX_ASSIGN_OR_RETURN(const RoleJob role, open_role_job(job));
  return check_goes_on(role);
}

// Options that would be of no use: they need others.
Status check_needed(const RunArguments& arguments) {
  const bool cluster = arguments.servers > 0 || arguments.workers > 0;
  const std::pair<const char*, bool> of_clusters[] = {{"--http", !arguments.http.empty()},
                                                      {"--drillable", arguments.drillable},
                                                      {"--hosts", !arguments.hosts.empty()}};
  for (const auto& [name, given] : of_clusters)
    if (given && !cluster)
      return invalid("{}: is for a cluster, and this is one process; add --servers S --workers W",
                     name);
  const std::pair<const char*, bool> of_hosts[] = {{"--listen", !arguments.listen.empty()},
                                                   {"--ssh", arguments.ssh != RunArguments().ssh}};
  for (const auto& [name, given] : of_hosts)
    if (given && arguments.hosts.empty())
      return invalid("{}: is for roles on other hosts; say which with --hosts FILE", name);
  return Status::ok();
}

int run_command(const RunArguments& arguments) {
  const Status needed = check_needed(arguments);
  if (!needed.is_ok()) return end_of_run(needed, "", arguments.json);
  const auto job = load_checked_job(arguments.job, {}, arguments.hosts.empty());
  if (!job.is_ok()) return end_of_run(job.status(), "", arguments.json);
  if (arguments.dry_run) {
    const Status goes_on = would_go_on(arguments, job.value());
    return goes_on.is_ok() ? dry_run_command(job.value()) : report(goes_on);
  }
  const bool smoke = arguments.smoke > 0;
  const Status places =
      smoke ? check_summary(arguments.summary) : prepare_places(arguments, job.value());
  if (!places.is_ok()) return end_of_run(places, "", arguments.json);
  if (smoke) return smoke_command(job.value(), arguments);
  if (arguments.servers > 0 || arguments.workers > 0) return run_cluster(arguments, job.value());
  RunOptions options;
  options.fresh = arguments.fresh;
  options.terminal = ::isatty(STDOUT_FILENO) != 0;
  options.stop = install_stop_signal();
  options.resume_command = arguments.resume_command;
  options.json = arguments.json;
  return end_of_run(run_job(job.value(), options), arguments.summary, arguments.json);
}

int end_of_run(const Result<Summary>& summary, const std::string& file, bool json) {
  if (!summary.is_ok()) {
    EventLines(json).error(summary.status());
    return report(summary.status());
  }
  if (!file.empty()) {
    const Status written = write_file_atomic(file, summary_json(summary.value()));
    if (!written.is_ok()) return report(written);
  }
  if (!summary.value().accounting.exact()) {
    fmt::print(stderr, "flux: the integer counters do not add up: lost {}, doubled {}\n",
               summary.value().accounting.lost, summary.value().accounting.doubled);
    return 1;
  }
  const bool meant = summary.value().state == "complete" || !summary.value().stopped_by.empty();
  return meant ? 0 : 130;
}

int eval_command(const EvalArguments& arguments) {
  const auto job = load_checked_job(arguments.job, {true, {}});
  if (!job.is_ok()) return report(job.status());
  if (job.value().test.empty())
    return report(invalid("{}: nothing to evaluate on; add data.test or --set data.test=FILES",
                          arguments.job.job));
  const auto model = open_saved_model(job.value(), arguments.checkpoint);
  if (!model.is_ok()) return report(model.status());
  const auto metrics = evaluate(*model.value(), job.value().test);
  if (!metrics.is_ok()) return report(metrics.status());
  if (arguments.json) {
    fmt::print("{}\n", metrics_json(metrics.value()).dump(2));
    return 0;
  }
  fmt::print("{} examples · {} · model {}\n", with_commas(metrics.value().examples),
             metrics_text(metrics.value()), model.value()->path);
  for (const MetricReport::Row& row : metrics.value().rows)
    if (const std::string name = to_string(row.key); !name.empty())
      fmt::print("{}: {}\n", name, metric_line(row.values));
  return 0;
}

int predict_command(const PredictArguments& arguments) {
  return report(predict(arguments));
}

}  // namespace flux
