// Restarts: when a process that died is started again, and when that is enough.
//
// By rate, not by number: a job of weeks may lose a worker many times, but one that dies at once,
// again and again, is given up. The first restart is at once, the next ones after pauses that grow.
// Running out of memory is counted apart. Pure: the caller brings the time.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "flux/base/executor.h"

namespace flux {

struct RestartOptions {
  uint32_t deaths_max = 5;  // within the window
  TimeNs window_ns = 10 * kSecond;
  TimeNs pause_ns = 50 * kMillisecond;  // times the deaths before, in the window
  uint32_t out_of_memory_max = 2;       // restarts after such an end
};

class Restarts {
 public:
  explicit Restarts(RestartOptions options = {}) : options_(options) {}
  // It died: when to start it again; nothing: never.
  std::optional<TimeNs> died(TimeNs now);
  // It died of that. False: once too often.
  bool out_of_memory() { return ++out_of_memory_ <= options_.out_of_memory_max; }
  uint32_t times_out_of_memory() const { return out_of_memory_; }
  const RestartOptions& options() const { return options_; }

 private:
  RestartOptions options_;
  std::deque<TimeNs> deaths_;
  uint32_t out_of_memory_ = 0;
};

}  // namespace flux
