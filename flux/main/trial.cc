#include "flux/main/trial.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <utility>

#include "flux/data/bad_records.h"
#include "flux/main/evaluate.h"
#include "flux/main/pass_data.h"
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

Result<TrainingFiles> training_files(const Job& job) {
  TrainingFiles all;
  for (size_t p = 0; p < job.passes.size(); ++p) {
    FLUX_ASSIGN_OR_RETURN(const auto more, expand_globs(job.passes[p].train));
    all.paths.insert(all.paths.end(), more.begin(), more.end());
    all.passes.resize(all.paths.size(), p);
  }
  return all;
}

namespace {

// A sample, how it is read, and the pass of each file that it was taken from.
struct Taken {
  std::string path;
  SampledText text;
  DataOptions data;
  std::vector<size_t> passes;

  std::string in_own_files(const std::string& message) const {
    return flux::in_own_files(text, path, message);
  }
};

// The bad records of a sample, as people know them; kInvalid if a pass has more than allowed.
Result<std::vector<std::string>> find_bad(const Taken& taken, const std::atomic<bool>* stop) {
  std::vector<std::string> all;
  if (taken.data.bad_records == 0) return all;
  DataOptions any = taken.data;
  any.bad_records = UINT64_MAX;
  FLUX_ASSIGN_OR_RETURN(const Geometry cut, Dataset::scan({&taken.path, 1}, any, 1, stop));
  Geometry good = cut;
  FLUX_ASSIGN_OR_RETURN(const auto bad, set_aside_bad_records(any, 1, stop, &good));
  std::map<size_t, std::vector<std::string>> by_pass;
  for (const BadRecord& one : bad) {
    all.push_back(taken.in_own_files(one.why.message()));
    const uint64_t line = header_lines_of(any) + cut.blocks[one.block].lines_before + one.line + 1;
    const SamplePiece* piece = piece_of_line(taken.text, line);
    by_pass[piece != nullptr ? taken.passes[piece->file] : 0].push_back(all.back());
  }
  for (const auto& [pass, why] : by_pass)
    if (why.size() > taken.data.bad_records)
      return too_many_bad_records(why[0], why.size(), taken.data.bad_records);
  return all;
}

Result<Taken> take(const TrainingFiles& files, const DataOptions& options, uint64_t lines,
                   const std::string& path) {
  Taken taken;
  taken.path = path;
  taken.passes = files.passes;
  FLUX_ASSIGN_OR_RETURN(taken.text, take_records(files.paths, options, lines, path, &taken.data));
  return taken;
}

// Tells of what is bad in a sample, and has a run over it set as much aside.
Status set_aside(const Taken& taken, const std::atomic<bool>* stop, Job* small) {
  tell_set_aside(taken.text.set_aside);
  const auto bad = find_bad(taken, stop);
  if (!bad.is_ok()) return bad.status();
  tell_set_aside(bad.value());
  small->data.bad_records = std::max<uint64_t>(small->data.bad_records, bad.value().size());
  return Status::ok();
}

// Trains on the samples; messages name those.
Status try_out(const Job& small, const std::atomic<bool>* stop, bool json, Trial* trial) {
  FLUX_RETURN_IF_ERROR(make_folders(small.output));
  RunOptions options;
  options.quiet = true;
  options.json = json;
  options.stop = stop;
  FLUX_ASSIGN_OR_RETURN(trial->summary, run_job(small, options));
  if (trial->summary.state != "complete")
    return error(Code::kCancelled, "stopped during the trial");
  FLUX_ASSIGN_OR_RETURN(const auto model, open_saved_model(small));
  FLUX_ASSIGN_OR_RETURN(trial->read_back, evaluate(*model, small.test, stop, SetAside::kUntold));
  return Status::ok();
}

}  // namespace

Result<Trial> run_trial(const Job& job, uint64_t batches, const std::atomic<bool>* stop,
                        bool json) {
  Trial trial;
  FLUX_ASSIGN_OR_RETURN(trial.folder, TemporaryFolder::create());
  const uint64_t lines = batches * job.data.batch_size;
  const std::string& folder = trial.folder->path();
  std::vector<Taken> samples(1);
  FLUX_ASSIGN_OR_RETURN(const TrainingFiles files, training_files(job));
  FLUX_ASSIGN_OR_RETURN(samples[0], take(files, job.data, lines, join_path(folder, "train.txt")));
  trial.own_test = !job.test.empty();
  if (trial.own_test) {
    TrainingFiles test;
    FLUX_ASSIGN_OR_RETURN(test.paths, expand_globs(job.test));
    test.passes.resize(test.paths.size());  // all of one
    samples.emplace_back();
    FLUX_ASSIGN_OR_RETURN(samples[1], take(test, job.data, lines, join_path(folder, "test.txt")));
  }
  Job small = job;
  small.data = samples[0].data;
  Status tried;
  for (size_t i = 0; i < samples.size() && tried.is_ok(); ++i)
    tried = set_aside(samples[i], stop, &small);
  small.output = join_path(folder, "out");
  small.passes = {{"trial", {samples.front().path}}};
  small.test = {samples.back().path};
  small.epochs = 1;
  small.stop = {};
  trial.text = samples[0].path;
  trial.data = small.data;
  trial.repeats = phase_names(job).size();
  if (tried.is_ok()) tried = try_out(small, stop, json, &trial);
  trial.train = samples[0].text;
  if (tried.is_ok()) return trial;
  std::string message = tried.message();
  for (const Taken& taken : samples) message = taken.in_own_files(message);
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
  if (!std::isfinite(s.progressive.loss) || !s.test || !std::isfinite(s.test->loss))
    return invalid("the loss is {}", s.progressive.loss);
  if (trial.read_back.examples != s.test->examples ||
      !(std::fabs(trial.read_back.loss - s.test->loss) <= kReadBackOff))
    return invalid("the checkpoint evaluates to a loss of {} where the model had {}",
                   trial.read_back.loss, s.test->loss);
  return Status::ok();
}

}  // namespace flux
