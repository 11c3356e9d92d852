#include "flux/cluster/lr_schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "flux/base/text.h"

namespace flux {

const std::vector<std::string>& lr_schedule_kinds() {
  static const std::vector<std::string> kinds = {"constant",    "linear", "cosine",
                                                 "exponential", "step",   "inverse_sqrt"};
  return kinds;
}

bool lr_schedule_uses(const std::string& kind, const std::string& field) {
  if (field == "kind" || field == "warmup_batches") return true;
  if (kind == "constant") return false;
  if (field == "batches") return kind != "inverse_sqrt";
  if (field == "rate") return kind == "exponential" || kind == "step";
  return field == "end";
}

Status check_lr_schedule(const LrScheduleOptions& o) {
  const std::vector<std::string>& kinds = lr_schedule_kinds();
  if (std::find(kinds.begin(), kinds.end(), o.kind) == kinds.end())
    return invalid("lr_schedule.kind '{}' is not known; choose one of {}{}", o.kind,
                   join(kinds, ", "), did_you_mean(o.kind, kinds));
  if (lr_schedule_uses(o.kind, "batches") && o.batches == 0)
    return invalid("lr_schedule.batches is needed for kind {}: {}", o.kind,
                   lr_schedule_uses(o.kind, "rate") ? "after how many batches one `rate` is applied"
                                                    : "after how many batches the end is reached");
  if (!(o.end >= 0 && o.end <= 1))
    return invalid("lr_schedule.end is {}; it must be a number in [0, 1]", o.end);
  if (!(o.rate > 0 && o.rate <= 1))
    return invalid("lr_schedule.rate is {}; it must be a number in (0, 1]", o.rate);
  return Status::ok();
}

double LrSchedule::decay(double t) const {
  const auto length = static_cast<double>(std::max<uint32_t>(options_.batches, 1));
  const double passed = t / length;
  const double end = options_.end;
  if (options_.kind == "linear") return 1 - (1 - end) * std::min(1.0, passed);
  if (options_.kind == "cosine")
    return end + (1 - end) * (1 + std::cos(std::numbers::pi * std::min(1.0, passed))) / 2;
  if (options_.kind == "exponential") return std::max(end, std::pow(options_.rate, passed));
  if (options_.kind == "step") return std::max(end, std::pow(options_.rate, std::floor(passed)));
  if (options_.kind == "inverse_sqrt") {
    const auto h = static_cast<double>(std::max<uint32_t>(options_.warmup_batches, 1));
    return std::max(end, std::sqrt(h / (h + t)));
  }
  return 1;
}

float LrSchedule::factor(uint64_t position) const {
  const uint64_t warm = options_.warmup_batches;
  const double up =
      position < warm ? static_cast<double>(position + 1) / static_cast<double>(warm) : 1;
  const double t = position < warm ? 0 : static_cast<double>(position - warm);
  return static_cast<float>(std::clamp(up * decay(t), kMin, 1.0));
}

}  // namespace flux
