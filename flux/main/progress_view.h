// ProgressView: what a person sees while a job trains.
//
// A table in the manner of vowpal wabbit (a row now and then: examples, loss since last and
// average, progressive AUC, speed, time left), and on a terminal a bar under it. In a pipe only
// plain lines. Owned and called by one reporting thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "flux/base/executor.h"
#include "flux/report/curve.h"

namespace flux {

// How far this run is. Repeats, after the loss of what was applied, are work but no progress.
struct ProgressPoint {
  uint64_t examples = 0;      // trained by its workers, repeats counted
  double loss_sum = 0;        // over those
  std::optional<double> auc;  // progressive; nothing: there is none
  uint64_t applied = 0;       // over the life of the model, each once; falls when a job goes back
  // Of a job with several phases: the one that trains. Loss and AUC are told of it alone.
  std::string phase = {};
  uint64_t phase_examples = 0;
  double phase_loss_sum = 0;
};

class ProgressView {
 public:
  enum class Show : uint8_t { kNothing, kLines, kBar };  // kBar: lines, and a bar under them
  // `log_loss`: what is minimised is that, and is called so.
  ProgressView(Show show, Curve* curve, bool log_loss = false)
      : show_(show), curve_(curve), log_loss_(log_loss) {}

  void say(const std::string& line);   // a plain line, not torn by the bar
  void warn(const std::string& line);  // the same on standard error
  // `total`: examples of the whole job as far as known; nothing is shown to be beyond it.
  void begin(const ProgressPoint& progress, uint64_t total, TimeNs now);
  // Call often; prints a row when one is due.
  void update(const ProgressPoint& progress, TimeNs now);
  // True when update() would print; asking is cheap, progress is not.
  bool due(uint64_t examples, TimeNs now) const;
  void draw_bar(const ProgressPoint& progress, TimeNs now);
  // Prints the last row, if anything came after the last printed one.
  void finish(const ProgressPoint& progress, TimeNs now);

 private:
  uint64_t shown(const ProgressPoint& progress) const;
  // The losses of one network.
  struct Losses {
    uint64_t examples = 0;  // at the last row
    double sum = 0;
    uint32_t rows = 0;
    double first = 0;     // of the first row
    uint32_t far_up = 0;  // rows in succession that are far above that
  };
  void print_row(const ProgressPoint& progress, TimeNs now);
  void fill_losses(const ProgressPoint& progress, CurveRow* row);
  void warn_if_diverging(double loss, Losses* of);
  void clear_bar();

  const Show show_;
  Curve* const curve_;
  const bool log_loss_;
  uint64_t total_ = 0;
  uint64_t first_examples_ = 0;  // when training began
  TimeNs start_ = 0;
  TimeNs last_row_ = 0;
  uint64_t last_examples_ = 0;
  CurveRow last_;
  std::string last_phase_;
  std::map<std::string, Losses> losses_;  // by phase
  uint32_t rows_ = 0;
  bool bar_shown_ = false;
  bool warned_ = false;
};

}  // namespace flux
