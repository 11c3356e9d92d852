// WaitReport: what the trainer waits for, and which servers do not answer it, for other threads to
// read. Threads: any; it has a lock. No failure.
#pragma once

#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "flux/api/job_port.h"
#include "flux/base/executor.h"
#include "flux/base/text.h"

namespace flux {

class WaitReport {
 public:
  // "" while it works.
  void waits_for(std::string what, TimeNs now) {
    const std::lock_guard lock(mutex_);
    what_ = std::move(what);
    since_ = now;
  }
  // "pull from server 1 for 0.3 s"; "" if it works or has just begun to wait.
  std::string text(TimeNs now) const {
    const std::lock_guard lock(mutex_);
    if (what_.empty() || now - since_ < kSecond / 10) return "";
    return fmt::format("{} for {:.1f} s", what_, static_cast<double>(now - since_) * 1e-9);
  }
  void suspect(std::vector<ServerId> servers, TimeNs now) {
    const std::lock_guard lock(mutex_);
    suspects_ = std::move(servers);
    looked_ns_ = now;
  }
  // Those of the last look; none if that is long ago.
  std::vector<ServerId> suspects(TimeNs now) const {
    const std::lock_guard lock(mutex_);
    return now - looked_ns_ > kSecond ? std::vector<ServerId>{} : suspects_;
  }

 private:
  mutable std::mutex mutex_;
  std::string what_;
  TimeNs since_ = 0, looked_ns_ = 0;
  std::vector<ServerId> suspects_;
};

}  // namespace flux
