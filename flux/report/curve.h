// Curve: the learning curve of a job: rows on the screen, a table on disk, a picture at the end.
//
// One row per report: examples, loss since the last row, average loss, progressive AUC, speed;
// of a job with phases those of the phase that trains. The
// table (curve.tsv) is rewritten atomically with each checkpoint, and a resumed job continues it
// from the row it resumed at. Not thread-safe; owned by the reporter.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "flux/base/status.h"

namespace flux {

struct CurveRow {
  uint64_t examples = 0;      // since the job began, repeats counted
  double loss_since = 0;      // mean of what the network minimises since the row before
  double loss_average = 0;    // mean over this run
  std::optional<double> auc;  // progressive, over this run; nothing: there is none
  double examples_per_s = 0;  // since the row before
};

class Curve {
 public:
  void add(const CurveRow& row) { rows_.push_back(row); }
  const std::vector<CurveRow>& rows() const { return rows_; }
  // Takes over rows of an earlier run up to `examples`; a missing or odd file gives none.
  void load(const std::string& path, uint64_t examples);
  Status save(const std::string& path) const;
  // A self-contained picture: loss and AUC over examples.
  std::string to_svg(const std::string& title, double test_auc) const;

 private:
  std::vector<CurveRow> rows_;
};

}  // namespace flux
