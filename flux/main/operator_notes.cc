#include "flux/main/operator_notes.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "flux/base/text.h"

namespace flux {

std::string backup_note(const JobStatus& status, uint64_t servers) {
  if (servers >= status.replicas) return "";
  return fmt::format(
      "warning: replicas: {}, but there will be {} server{}: shards have no backup until another "
      "one joins (flux scale --servers {})",
      status.replicas, servers, servers == 1 ? "" : "s", status.replicas);
}

uint64_t servers_without(const JobStatus& status, const std::string& name) {
  return static_cast<uint64_t>(
      std::count_if(status.servers.begin(), status.servers.end(),
                    [&](const ServerStatus& one) { return !one.draining && one.name != name; }));
}

std::string nobody_starts_note(const JobStatus& status, int64_t workers, int64_t servers) {
  std::vector<std::string> missing;
  const auto add = [&](int64_t wanted, uint64_t here, const char* role) {
    if (wanted > static_cast<int64_t>(here))
      missing.push_back(
          fmt::format("{} (flux {})", counted(static_cast<uint64_t>(wanted) - here, role), role));
  };
  add(workers, status.workers.size(), "worker");
  add(servers, servers_without(status, ""), "server");
  if (missing.empty()) return "";
  return "note: this cluster was started by hand, so nobody starts what is missing; start " +
         join(missing, " and ") + " yourself";
}

}  // namespace flux
