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
#include "flux/storage/atomic_file.h"

namespace flux {
namespace {

// Predictions as text, to a file put aside until it is whole, or in place to a pipe or device.
class PredictionFile {
 public:
  // A line for each example, with a column for each head of the model: the shortest numbers that
  // read back as the same floats (rates of clicks can be far below 1e-6).
  PredictionFile(const std::string& named, size_t heads)
      : heads_(heads),
        path_(resolve_links(named)),
        in_place_(named == "-" || is_special_file(path_)),
        aside_(in_place_ ? path_ : path_ + std::string(kTemporarySuffix)) {
    file_ = named == "-" ? stdout : std::fopen(aside_.c_str(), "w");
    failure_ = file_ == nullptr ? errno_status("cannot create " + aside_, errno) : Status::ok();
  }
  Status status() const { return failure_; }
  Status write(std::span<const float> predictions) {
    std::string text;
    for (size_t i = 0; i < predictions.size(); ++i)
      fmt::format_to(std::back_inserter(text), "{}{}", predictions[i],
                     (i + 1) % heads_ == 0 ? '\n' : '\t');
    if (std::fwrite(text.data(), 1, text.size(), file_) != text.size())
      failure_ = errno_status("cannot write " + path_, errno);
    return failure_;
  }
  Status finish(Status status) {
    if (status.is_ok() && std::fflush(file_) != 0)
      status = errno_status("cannot write " + path_, errno);
    if (file_ == stdout) return status;
    if (std::fclose(file_) != 0 && status.is_ok())
      status = errno_status("cannot write " + path_, errno);
    if (in_place_) return status;
    if (status.is_ok() && std::rename(aside_.c_str(), path_.c_str()) != 0)
      status = errno_status("cannot rename " + aside_, errno);
    if (!status.is_ok()) std::remove(aside_.c_str());
    return status;
  }

 private:
  size_t heads_;
  std::string path_;
  bool in_place_;
  std::string aside_;
  std::FILE* file_ = nullptr;
  Status failure_;
};

// "AUC 0.77921 · log loss 0.46120 · ...": of the first head over all examples.
std::string metrics_text(const MetricReport& report) {
  const MetricValues* values = report.whole();
  return values != nullptr ? metric_line(*values) : "nothing evaluated";
}

// By name; none said: the first.
Result<uint32_t> find_phase(const Job& job, const std::string& name) {
  const std::vector<std::string> names = phase_names(job);
  if (name.empty()) return 0U;
  for (uint32_t p = 0; p < names.size(); ++p)
    if (names[p] == name) return p;
  return invalid("--phase {}: the job has no such phase{}; phases: {}", name,
                 did_you_mean(name, names), join(names, ", "));
}

Status predict(const PredictArguments& arguments) {
  FLUX_ASSIGN_OR_RETURN(const Job job, load_checked_job(arguments.job));
  const std::vector<std::string>& input = arguments.input.empty() ? job.test : arguments.input;
  if (input.empty()) return invalid("nothing to predict: give --input FILE or data.test");
  if (is_folder(arguments.out)) return invalid("--out {}: it is a folder", arguments.out);
  if (const auto files = expand_globs(input); files.is_ok())
    FLUX_RETURN_IF_ERROR(not_an_input(arguments.out, files.value()));
  FLUX_ASSIGN_OR_RETURN(const auto model, open_saved_model(job));
  FLUX_ASSIGN_OR_RETURN(const uint32_t phase, find_phase(job, arguments.phase));
  PredictionFile file(arguments.out, model->role.graphs[phase]->heads().size());
  FLUX_RETURN_IF_ERROR(file.status());
  const auto metrics = predict(*model, input, phase,
                               [&](std::span<const float> values) { return file.write(values); });
  FLUX_RETURN_IF_ERROR(file.finish(metrics.status()));
  if (arguments.out != "-")
    fmt::print("{} predictions in {}; {}\n", with_commas(metrics.value().examples), arguments.out,
               metrics_text(metrics.value()));
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

// Where a run writes is there, or made.
Status prepare_places(const RunArguments& arguments, const Job& job) {
  if (job.output.empty())
    return invalid("{}: no output folder; add 'output: DIR' or --set output=DIR",
                   arguments.job.job);
  FLUX_RETURN_IF_ERROR(make_folders(job.output));  // the summary may be meant to lie there
  const std::string& file = arguments.summary;
  if (!file.empty() && (is_folder(file) || !is_folder(parent_folder(file))))
    return invalid("--summary {}: {}", file,
                   is_folder(file) ? "it is a folder" : "its folder does not exist");
  return Status::ok();
}

int run_command(const RunArguments& arguments) {
  const auto job = load_checked_job(arguments.job);
  if (!job.is_ok()) return end_of_run(job.status(), "", arguments.json);
  if (arguments.dry_run) return dry_run_command(job.value());
  if (arguments.smoke > 0) return smoke_command(job.value(), arguments.smoke);
  const Status places = prepare_places(arguments, job.value());
  if (!places.is_ok()) return end_of_run(places, "", arguments.json);
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
  const auto job = load_checked_job(arguments.job);
  if (!job.is_ok()) return report(job.status());
  if (job.value().test.empty())
    return report(invalid("{}: nothing to evaluate on; add data.test or --set data.test=FILES",
                          arguments.job.job));
  const auto model = open_saved_model(job.value());
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
