// RunRecord: what a run leaves in its output folder to be looked at: TensorBoard's events as they
// happen (tensorboard/), and report.html at the end.
//
// Threads: one. Failure: Status of the files; training does not depend on it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "flux/base/status.h"
#include "flux/main/summary.h"
#include "flux/report/event_file.h"
#include "flux/report/html_report.h"

namespace flux {

class RunRecord {
 public:
  explicit RunRecord(std::string output) : output_(std::move(output)) {}
  // Training begins, or goes on, after this many examples of the job.
  Status begin(uint64_t examples);
  // `seen`: what was seen while training, by phase, head and slice; may be empty.
  Status row(const CurveRow& row, const MetricReport& seen);
  Status tested(const std::string& pass, uint64_t examples, const MetricReport& report);
  Status write_report(const Summary& summary, const std::vector<CurveRow>& curve) const;

 private:
  std::string output_;
  std::unique_ptr<EventFile> events_;  // once training has begun
  std::vector<HeldOutTest> tests_;
};

}  // namespace flux
