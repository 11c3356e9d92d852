#include "flux/main/hung_roles.h"

namespace flux {

void HungRoles::started(const std::string& name) {
  const auto at = seen_.find(name);
  if (at != seen_.end()) at->second.over = true;
}

std::vector<HungRoles::Hung> HungRoles::look(const std::map<std::string, uint32_t>& lost,
                                             TimeNs now) {
  std::erase_if(seen_, [&](const auto& one) { return !lost.contains(one.first); });
  std::vector<Hung> hung;
  for (const auto& [name, pid] : lost) {
    const auto [at, is_new] = seen_.try_emplace(name, Seen{pid, now, false});
    Seen& seen = at->second;
    if (!is_new && seen.pid != pid) seen = {pid, now, false};
    if (seen.over || now - seen.since < patience_) continue;
    seen.over = true;
    hung.push_back({name, pid});
  }
  return hung;
}

}  // namespace flux
