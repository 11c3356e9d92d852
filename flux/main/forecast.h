// Forecast: what a job will need, from a sample of its data and a short trial.
//
// Rows are extrapolated from how the number of distinct ids grows in the sample (as a power of the
// examples, between its half and its whole); time from the speed of the trial. Both are estimates
// and say from what. Pure but for count_ids(), which reads the sample.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "flux/base/status.h"
#include "flux/main/job_roles.h"
#include "flux/main/trial.h"

namespace flux {

// Distinct ids among the first half of some examples, and among all of them.
struct IdGrowth {
  uint64_t examples = 0, half_ids = 0, ids = 0;

  double power() const;                         // of growth, 0 (no new ids) to 1 (all new)
  uint64_t at(uint64_t examples_in_all) const;  // extrapolated
};
struct IdCounts {
  IdGrowth all;
  std::vector<IdGrowth> groups;  // by group of keys, where there are several

  // Of the keys that have rows in a table.
  const IdGrowth& of(const TableOptions& table) const {
    return table.group == 0 ? all : groups[table.group - 1];
  }
};
Result<IdCounts> count_ids(const std::string& file, const Job& job);

struct Forecast {
  std::string job;
  size_t passes = 0;
  uint64_t repeats = 1;  // of each example: epochs x phases
  uint64_t examples = 0, file_bytes = 0;
  bool exact_examples = false;
  uint32_t batch = 0;
  uint64_t batches = 0, blocks = 0;
  IdGrowth ids;
  uint64_t rows = 0;  // over all tables
  uint64_t row_bytes = 0, dense_bytes = 0;
  uint64_t dense_parameters = 0;
  std::vector<std::pair<std::string, uint64_t>> phases;  // of several: name, dense parameters
  uint32_t replicas = 2;                                 // of a cluster
  uint64_t worker_bytes = 0;
  uint64_t trial_examples = 0;
  double examples_per_s = 0;
  uint32_t threads = 0;
};

Forecast forecast(const RoleJob& role, size_t files, const Trial& trial, const IdCounts& ids);
std::string forecast_text(const Forecast& forecast);

}  // namespace flux
