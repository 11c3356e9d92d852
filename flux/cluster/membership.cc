#include "flux/cluster/membership.h"

#include <algorithm>

namespace flux {
namespace {
constexpr size_t kReplacedMax = 1024;  // remembered, so that their late requests are known
}

Membership::Joined Membership::join(const std::string& name, uint64_t boot, TimeNs now) {
  Joined joined;
  if (const Member* former = find(name); former != nullptr) {
    if (former->boot == boot) {
      joined.id = former->id;
      joined.again = true;
      renew(joined.id, now);
      return joined;
    }
    if (was_replaced(name, boot)) {
      joined.stale = true;
      return joined;
    }
    joined.replaced = former->id;
    replaced_.emplace_back(name, former->boot);
    if (replaced_.size() > kReplacedMax) replaced_.pop_front();
    members_.erase(former->id);
  }
  joined.id = ++last_;
  members_[joined.id] = Member{joined.id, name, boot, now, now, -1};
  return joined;
}

bool Membership::was_replaced(const std::string& name, uint64_t boot) const {
  return find(name) != nullptr &&
         std::find(replaced_.begin(), replaced_.end(), std::pair(name, boot)) != replaced_.end();
}

bool Membership::renew(MemberId id, TimeNs now) {
  const auto at = members_.find(id);
  if (at == members_.end()) return false;
  at->second.seen_ns = std::max(at->second.seen_ns, now);
  at->second.suspected_ns = -1;
  return true;
}

bool Membership::suspect(MemberId id, TimeNs now) {
  const auto at = members_.find(id);
  if (at == members_.end()) return false;
  if (at->second.suspected_ns < 0) at->second.suspected_ns = now;
  return true;
}

TimeNs Membership::due(const Member& member) const {
  const TimeNs due = member.seen_ns + lease_ns_;
  return member.suspected_ns < 0 ? due : std::min(due, member.suspected_ns + grace_ns_);
}

bool Membership::leave(MemberId id) {
  return members_.erase(id) != 0;
}

std::vector<Member> Membership::expire(TimeNs now) {
  std::vector<Member> gone;
  for (auto at = members_.begin(); at != members_.end();) {
    if (now < due(at->second)) {
      ++at;
      continue;
    }
    gone.push_back(at->second);
    at = members_.erase(at);
  }
  return gone;
}

const Member* Membership::find(MemberId id) const {
  const auto at = members_.find(id);
  return at == members_.end() ? nullptr : &at->second;
}

const Member* Membership::find(const std::string& name) const {
  for (const auto& [id, member] : members_)
    if (member.name == name) return &member;
  return nullptr;
}

std::optional<TimeNs> Membership::next_time() const {
  std::optional<TimeNs> earliest;
  for (const auto& [id, member] : members_)
    earliest = std::min(earliest.value_or(due(member)), due(member));
  return earliest;
}

}  // namespace flux
