// RoleLog: the lines of one role, with time and name: "2026-01-31 23:59:59.123 worker-0: joined".
//
// Goes to standard output (a log file, when a supervisor started the role), to a file, or both; the
// latest lines stay in memory for /logs. Threads: say() from any thread. Failure: a line that
// cannot be written is dropped: training does not end for a full log disk.
#pragma once

#include <cstdio>
#include <deque>
#include <mutex>
#include <string>

#include "flux/base/status.h"

namespace flux {

class RoleLog {
 public:
  // `to_stdout`: also print the stamped line there.
  RoleLog(std::string role, bool to_stdout) : role_(std::move(role)), to_stdout_(to_stdout) {}
  ~RoleLog();
  RoleLog(const RoleLog&) = delete;
  RoleLog& operator=(const RoleLog&) = delete;

  Status open(const std::string& path);
  // Each line of `text` by itself.
  void say(const std::string& text);
  std::string latest() const;

 private:
  const std::string role_;
  const bool to_stdout_;
  mutable std::mutex mutex_;
  std::FILE* file_ = nullptr;
  std::deque<std::string> lines_;
};

// Why a role ended, from the text that it left: its last line "flux: ...", else its last line.
std::string reason_in_log(const std::string& text);

}  // namespace flux
