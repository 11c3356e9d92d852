// Summary: the end of a run in figures, for people (one line) and for programs (JSON).
// docs/using/summary.md says what each field means. Pure but for write_summary().
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "flux/base/latency.h"
#include "flux/base/status.h"
#include "flux/cluster/training_guard.h"
#include "flux/main/accounting.h"
#include "flux/metrics/metric_values.h"

namespace flux {

// One process that took part.
struct RoleCost {
  std::string role;  // coordinator, server, worker, embedded
  std::string name;
  double cpu_s = 0;
  uint64_t peak_rss_bytes = 0;
  uint64_t bytes_in = 0, bytes_out = 0;  // to and from other roles
};

// Pushes of all workers, and what shards answered to them.
struct PushSummary {
  LatencyHistogram times;  // from each request to its answer
  uint64_t duplicates = 0, refused = 0;
  AgeHistogram ages = {};  // examples applied since what a gradient was computed with was pulled
};

// One phase of a job with several.
struct PhaseSummary {
  std::string name;
  Accounting accounting;
};

struct Summary {
  std::string job;
  std::string state;          // "complete" or "stopped"
  uint64_t examples = 0;      // trained by this run
  double examples_per_s = 0;  // of this run's training
  double wall_s = 0;          // of the process, start to summary
  double train_s = 0;
  std::optional<double> auc, logloss;              // on the test data, if any
  std::optional<MetricReport> test;                // everything else about it
  std::optional<double> train_auc, train_logloss;  // progressive, of the same head as `auc`
  MetricReport progressive;                        // everything else about it
  std::string told;  // JSON of that by an earlier run, where this one trained nothing; or empty
  Accounting accounting;             // over the whole life of the model
  std::vector<PhaseSummary> phases;  // of a job with several
  uint64_t rows = 0;
  uint64_t peak_rss_bytes = 0;
  std::string resumed_from;  // path of a checkpoint; empty: started fresh
  std::string stopped_by;    // the condition of the job file that ended it; may be empty
  uint64_t untrained = 0;    // examples of the open pass that were left, repeats counted
  uint64_t passes_left = 0;  // that were not begun
  std::string best;          // the checkpoint that a stop condition found best; may be empty
  std::string precision;
  std::string isa;  // the instruction set of this process, which FLUX_ISA may have capped
  uint32_t threads = 0;
  std::string mode = "async";
  std::string wire = "none";  // form of numbers between processes; "none": one process
  PushSummary pushes;
  std::vector<RoleCost> roles;
  std::string quality = "ok";             // or "suspect": a warning was not over at the end
  std::vector<TrainingWarning> warnings;  // docs/using/guard.md
  uint64_t model_hash = 0;                // of all rows and dense parameters
};

std::string summary_json(const Summary& summary);
// "examples 1,000,000 applied once · skipped 0 · lost 0 · doubled 0 · AUC 0.77921 · 68,120 ex/s"
std::string accounting_line(const Summary& summary);
// "3 examples of the open pass were left, 2 passes were not begun": what there is of it.
std::string left_line(const Summary& summary);
std::string accounting_line(const Accounting& accounting);  // the first four figures
uint64_t peak_rss_bytes();
double process_cpu_s();

}  // namespace flux
