// Charts as inline SVG: lines over examples, and a calibration plot. Colours come from the CSS
// variables --c0.. of the page around them, so they follow a dark or a light ground.
// Pure functions; values that are not finite are left out.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "flux/metrics/score_runs.h"

namespace flux {

struct ChartLine {
  std::string name;
  std::vector<std::pair<double, double>> points;  // x, y
  bool dots = false;                              // single points instead of a line
};

// "" when there is no point at all.
std::string line_chart(const std::string& title, std::span<const ChartLine> lines);
// Predicted rate against actual rate, a dot per bin, its area by weight; the diagonal is right.
std::string calibration_chart(std::span<const CalibrationBin> bins);

}  // namespace flux
