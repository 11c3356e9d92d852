// Restarts: when a process that died is started again, and when that is enough.
//
// By rate, not by number: a job of weeks may lose a worker many times, but one that dies at once,
// again and again, is given up. The first restart is at once, the next ones after pauses that grow.
// Running out of memory is counted apart, over a longer time, and only where nothing is left that
// could be made smaller: a worker first gets a smaller share. Pure: the caller brings the time.
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
  uint32_t memory_deaths_max = 2;       // within their window
  TimeNs memory_window_ns = 3600 * kSecond;
};

class Restarts {
 public:
  explicit Restarts(RestartOptions options = {}) : options_(options) {}
  // It died: when to start it again; nothing: never.
  std::optional<TimeNs> died(TimeNs now);
  // It ran out of memory and cannot do with less. False: once too often.
  bool out_of_memory(TimeNs now);
  const RestartOptions& options() const { return options_; }

 private:
  RestartOptions options_;
  std::deque<TimeNs> deaths_;
  std::deque<TimeNs> memory_deaths_;
};

// What a worker may hold at a time: batches in flight in each thread, and threads.
struct WorkerShare {
  uint32_t in_flight = 1, threads = 1;

  bool is_least() const { return in_flight <= 1 && threads <= 1; }
  // What it gets after it ran out of memory. Fewer in flight cost little speed: they come first.
  WorkerShare half() const;
};

}  // namespace flux
