// Drift: how made data changes from hour to hour, and where the file of each hour lies.
// Pure; parse_start() is kInvalid for what is no hour of a date.
#pragma once

#include <cstdint>
#include <string>

#include "flux/base/status.h"
#include "flux/data/truth_moment.h"

namespace flux {

struct Drift {
  uint32_t hours = 0;   // files; 0: no drift
  double turn = 0.02;   // radians per hour that hidden numbers turn by, up to kTurnMax
  double churn = 0.01;  // share of each place that passes to a new id per hour, up to 1
  double wave = 0.5;    // of the logit, up and down in a day: most at 20 h, least at 8 h
  int64_t start = 0;    // first hour, in hours since 1970 (UTC)
};
constexpr uint32_t kDriftHoursMax = 24 * 366;
constexpr double kTurnMax = 1.6;
constexpr double kWaveMax = 5;
constexpr double kLivesMax = 250;  // hours * churn; criteo tokens have room for no more

// kInvalid if a number is out of its range.
Status check_drift(const Drift& drift);
// "2026-01-01T00" to hours since 1970.
Result<int64_t> parse_start(const std::string& text);

TruthMoment moment_at(const Drift& drift, uint32_t hour);
// "20260101/00": folder of the day and name of the hour.
std::string hour_name(const Drift& drift, uint32_t hour);

}  // namespace flux
