// Commands that take a job file: check, run, eval, predict.
#include <algorithm>
#include <cstdio>
#include <memory>

#include <unistd.h>

#include "flux/base/text.h"
#include "flux/job/job.h"
#include "flux/main/commands.h"
#include "flux/main/embedded.h"
#include "flux/main/evaluate.h"
#include "flux/main/run_job.h"
#include "flux/main/stop_signal.h"
#include "flux/storage/atomic_file.h"

namespace flux {
namespace {

Result<Job> load(const JobArguments& arguments) {
  std::vector<Override> overrides;
  for (const std::string& text : arguments.sets) {
    FLUX_ASSIGN_OR_RETURN(Override one, parse_override(text));
    overrides.push_back(std::move(one));
  }
  if (arguments.threads >= 0) overrides.push_back({"threads", std::to_string(arguments.threads)});
  FLUX_ASSIGN_OR_RETURN(Job job, load_job(arguments.job, overrides));
  // The whole model is checked before anything starts.
  const FeatureCounts features = feature_counts(job.data);
  FLUX_ASSIGN_OR_RETURN(const auto graph, build_graph(job, features.slots, features.dense));
  (void)graph;
  return job;
}

Status predict(const PredictArguments& arguments) {
  FLUX_ASSIGN_OR_RETURN(const Job job, load(arguments.job));
  FLUX_ASSIGN_OR_RETURN(const auto e, open_embedded(job, true));
  const bool to_stdout = arguments.out == "-";
  const std::string aside = arguments.out + std::string(kTemporarySuffix);
  std::FILE* file = to_stdout ? stdout : std::fopen(aside.c_str(), "w");
  if (file == nullptr) return errno_status("cannot create " + aside, errno);
  const auto write = [&](std::span<const float> predictions) {
    for (const float p : predictions) fmt::print(file, "{:.6f}\n", p);
    return std::ferror(file) ? error(Code::kIo, "cannot write {}", arguments.out) : Status::ok();
  };
  const std::vector<std::string>& input = arguments.input.empty() ? job.test : arguments.input;
  Status status =
      input.empty() ? invalid("nothing to predict: give --input FILE or data.test") : Status::ok();
  if (status.is_ok()) {
    const auto metrics = evaluate(*e, input, write);
    status = metrics.status();
    if (metrics.is_ok() && !to_stdout)
      fmt::print("{} predictions in {}; AUC {:.5f}, log loss {:.5f}\n",
                 with_commas(metrics.value().examples()), arguments.out, metrics.value().auc(),
                 metrics.value().log_loss());
  }
  if (to_stdout) return status;
  if (std::fclose(file) != 0 && status.is_ok())
    status = errno_status("cannot write " + aside, errno);
  if (status.is_ok() && std::rename(aside.c_str(), arguments.out.c_str()) != 0)
    status = errno_status("cannot rename " + aside, errno);
  if (!status.is_ok()) std::remove(aside.c_str());
  return status;
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
  const auto job = load(arguments);
  if (!job.is_ok()) return report(job.status());
  const FeatureCounts features = feature_counts(job.value().data);
  const auto graph = build_graph(job.value(), features.slots, features.dense);
  if (!graph.is_ok()) return report(graph.status());
  fmt::print("{}: good\n{}", arguments.job, graph.value()->to_text());
  return 0;
}

int schema_command() {
  fmt::print("{}\n", job_json_schema());
  return 0;
}

int run_command(const RunArguments& arguments) {
  const auto job = load(arguments.job);
  if (!job.is_ok()) return report(job.status());
  if (job.value().output.empty())
    return report(
        invalid("{}: no output folder; add 'output: DIR' or --set output=DIR", arguments.job.job));
  RunOptions options;
  options.fresh = arguments.fresh;
  options.terminal = ::isatty(STDOUT_FILENO) != 0;
  options.stop = install_stop_signal();
  options.resume_command = arguments.resume_command;
  const auto summary = run_job(job.value(), options);
  if (!summary.is_ok()) return report(summary.status());
  if (!arguments.summary.empty()) {
    const Status written = write_file_atomic(arguments.summary, summary_json(summary.value()));
    if (!written.is_ok()) return report(written);
  }
  if (!summary.value().accounting.exact()) {
    fmt::print(stderr, "flux: the integer counters do not add up: lost {}, doubled {}\n",
               summary.value().accounting.lost, summary.value().accounting.doubled);
    return 1;
  }
  return summary.value().state == "complete" ? 0 : 130;
}

int eval_command(const JobArguments& arguments) {
  const auto job = load(arguments);
  if (!job.is_ok()) return report(job.status());
  if (job.value().test.empty())
    return report(invalid("{}: nothing to evaluate on; add data.test or --set data.test=FILES",
                          arguments.job));
  const auto e = open_embedded(job.value(), true);
  if (!e.is_ok()) return report(e.status());
  const auto metrics = evaluate(*e.value(), job.value().test);
  if (!metrics.is_ok()) return report(metrics.status());
  fmt::print("{} examples · AUC {:.5f} · log loss {:.5f} · CTR {:.5f} · model {}\n",
             with_commas(metrics.value().examples()), metrics.value().auc(),
             metrics.value().log_loss(), metrics.value().ctr(),
             e.value()->store().path_of(e.value()->restored->number));
  return 0;
}

int predict_command(const PredictArguments& arguments) {
  return report(predict(arguments));
}

}  // namespace flux
