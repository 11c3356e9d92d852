// Trial: a few batches of a job through everything, in a temporary folder that is gone afterwards:
// read, pull, compute, push, a checkpoint written and read back, an evaluation of both.
//
// The job's own output folder is not touched. Bad records are set aside if the job allows as many
// of each pass, and told on standard error by the job's own files.
// Used by `flux run --smoke` and `--dry-run`.
// Failure: the Status of whatever failed, as in a real run.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "flux/base/status.h"
#include "flux/job/job.h"
#include "flux/main/sample_text.h"
#include "flux/main/summary.h"

namespace flux {

// A new folder that goes with the object.
class TemporaryFolder {
 public:
  static Result<std::unique_ptr<TemporaryFolder>> create();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  explicit TemporaryFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

struct Trial {
  std::unique_ptr<TemporaryFolder> folder;
  std::string text;  // file with the records that were taken
  DataOptions data;  // that read it
  SampledText train;
  uint64_t repeats = 1;    // of each example: phases
  bool own_test = false;   // the job has test data; else the training lines were evaluated
  Summary summary;         // of the run; its test was made with the model in memory
  MetricReport read_back;  // the same test with the model of the checkpoint
};

// All training files of a job, in the order of its passes, and the pass of each.
struct TrainingFiles {
  std::vector<std::string> paths;
  std::vector<size_t> passes;
};
Result<TrainingFiles> training_files(const Job& job);
// `json`: events of the run go to standard output, but for messages and the end.
Result<Trial> run_trial(const Job& job, uint64_t batches, const std::atomic<bool>* stop,
                        bool json = false);
// kInvalid: something of it is not as it must be.
Status check_trial(const Trial& trial);

}  // namespace flux
