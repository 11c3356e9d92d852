// HungRoles: which processes the coordinator has taken for dead that are still there, and for how
// long: those are stopped, swapped out or stuck, and make room for another.
//
// A short pause is harmless: who joins again in time is lost no more. What is said about a process
// before the present one of its name was started is not about this one.
// Pure: the caller brings the time and what the coordinator says. Threads: one owner. Failure:
// none.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "flux/base/executor.h"

namespace flux {

class HungRoles {
 public:
  explicit HungRoles(TimeNs patience) : patience_(patience) {}

  struct Hung {
    std::string name;
    uint32_t pid = 0;  // on its host
  };
  // A new process of that name.
  void started(const std::string& name);
  // `lost` is who is taken for dead now; returns those that have been for too long, once.
  std::vector<Hung> look(const std::map<std::string, uint32_t>& lost, TimeNs now);

 private:
  struct Seen {
    uint32_t pid = 0;
    TimeNs since = 0;
    bool over = false;  // told, or another process has the name now
  };
  const TimeNs patience_;
  std::map<std::string, Seen> seen_;
};

}  // namespace flux
