// Offload: where slow work (reading data, checking files) goes, so that an event loop never waits.
// `work` runs elsewhere, then `done` runs on the executor of whoever asked. In the simulator both
// run on the simulated time line. Threads: run() from the owner's executor thread.
#pragma once

#include <functional>

namespace flux {

class Offload {
 public:
  virtual ~Offload() = default;
  virtual void run(std::function<void()> work, std::function<void()> done) = 0;
};

}  // namespace flux
