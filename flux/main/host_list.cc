#include "flux/main/host_list.h"

#include <algorithm>

#include "flux/base/text.h"
#include "flux/platform/ssh_platform.h"

namespace flux {

Result<HostList> HostList::parse(const std::string& path, std::string_view text) {
  HostList list;
  list.hosts_.clear();
  size_t number = 0;
  for (std::string line : split(std::string(text), '\n')) {
    ++number;
    line = line.substr(0, line.find('#'));
    const size_t begin = line.find_first_not_of(" \t\r");
    if (begin == std::string::npos) continue;
    line = line.substr(begin, line.find_last_not_of(" \t\r") - begin + 1);
    if (line[0] == '-' || line.find_first_of(" \t'\"\\") != std::string::npos)
      return invalid("{}:{}: '{}' is no name of a host; one per line, as ssh takes it", path,
                     number, line);
    const bool known = std::any_of(list.hosts_.begin(), list.hosts_.end(),
                                   [&](const Host& host) { return host.name == line; });
    if (known) return invalid("{}:{}: {} is there twice", path, number, line);
    list.hosts_.push_back({line, 0, 0});
  }
  if (list.hosts_.empty()) return invalid("{}: no host; one per line, as ssh takes it", path);
  return list;
}

std::string HostList::take(TimeNs now) {
  const auto best =
      std::min_element(hosts_.begin(), hosts_.end(), [now](const Host& a, const Host& b) {
        const TimeNs a_lost = a.lost_until > now ? a.lost_until : 0;
        const TimeNs b_lost = b.lost_until > now ? b.lost_until : 0;
        return a_lost != b_lost ? a_lost < b_lost : a.roles < b.roles;
      });
  ++best->roles;
  return best->name;
}

void HostList::give_back(const std::string& host) {
  for (Host& one : hosts_)
    if (one.name == host && one.roles > 0) --one.roles;
}

void HostList::lost(const std::string& host, TimeNs now) {
  for (Host& one : hosts_)
    if (one.name == host) one.lost_until = now + kLostFor;
}

bool HostList::all_here() const {
  return std::all_of(hosts_.begin(), hosts_.end(),
                     [](const Host& host) { return is_local_host(host.name); });
}

bool HostList::all_lost(TimeNs now) const {
  return std::all_of(hosts_.begin(), hosts_.end(),
                     [now](const Host& host) { return host.lost_until > now; });
}

std::optional<TimeNs> HostPauses::next(TimeNs now) {
  if (pause_ == 0) {
    since_ = now;
    pause_ = kFirst;
    at_ = now + pause_;
  }
  if (now - since_ >= kGiveUp) return std::nullopt;
  if (now >= at_) {
    pause_ = std::min(2 * pause_, kLongest);
    at_ = std::min(now + pause_, since_ + kGiveUp);
  }
  return at_;
}

}  // namespace flux
