// Membership: who takes part now, by leases that members renew.
//
// A member is a (name, boot): a process that comes back under its name is another member, and the
// former one is gone at once. Expiry is only a guess that somebody is dead; what makes it safe is
// fencing by identity and epoch elsewhere. A member that another one cannot reach is looked at
// sooner: it has a short grace to renew instead of the rest of its lease, and nothing has happened
// if it does. Ids are never used twice.
// Pure: the caller brings the time. Not thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "flux/base/executor.h"

namespace flux {

using MemberId = uint64_t;

// Members of two lives of a job (each has a term of its own) never have the same id: one that a
// former coordinator knew is a stranger to this one until it joins.
inline MemberId first_member_id(uint64_t term) {
  return term << 32;
}

struct Member {
  MemberId id = 0;
  std::string name;
  uint64_t boot = 0;
  TimeNs joined_ns = 0;
  TimeNs seen_ns = 0;
  TimeNs suspected_ns = -1;  // the first time since it was seen; -1: nobody says so
};

class Membership {
 public:
  // Ids follow `last`; see first_member_id(). Without a grace suspicions change nothing.
  explicit Membership(TimeNs lease_ns, MemberId last = 0, TimeNs grace_ns = 0)
      : lease_ns_(lease_ns), grace_ns_(grace_ns > 0 ? grace_ns : lease_ns), last_(last) {}

  struct Joined {
    MemberId id = 0;
    bool again = false;                // a repeated request of the same process
    std::optional<MemberId> replaced;  // the former process of that name, gone now
    // Not a member (id 0): another process took over this one's name. A late request of a process
    // that was replaced, or two processes that were given one name.
    bool stale = false;
  };
  // A process whose lease ran out or that left may join again, as a new member.
  Joined join(const std::string& name, uint64_t boot, TimeNs now);
  // False: not a member (any more).
  bool renew(MemberId id, TimeNs now);
  // Somebody cannot reach it: its lease ends after the grace, unless it renews. Saying it again
  // changes nothing. False: not a member.
  bool suspect(MemberId id, TimeNs now);
  bool leave(MemberId id);
  // Removes and returns those whose lease has run out.
  std::vector<Member> expire(TimeNs now);

  // Another process that is here now took over this one's name.
  bool was_replaced(const std::string& name, uint64_t boot) const;
  // When the lease of a member runs out.
  TimeNs due(const Member& member) const;
  const Member* find(MemberId id) const;
  const Member* find(const std::string& name) const;
  size_t live() const { return members_.size(); }
  const std::map<MemberId, Member>& members() const { return members_; }
  // When the next lease runs out, if anybody is here.
  std::optional<TimeNs> next_time() const;

 private:
  TimeNs lease_ns_, grace_ns_;
  MemberId last_;
  std::map<MemberId, Member> members_;
  std::deque<std::pair<std::string, uint64_t>> replaced_;  // name, boot; the latest
};

}  // namespace flux
