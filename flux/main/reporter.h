// Reporter: the thread that watches a worker: prints progress, keeps the curve, and calls a
// periodic task (checkpoints) so that trainers never pause for either.
// Threads: start() and stop() by the owner; say() from any thread.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "flux/main/curve.h"
#include "flux/main/progress_view.h"
#include "flux/worker/worker.h"

namespace flux {

class Reporter {
 public:
  Reporter(bool terminal, std::string curve_path);
  ~Reporter();
  void say(const std::string& line);
  // `before`: examples of earlier passes and runs; `total`: of the job as far as it is known.
  // `task` may be empty; it is called about ten times a second, without locks held.
  void start(const Worker* worker, uint64_t before, uint64_t total, std::function<void()> task);
  void stop(const Progress& last);
  const Curve& curve() const { return curve_; }
  Status save_curve();

 private:
  void loop(const Worker* worker, const std::function<void()>& task);

  const std::string curve_path_;
  Curve curve_;
  ProgressView view_;
  bool curve_loaded_ = false;
  std::mutex mutex_;  // guards view_, curve_ and stopping_
  std::condition_variable wake_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace flux
