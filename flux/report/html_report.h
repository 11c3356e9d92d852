// html_report: a run on one page for people: curves, calibration, every metric, facts of the job.
//
// One file that needs nothing else: no scripts, no fonts, no request; readable on a dark and on a
// light ground. The text is well-formed XML too. Pure; no failure.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "flux/metrics/metric_values.h"
#include "flux/report/curve.h"

namespace flux {

// An evaluation on held-out data.
struct HeldOutTest {
  std::string pass;       // after which it was made
  uint64_t examples = 0;  // trained until then
  MetricReport report;
};

struct RunReport {
  std::string title, note;
  std::vector<std::pair<std::string, std::string>> facts;  // name, value
  std::vector<CurveRow> curve;
  std::vector<HeldOutTest> tests;  // in order
  MetricReport progressive = {};   // seen while training, by phase, head and slice; may be empty
};

std::string html_report(const RunReport& report);

}  // namespace flux
