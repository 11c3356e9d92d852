// ProgressView: what a person sees while a job trains.
//
// A table in the manner of vowpal wabbit (a row now and then: examples, loss since last and
// average, progressive AUC, speed, time left), and on a terminal a bar under it. In a pipe only
// plain lines. Owned and called by one reporting thread.
#pragma once

#include <cstdint>
#include <string>

#include "flux/base/executor.h"
#include "flux/main/curve.h"

namespace flux {

// How far this run is: sums over its workers.
struct ProgressPoint {
  uint64_t examples = 0;
  double loss_sum = 0;
  double auc = 0.5;  // progressive
};

class ProgressView {
 public:
  // `total`: examples of the whole job as far as known; `done_before`: those of earlier runs.
  ProgressView(bool terminal, Curve* curve) : terminal_(terminal), curve_(curve) {}

  void say(const std::string& line);  // a plain line, not torn by the bar
  void begin(uint64_t done_before, uint64_t total, TimeNs now);
  void set_total(uint64_t total) { total_ = total; }
  // Call often; prints a row when one is due.
  void update(const ProgressPoint& progress, TimeNs now);
  // True when update() would print; asking is cheap, progress is not.
  bool due(uint64_t examples, TimeNs now) const;
  void draw_bar(uint64_t examples, TimeNs now);
  // Prints the last row, if anything came after the last printed one.
  void finish(const ProgressPoint& progress, TimeNs now);
  bool terminal() const { return terminal_; }

 private:
  void print_row(const ProgressPoint& progress, TimeNs now);
  void clear_bar();

  const bool terminal_;
  Curve* const curve_;
  uint64_t done_before_ = 0;
  uint64_t total_ = 0;
  TimeNs start_ = 0;
  TimeNs last_row_ = 0;
  uint64_t last_examples_ = 0;
  double last_loss_ = 0;
  uint32_t rows_ = 0;
  bool bar_shown_ = false;
  bool warned_ = false;
};

}  // namespace flux
