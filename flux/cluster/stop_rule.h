// StopRule: whether training still gets better, by one metric that is looked at now and then.
//
// A value counts as better if it beats the best so far by more than `min_delta`; after `patience`
// looks in a row that are not better, training has converged. Fed with the same values in the same
// order (from the coordinator's log, after a restart) it stands where it stood. Pure; one owner.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace flux {

// When a job ends before its data does; 0 and "": not by this.
struct StopOptions {
  uint64_t examples = 0;    // applied over the life of the model, each repeat counted
  uint64_t steps = 0;       // batches, likewise
  double seconds = 0;       // of training, of this run
  std::string metric;       // one of stop_metrics()
  std::string on = "test";  // test: after each evaluation | train: after each epoch of a phase
  std::string phase, head;  // whose metric; empty: the first
  double min_delta = 0;
  uint32_t patience = 3;

  bool converges() const { return !metric.empty(); }
};

struct StopMetric {
  const char* name;
  bool higher;  // is better
};
// Metrics that say how good a model is.
std::span<const StopMetric> stop_metrics();

class StopRule {
 public:
  explicit StopRule(const StopOptions& options);
  // True: better than all before by more than min_delta.
  bool look(double value);
  bool converged() const { return waited_ >= patience_; }
  std::optional<double> best() const { return best_; }
  uint32_t waited() const { return waited_; }  // looks since the best

 private:
  double min_delta_;
  uint32_t patience_;
  bool higher_ = true;
  std::optional<double> best_;
  uint32_t waited_ = 0;
};

}  // namespace flux
