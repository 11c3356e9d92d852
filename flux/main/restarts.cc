#include "flux/main/restarts.h"

namespace flux {

std::optional<TimeNs> Restarts::died(TimeNs now) {
  while (!deaths_.empty() && now - deaths_.front() > options_.window_ns) deaths_.pop_front();
  const auto before = static_cast<TimeNs>(deaths_.size());
  deaths_.push_back(now);
  if (deaths_.size() > options_.deaths_max) return std::nullopt;
  return now + before * options_.pause_ns;
}

}  // namespace flux
