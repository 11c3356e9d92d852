// Made data that drifts: a file for each hour, in a folder for each day.
//
// Files are <folder>/20260101/00.tsv and so on, ".txt" for feasign lines, ".gz" behind it if asked.
// The bytes of an hour depend on the options alone, not on the threads nor on the hours after it.
// Failure: Status with the path and the reason; each file is whole or untouched.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "flux/base/status.h"
#include "flux/data/drift.h"

namespace flux {

struct DriftGenOptions {
  std::string kind;  // of made_truth_kinds(): feasign lines; empty: Criteo-like lines
  std::string folder;
  bool gzip = false;
  uint64_t examples = 0;  // in each hour, at least 1
  uint64_t seed = 1;
  uint64_t truth_seed = 12345;
  Drift drift;
};

struct DriftHour {
  struct Label {
    std::string name;
    double share = 0;     // of positives
    double best_auc = 0;  // of the hidden logit of this hour: the most a model can reach
  };
  uint32_t hour = 0;
  std::string path;
  std::vector<Label> labels;
};

// `written`, if set, is told of each hour when its file is whole; `progress` of the examples of
// an hour so far, from one thread at a time.
Status generate_drift(const DriftGenOptions& options, unsigned threads,
                      const std::function<void(const DriftHour&)>& written,
                      const std::function<void(uint64_t)>& progress);

// The `data` section of a job that reads it, and its passes: one for each day.
Result<std::string> drift_yaml(const DriftGenOptions& options);

}  // namespace flux
