// Made data in the Criteo shape with a known truth: what a model can reach is known beforehand.
//
// Line: label, 13 dense values (exponential, 4 decimals), 26 categorical tokens (8 hex digits,
// Zipf-distributed, unique over slots), separated by tabs. The label is drawn from a hidden
// logistic model (criteo_truth.h) that depends on truth_seed alone, so files of different seeds
// are different examples of one truth: use one seed to train and another to test.
// The bytes depend on the options only, never on the number of threads.
// Failure: Status with the path and the reason; the file is written aside and renamed, so `path`
// is whole or untouched, and nothing is left behind.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "flux/base/status.h"
#include "flux/data/criteo_truth.h"

namespace flux {

struct CriteoGenOptions {
  uint64_t examples = 0;        // lines to write, at least 1
  uint64_t seed = 1;            // which examples
  uint64_t truth_seed = 12345;  // which hidden model
};

struct CriteoGenReport {
  uint64_t examples = 0;
  uint64_t distinct_ids = 0;  // over all slots, exact
  double ctr = 0;             // share of positive labels
  // AUC of the hidden logit, the most a model can reach on these examples: exact up to 5 million
  // examples, from a histogram above. 0.5 when there is one class only.
  double oracle_auc = 0;
};

// Writes `path`; compressed when it ends in ".gz". `progress`, if set, gets the number of examples
// written so far, from one thread at a time, in increasing order.
Result<CriteoGenReport> generate_criteo(const CriteoGenOptions& options, const std::string& path,
                                        unsigned threads,
                                        const std::function<void(uint64_t)>& progress);
// Draws from a truth that the caller has, at its moment; the truth seed of the options is not used.
Result<CriteoGenReport> generate_criteo(const CriteoTruth& truth, const CriteoGenOptions& options,
                                        const std::string& path, unsigned threads,
                                        const std::function<void(uint64_t)>& progress);

}  // namespace flux
