// HostList: the hosts of `flux run --hosts FILE`, and which of them takes the next role.
//
// The file has one host per line, as ssh takes it; "localhost" is this one; "#" begins a comment.
// Each role goes to the host with the fewest; one that was lost is left alone for a while. Pure:
// the caller brings the time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "flux/base/executor.h"
#include "flux/base/status.h"

namespace flux {

class HostList {
 public:
  static constexpr TimeNs kLostFor = 30 * kSecond;

  // Without a file: this host alone.
  HostList() : hosts_{{"localhost", 0, 0}} {}
  // kInvalid with the line; `path` for messages.
  static Result<HostList> parse(const std::string& path, std::string_view text);

  // The host of a new role. If all are lost, the one that was lost first.
  std::string take(TimeNs now);
  void give_back(const std::string& host);
  void lost(const std::string& host, TimeNs now);
  bool all_here() const;            // every host is this one
  bool all_lost(TimeNs now) const;  // and none of them is due again

 private:
  struct Host {
    std::string name;
    uint32_t roles = 0;
    TimeNs lost_until = 0;
  };
  std::vector<Host> hosts_;
};

// When no host can be reached: pauses that grow, up to an end.
class HostPauses {
 public:
  static constexpr TimeNs kFirst = kSecond;
  static constexpr TimeNs kLongest = 16 * kSecond;
  static constexpr TimeNs kGiveUp = 60 * kSecond;

  // No host is left: when to try again, for all roles alike; nothing: it has been so for too long.
  std::optional<TimeNs> next(TimeNs now);
  void reached() { *this = HostPauses(); }

 private:
  TimeNs since_ = 0, pause_ = 0, at_ = 0;
};

}  // namespace flux
