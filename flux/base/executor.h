// Executor: where state machines get their time and their turn. The protocol never calls a clock
// or starts a thread; it asks its driver to be called again through this interface, so that a
// simulator can put its own time and order in place of ours.
// Threads: a task runs on the thread(s) of the executor that took it; see each implementation.
#pragma once

#include <cstdint>
#include <functional>

namespace flux {

using TimeNs = int64_t;  // monotonic nanoseconds since an arbitrary start
constexpr TimeNs kMillisecond = 1'000'000;
constexpr TimeNs kSecond = 1'000'000'000;

// The machine's monotonic clock.
TimeNs steady_now_ns();

class Executor {
 public:
  virtual ~Executor() = default;
  virtual TimeNs now_ns() const = 0;
  // Runs the task once, not before `delay_ns` from now. Never inside the call to post().
  virtual void post(TimeNs delay_ns, std::function<void()> task) = 0;
};

}  // namespace flux
