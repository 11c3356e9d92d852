// Trial: a few batches of a job through everything, in a temporary folder that is gone afterwards:
// read, pull, compute, push, a checkpoint written and read back, an evaluation of both.
//
// The job's own output folder is not touched. Used by `flux run --smoke` and `--dry-run`.
// Failure: the Status of whatever failed, as in a real run.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

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

// All training files of a job, in the order of its passes.
Result<std::vector<std::string>> training_files(const Job& job);
Result<Trial> run_trial(const Job& job, uint64_t batches, const std::atomic<bool>* stop);
// kInvalid: something of it is not as it must be.
Status check_trial(const Trial& trial);

}  // namespace flux
