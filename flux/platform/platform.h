// Platform: where the processes of a job run: started, watched and stopped, wherever that is.
//
// One interface; local processes (local_platform.h) and those of other hosts (ssh_platform.h) are
// behind it.
// Commands are argument vectors and never pass through a shell.
// Threads: one owner. Failure: Status that names the program and the system's reason.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "flux/base/executor.h"
#include "flux/base/status.h"

namespace flux {

struct ProcessSpec {
  std::string name;                    // unique among those that run: "server-0"
  std::vector<std::string> arguments;  // the first is the program's path
  std::string log;                     // file that takes its output, added to; empty: inherited
  std::string host = "";               // where it runs; "" or "localhost": here
  // A leash: its standard input is a pipe that begins with `input` and stays open while the
  // platform lives. It is asked to stop by the line "stop", and must end when the pipe closes.
  bool leash = false;
  std::string input = "";
};

using ProcessId = uint64_t;  // of the platform, never used twice

// How a process ended.
struct ProcessEnd {
  ProcessId id = 0;
  std::string name;
  int64_t pid = 0;              // where it ran; 0: not known
  int code = 0;                 // exit code, if signal is 0
  int signal = 0;               // that killed it; 0: it ended by itself
  bool host_lost = false;       // its host cannot be reached (any more)
  uint64_t peak_rss_bytes = 0;  // 0: not known
  // "exit code 2", "killed by signal 9 (Killed)"
  std::string text() const;
};

struct ProcessInfo {
  ProcessId id = 0;
  std::string name;
  int64_t pid = 0;  // where it runs
};

class Platform {
 public:
  virtual ~Platform() = default;  // whatever still runs is killed and waited for
  virtual Result<ProcessId> start(const ProcessSpec& spec) = 0;
  // Asks it to end: what a role does with SIGTERM.
  virtual void ask_to_stop(ProcessId id) = 0;
  virtual void kill(ProcessId id) = 0;
  // Those that have ended since the last call.
  virtual std::vector<ProcessEnd> ended() = 0;
  virtual std::vector<ProcessInfo> running() const = 0;
};

}  // namespace flux
