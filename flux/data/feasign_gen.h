// Feasign lines drawn from a made truth (made_truth.h). Files of different seeds are different
// examples of one truth: use one seed to train and another to test. The bytes depend on the options
// only, never on the number of threads.
// Failure: Status with the path and the reason; `path` is whole or untouched.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "flux/base/status.h"
#include "flux/data/truth_moment.h"

namespace flux {

struct FeasignGenOptions {
  std::string kind;             // of made_truth_kinds()
  uint64_t examples = 0;        // lines to write, at least 1
  uint64_t seed = 1;            // which examples
  uint64_t truth_seed = 12345;  // which hidden model
  TruthMoment moment = {};      // what has become of it
};

struct FeasignGenReport {
  struct Label {
    std::string name;
    double share = 0;       // of positives
    double oracle_auc = 0;  // of the hidden logit: the most a model can reach
  };
  uint64_t examples = 0;
  std::vector<Label> labels;
  std::string yaml;  // the `data` section of a job that reads it, without the files
};

// Writes `path`; compressed when it ends in ".gz". `progress`, if set, gets the number of examples
// written so far, from one thread at a time, in increasing order.
Result<FeasignGenReport> generate_feasign(const FeasignGenOptions& options, const std::string& path,
                                          unsigned threads,
                                          const std::function<void(uint64_t)>& progress);

}  // namespace flux
