// The end of a drill: one accounting line, a table of recovery times, drill.json, timeline.svg.
//
// What became of the examples comes from the job's own summary.json, whose figures are those of
// integer counters in the tables (main/accounting.h); times come from DrillWatch.
// Threads: any; values. Failure: Status that names the file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "flux/base/status.h"
#include "flux/main/drill_watch.h"

namespace flux {

// Of a summary.json, what a drill tells.
struct DrilledSummary {
  std::string state;
  uint64_t expected = 0, applied_once = 0, lost = 0, doubled = 0, skipped = 0;
  double examples_per_s = 0;
  std::optional<double> auc;
  std::string text;  // all of it
  bool exact() const { return lost == 0 && doubled == 0; }
};
// kCorrupt if it is no summary.
Result<DrilledSummary> read_summary(const std::string& path);

struct DrillReport {
  std::string job;
  uint64_t seed = 0;
  std::string plan;                        // the faults asked for, in words
  std::string end;                         // "complete", "stopped", "running", "failed", ...
  std::optional<DrilledSummary> summary;   // if the job ended
  std::optional<DrilledSummary> baseline;  // of an undisturbed run, if given
  uint64_t examples_total = 0;             // as the status said
  const DrillWatch* watch = nullptr;
};

// Undisturbed speed and the share of it that was reached; 0: not known.
struct Goodput {
  double reference = 0, share = 0;
};
Goodput goodput_of(const DrillReport& report);

// Why a drill ended without a fault, in words.
struct NoFault {
  bool trained = false;    // the job has been seen in training
  bool complete = false;   // it came to its end
  double trained_s = 0;    // so long
  std::string waited_for;  // of the fault that was due: why it could not be made yet
  std::string every;       // as the person gave it
};
std::string no_fault_text(const NoFault& facts, const DrillWatch& watch);

// "faults 300 · samples 45,840,617/45,840,617 applied once · lost 0 · double 0 · ..."
std::string drill_line(const DrillReport& report);
std::string recovery_table(const DrillReport& report);
std::string drill_json(const DrillReport& report);
// drill.json and timeline.svg in `folder`.
Status write_drill(const DrillReport& report, const std::string& folder);

}  // namespace flux
