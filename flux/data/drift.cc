#include "flux/data/drift.h"

#include <chrono>
#include <numbers>

#include <fmt/format.h>

namespace flux {
namespace {

constexpr int64_t kDayHours = 24;
constexpr int64_t kMostClicks = 20;  // hour of the day

int64_t hour_of_day(int64_t hours) {
  return hours % kDayHours;
}

// NaN is in no range.
bool within(double value, double most) {
  return value >= 0 && value <= most;
}

// Digits of text[at, at + count) as a number, or -1.
int digits(const std::string& text, size_t at, size_t count) {
  int value = 0;
  for (size_t i = at; i < at + count; ++i) {
    if (text[i] < '0' || text[i] > '9') return -1;
    value = value * 10 + (text[i] - '0');
  }
  return value;
}

}  // namespace

Status check_drift(const Drift& drift) {
  if (drift.hours == 0 || drift.hours > kDriftHoursMax)
    return invalid("--hours {}: allowed is 1 to {}", drift.hours, kDriftHoursMax);
  if (!within(drift.turn, kTurnMax))
    return invalid("--drift {}: allowed is 0 (nothing is forgotten) to {} radians per hour",
                   drift.turn, kTurnMax);
  if (!within(drift.churn, 1))
    return invalid("--churn {}: allowed is 0 (the same ids for ever) to 1", drift.churn);
  if (!within(drift.wave, kWaveMax))
    return invalid("--wave {}: allowed is 0 (all hours alike) to {}", drift.wave, kWaveMax);
  if (drift.churn * drift.hours > kLivesMax)
    return invalid(
        "--churn {} in {} hours renews the ids {:.0f} times; at most {:.0f} are possible",
        drift.churn, drift.hours, drift.churn * drift.hours, kLivesMax);
  return Status::ok();
}

Result<int64_t> parse_start(const std::string& text) {
  using std::chrono::day, std::chrono::month, std::chrono::year;
  const auto refused = [&](const char* what) {
    return invalid("--start '{}': {}; write it as 2026-01-31T23", text, what);
  };
  if (text.size() != 13 || text[4] != '-' || text[7] != '-' || text[10] != 'T')
    return refused("not an hour of a date");
  const int y = digits(text, 0, 4), m = digits(text, 5, 2), d = digits(text, 8, 2),
            h = digits(text, 11, 2);
  if (y < 0 || m < 0 || d < 0 || h < 0) return refused("not an hour of a date");
  const std::chrono::year_month_day date(year{y}, month(static_cast<unsigned>(m)),
                                         day(static_cast<unsigned>(d)));
  if (y < 1970 || !date.ok()) return refused("there is no such day since 1970");
  if (h >= kDayHours) return refused("hours go from 00 to 23");
  return std::chrono::sys_days(date).time_since_epoch().count() * kDayHours + h;
}

TruthMoment moment_at(const Drift& drift, uint32_t hour) {
  TruthMoment moment;
  moment.angle = drift.turn * hour;
  if (drift.churn > 0) moment.lives = drift.churn * hour;
  const auto from_top = static_cast<double>(hour_of_day(drift.start + hour) - kMostClicks);
  moment.lift = drift.wave * std::cos(2 * std::numbers::pi * from_top / kDayHours);
  return moment;
}

std::string hour_name(const Drift& drift, uint32_t hour) {
  const int64_t at = drift.start + hour;
  const std::chrono::year_month_day date(std::chrono::sys_days(std::chrono::days(at / kDayHours)));
  return fmt::format("{:04}{:02}{:02}/{:02}", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     hour_of_day(at));
}

}  // namespace flux
