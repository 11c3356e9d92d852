// KillOrders: which start of a server carries which order of a drill ("start NAME POINT:N" in the
// faults file, rpc/fault_file.h).
//
// A start carries one order at most, a line of the file is carried once, and what is no longer in
// the file (served or given up) is carried by nobody; ordered again later, it counts anew.
// Pure: the caller brings what the file says. Threads: one owner. Failure: none.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "flux/rpc/fault_file.h"

namespace flux {

class KillOrders {
 public:
  // Forgets orders whose lines are gone. Call it now and then, so that their return is seen.
  void look(const std::vector<Faults::Start>& starts);
  // For the process of this name that starts now: "install_mid:2"; empty: none.
  std::string take(const std::string& name, const std::vector<Faults::Start>& starts);

 private:
  using Key = std::pair<std::string, std::string>;  // name, order
  std::map<Key, size_t> carried_;                   // lines of that text
};

}  // namespace flux
