// IoLoop: an Executor over one Asio context, turned by one thread: sockets, timers and tasks.
//
// A trainer thread turns its own loop between batches, so that its traffic costs no thread hop; a
// server gives each of its threads one. Asio itself is not seen by includers of this header.
// Threads: post() and stop() from any thread; the rest by the thread that turns the loop.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "flux/base/waiting_executor.h"

namespace asio {
class io_context;
}

namespace flux {

class IoLoop final : public WaitingExecutor {
 public:
  IoLoop();
  ~IoLoop() override;
  TimeNs now_ns() const override { return steady_now_ns(); }
  void post(TimeNs delay_ns, std::function<void()> task) override;

  // Runs what is ready without waiting; returns how many handlers ran.
  size_t poll() override;
  // Waits for one handler until `deadline_ns` (of now_ns()) and runs it; false if none came.
  bool run_one_until(TimeNs deadline_ns) override;
  // Turns until stop().
  void run();
  void stop();
  bool stopped() const;

  asio::io_context& context();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace flux
