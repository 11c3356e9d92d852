// JobConsole: a job as a person at a terminal sees it: lines, progress rows, the curve, the end.
//
// Used by the embedded run and by the coordinator process alike; it looks at snapshots of the
// JobMaster, never at workers. Threads: all on the JobMaster's executor thread.
// Failure: the curve and summary files are said, not fatal, until the end; result() has the
// outcome.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "flux/coordinator/job_master.h"
#include "flux/main/event_lines.h"
#include "flux/main/progress_view.h"
#include "flux/main/run_record.h"
#include "flux/main/summary.h"
#include "flux/report/curve.h"

namespace flux {

struct JobConsoleOptions {
  bool terminal = false;
  std::string output;  // folder
  std::string job;
  CountedModel counted;
  std::vector<std::string> phases;  // names; one: it is not named
  size_t passes = 0;                // of the job
  std::string precision;
  uint32_t threads = 0;  // of the one process; a cluster has those of its workers
  bool embedded = true;
  bool log_loss = false;  // what is minimised is that, in every phase
  std::string mode = "async";
  std::string wire = "none";
  std::string resume_command;  // printed when stopped
  bool json = false;           // events for programs instead of lines for people
  bool quiet = false;          // no lines for people; messages and the end are no events either
};

class JobConsole final : public JobEvents {
 public:
  explicit JobConsole(JobConsoleOptions options);
  // Before the JobMaster starts: where snapshots come from.
  void watch(std::function<JobStatus()> snapshot, std::function<MetricReport()> progressive) {
    snapshot_ = std::move(snapshot);
    progressive_ = std::move(progressive);
  }
  // Call about ten times a second: prints what is due.
  void tick();

  void say(const std::string& line) override;
  void training(bool on, uint64_t before, uint64_t total) override;
  void warned(const TrainingWarning& warning) override;
  void saved(const std::string& path) override;
  void pass_closed(const ClosedPass& pass) override;
  void tested(const std::string& pass, const MetricReport& report) override;
  void finished(const JobOutcome& outcome) override;

  bool ended() const { return outcome_.has_value(); }
  // After the end: writes summary.json and curve.svg, prints the last lines.
  Result<Summary> result();

 private:
  ProgressPoint point(const JobStatus& status) const;
  Summary summarize() const;
  std::vector<RoleCost> roles() const;
  void print_end(const Summary& summary);
  void print_quality(const Summary& summary);
  void print_parts(const char* what, const MetricReport& report);
  nlohmann::ordered_json told_before(const Summary& summary) const;
  Status write_files(const Summary& summary, const nlohmann::ordered_json& before) const;
  void tell_new_rows();
  void warn(const Status& status);
  std::string in_output(const char* name) const;

  const JobConsoleOptions options_;
  const TimeNs start_;
  std::function<JobStatus()> snapshot_;
  std::function<MetricReport()> progressive_;
  Curve curve_;
  ProgressView view_;
  RunRecord record_;
  EventLines events_;
  size_t rows_told_ = 0;  // of the curve
  uint64_t total_ = 0;    // examples of the job as far as known
  bool training_ = false;
  bool curve_loaded_ = false;
  std::optional<JobOutcome> outcome_;
};

}  // namespace flux
