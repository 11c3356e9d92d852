// OutputLock: one flux process per output folder. Held until destroyed or the process ends, in
// whatever way it ends (the kernel lets go of it). Failure: kInvalid names the other process.
#pragma once

#include <memory>
#include <string>

#include "flux/base/status.h"

namespace flux {

class OutputLock {
 public:
  static Result<std::unique_ptr<OutputLock>> take(const std::string& output);
  // Of drills among themselves: one at a time on one job.
  static Result<std::unique_ptr<OutputLock>> take_for_drill(const std::string& output);
  // The process that holds take()'s lock, as text; empty: nobody. Writes nothing.
  static std::string holder(const std::string& output);
  ~OutputLock();
  OutputLock(const OutputLock&) = delete;
  OutputLock& operator=(const OutputLock&) = delete;

 private:
  explicit OutputLock(int fd) : fd_(fd) {}
  int fd_;
};

}  // namespace flux
