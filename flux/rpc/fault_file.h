// FaultFile: faults that a running cluster obeys, in a file that `flux drill` writes.
//
//   hold FROM TO      messages from one role to another wait until this is over, as in the buffers
//                     of a connection over a cut network; both ways are two lines
//   drop FROM TO      they vanish
//   die PID POINT:N   this process ends at a kill point (base/kill_point.h)
//   oom PID           this process, whose memory is limited, asks for more (main/memory_watch.h);
//   for
//                     a supervisor, its death is the drill's doing
//   start NAME POINT:N   the next process of this name is started with --die-at
// A role is named as in `flux status` ("worker-0"), by its kind ("worker"), by its address
// ("tcp:127.0.0.1:4711"), or "*". Roles look at the file only when started with --faults FILE
// (`flux run --drillable`), at most every 50 ms. A file that is not there has no faults.
// Threads: Faults is a value; a FaultFile has one owner. Failure: parsing says kInvalid with the
// line; a FaultFile that cannot read its file keeps what it has read before.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "flux/base/executor.h"
#include "flux/base/kill_point.h"
#include "flux/base/status.h"

namespace flux {

struct Faults {
  struct Drop {
    std::string from, to;
    bool held = false;  // hold, not drop
  };
  struct Die {
    int64_t pid = 0;
    KillOrder order;
  };
  struct Start {
    std::string name;
    KillOrder order;
  };
  std::vector<Drop> drops;
  std::vector<Die> dies;
  std::vector<Start> starts;
  std::vector<int64_t> ooms;  // process numbers

  // What becomes of messages between these; each end is given by all its names.
  enum class Way : uint8_t { kOpen, kHeld, kDropped };
  Way way(const std::vector<std::string>& from, const std::vector<std::string>& to) const;
};

Result<Faults> parse_faults(std::string_view text);
std::string faults_text(const Faults& faults);

class FaultFile {
 public:
  explicit FaultFile(std::string path) : path_(std::move(path)) {}
  // What the file says now, or said a moment ago.
  const Faults& at(TimeNs now);

 private:
  const std::string path_;
  TimeNs next_ = 0;
  int64_t stamp_[3] = {0, 0, 0};  // inode, time of change, size of what was read
  Faults faults_;
};

// "worker-0" is also a "worker", and "unix:/.../server-1" also "server-1" and "server".
std::vector<std::string> names_of_peer(const std::string& name_or_address);

}  // namespace flux
