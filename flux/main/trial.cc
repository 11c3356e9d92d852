#include "flux/main/trial.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "flux/main/evaluate.h"
#include "flux/main/run_job.h"
#include "flux/main/saved_model.h"
#include "flux/storage/atomic_file.h"

namespace flux {
namespace {

constexpr double kReadBackOff = 1e-6;  // of the log loss

// *reads: the options that read what was taken.
Result<SampledText> take_records(std::span<const std::string> files, const DataOptions& options,
                                 uint64_t records, const std::string& out, DataOptions* reads) {
  *reads = options;
  if (!has_lines(options)) return sample_records(files, records, out, reads);
  reads->pipe = {};  // done already
  return sample_text(files, options.pipe, header_lines_of(options) > 0, records, out);
}

}  // namespace

Result<std::unique_ptr<TemporaryFolder>> TemporaryFolder::create() {
  std::error_code failed;
  const auto base = std::filesystem::temp_directory_path(failed);
  std::string path = join_path(failed ? "/tmp" : base.string(), "flux-trial-XXXXXX");
  if (::mkdtemp(path.data()) == nullptr) return errno_status("cannot create " + path, errno);
  return std::unique_ptr<TemporaryFolder>(new TemporaryFolder(path));
}

TemporaryFolder::~TemporaryFolder() {
  const Status ignored = remove_all(path_);  // nothing of a person's is in it
  (void)ignored;
}

Result<std::vector<std::string>> training_files(const Job& job) {
  std::vector<std::string> files;
  for (const PassSpec& pass : job.passes) {
    FLUX_ASSIGN_OR_RETURN(const auto more, expand_globs(pass.train));
    files.insert(files.end(), more.begin(), more.end());
  }
  return files;
}

namespace {

// Trains on the samples; messages name those.
Status try_out(const Job& small, const std::atomic<bool>* stop, Trial* trial) {
  FLUX_RETURN_IF_ERROR(make_folders(small.output));
  RunOptions options;
  options.quiet = true;
  options.stop = stop;
  FLUX_ASSIGN_OR_RETURN(trial->summary, run_job(small, options));
  if (trial->summary.state != "complete")
    return error(Code::kCancelled, "stopped during the trial");
  FLUX_ASSIGN_OR_RETURN(const auto model, open_saved_model(small));
  FLUX_ASSIGN_OR_RETURN(trial->read_back, evaluate(*model, small.test, stop));
  return Status::ok();
}

}  // namespace

Result<Trial> run_trial(const Job& job, uint64_t batches, const std::atomic<bool>* stop) {
  Trial trial;
  FLUX_ASSIGN_OR_RETURN(trial.folder, TemporaryFolder::create());
  const uint64_t lines = batches * job.data.batch_size;
  FLUX_ASSIGN_OR_RETURN(const auto files, training_files(job));
  Job small = job;
  trial.text = join_path(trial.folder->path(), "train.txt");
  FLUX_ASSIGN_OR_RETURN(trial.train, take_records(files, job.data, lines, trial.text, &small.data));
  small.data.bad_records *= job.passes.size();  // so many of each, and here they are one
  trial.data = small.data;
  small.output = join_path(trial.folder->path(), "out");
  small.passes = {{"trial", {trial.text}}};
  small.epochs = 1;
  small.stop = {};
  trial.repeats = phase_names(job).size();
  small.test = {trial.text};
  trial.own_test = !job.test.empty();
  SampledText test;
  if (trial.own_test) {
    small.test = {join_path(trial.folder->path(), "test.txt")};
    FLUX_ASSIGN_OR_RETURN(const auto test_files, expand_globs(job.test));
    DataOptions same;
    FLUX_ASSIGN_OR_RETURN(test,
                          take_records(test_files, job.data, lines, small.test.front(), &same));
  }
  const Status tried = try_out(small, stop, &trial);
  if (tried.is_ok()) return trial;
  std::string message = in_own_files(trial.train, trial.text, tried.message());
  if (trial.own_test) message = in_own_files(test, small.test.front(), message);
  return Status(tried.code(), std::move(message));
}

Status check_trial(const Trial& trial) {
  const Summary& s = trial.summary;
  // Bad records are left out if the job says so.
  const uint64_t aside = trial.data.bad_records > 0 ? s.accounting.skipped : 0;
  const uint64_t wanted = trial.train.lines * trial.repeats - aside;
  if (!s.accounting.exact() || s.examples != wanted)
    return invalid("of {} examples {} were trained (lost {}, doubled {})", wanted, s.examples,
                   s.accounting.lost, s.accounting.doubled);
  if (s.accounting.skipped > aside)
    return invalid("{} examples were left out: their loss or gradient is no number",
                   s.accounting.skipped);
  if (!std::isfinite(s.train_logloss) || !s.test || !std::isfinite(s.test->loss))
    return invalid("the loss is {}", s.train_logloss);
  if (trial.read_back.examples != s.test->examples ||
      !(std::fabs(trial.read_back.loss - s.test->loss) <= kReadBackOff))
    return invalid("the checkpoint evaluates to a loss of {} where the model had {}",
                   trial.read_back.loss, s.test->loss);
  return Status::ok();
}

}  // namespace flux
