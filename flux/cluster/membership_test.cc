// Runs tests/scripts/membership_*.txt (base/script_test.h) and random joins and losses.
//
//   lease S [GRACE]    seconds without a sign of life; makes a new membership
//   at T               the time in seconds
//   join NAME BOOT     a process asks to be a member
//   renew ID | leave ID | suspect ID
//   expire             removes those whose lease has run out
#include "flux/cluster/membership.h"

#include <set>
#include <sstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "flux/base/random.h"
#include "flux/base/script_test.h"

namespace flux {
namespace {

class Script {
 public:
  std::string run_line(const std::string& line) {
    std::istringstream in(line);
    std::string verb, name;
    in >> verb;
    double seconds = 0;
    uint64_t boot = 0;
    MemberId id = 0;
    if (verb == "lease" && in >> seconds) {
      double grace = 0;
      in >> grace;
      members_.emplace(TimeNs(seconds * kSecond), 0, TimeNs(grace * kSecond));
      return "";
    }
    if (verb == "at" && in >> seconds) {
      now_ = TimeNs(seconds * kSecond);
      return "";
    }
    std::string out;
    if (verb == "join" && in >> name >> boot) {
      const auto joined = members_->join(name, boot, now_);
      out = joined.stale
                ? "> refused: its name has another process\n"
                : fmt::format(
                      "> member {}{}{}\n", joined.id, joined.again ? " again" : "",
                      joined.replaced ? fmt::format(", member {} is gone", *joined.replaced) : "");
    } else if (verb == "renew" && in >> id) {
      if (!members_->renew(id, now_)) out = "> not a member\n";
    } else if (verb == "suspect" && in >> id) {
      if (!members_->suspect(id, now_)) out = "> not a member\n";
    } else if (verb == "leave" && in >> id) {
      if (!members_->leave(id)) out = "> not a member\n";
    } else if (verb == "expire") {
      for (const Member& gone : members_->expire(now_))
        out += fmt::format("> gone: {} {}, seen at {:g} s\n", gone.id, gone.name, s(gone.seen_ns));
    } else {
      ADD_FAILURE() << "unknown line: " << line;
    }
    return out + standing();
  }

 private:
  static double s(TimeNs time) { return static_cast<double>(time) / kSecond; }
  std::string standing() const {
    std::string text = fmt::format("> {} live:", members_->live());
    for (const auto& [id, member] : members_->members()) {
      EXPECT_EQ(members_->find(id), &member);
      EXPECT_EQ(members_->find(member.name), &member) << "one process a name";
      text += fmt::format(" {}={}/{}@{:g}", id, member.name, member.boot, s(member.seen_ns));
    }
    const auto next = members_->next_time();
    return text + (next ? fmt::format(", next runs out at {:g} s\n", s(*next)) : "\n");
  }

  std::optional<Membership> members_;
  TimeNs now_ = 0;
};

FLUX_SCRIPT_TEST(MembershipScript, "membership_", Script);

// A plain list of what was promised to each member.
TEST(Membership, AgreesWithAPlainList) {
  Random random(5);
  constexpr TimeNs kLease = 100;
  Membership members(kLease);
  std::map<MemberId, TimeNs> seen;
  std::set<MemberId> ids;
  TimeNs now = 0;
  for (int step = 0; step < 20000; ++step) {
    now += static_cast<TimeNs>(random.below(8));
    const MemberId any = static_cast<MemberId>(1 + random.below(ids.size() + 2));
    switch (random.below(4)) {
      case 0: {
        const std::string name = std::to_string(random.below(12));
        const auto joined = members.join(name, step / 40 + random.below(2), now);
        if (joined.stale) {
          ASSERT_EQ(joined.id, 0U);
          break;
        }
        ASSERT_EQ(joined.again, !ids.insert(joined.id).second) << "an id was used twice";
        ASSERT_EQ(joined.again, seen.contains(joined.id));
        ASSERT_EQ(seen.erase(joined.replaced.value_or(0)), joined.replaced ? 1U : 0U);
        seen[joined.id] = now;
        ASSERT_EQ(members.find(name)->id, joined.id);
        break;
      }
      case 1:
        ASSERT_EQ(members.renew(any, now), seen.contains(any));
        if (seen.contains(any)) seen[any] = now;
        break;
      case 2:
        if (random.chance(0.9)) break;
        ASSERT_EQ(members.leave(any), seen.erase(any) == 1);
        break;
      default:
        for (const Member& gone : members.expire(now)) {
          ASSERT_LE(gone.seen_ns + kLease, now);
          ASSERT_EQ(seen.erase(gone.id), 1U);
        }
        for (const auto& [id, at] : seen) ASSERT_GT(at + kLease, now) << "overdue";
    }
    ASSERT_EQ(members.live(), seen.size());
    TimeNs earliest = INT64_MAX;
    for (const auto& [id, at] : seen) earliest = std::min(earliest, at + kLease);
    ASSERT_EQ(members.next_time().value_or(INT64_MAX), earliest);
  }
  EXPECT_GT(ids.size(), 1000U);
}

// A life of a job has a term of its own; however many join in one, the next begins beyond.
TEST(MembershipIds, TwoLivesShareNone) {
  for (const uint64_t term : {1U, 2U, 0x8001U, 0x10000U}) {
    Membership life(kSecond, first_member_id(term));
    MemberId last = 0;
    for (uint64_t boot = 1; boot <= 70000; ++boot) {
      last = life.join("w", boot, 0).id;
      life.leave(last);
    }
    EXPECT_GT(last, first_member_id(term));
    EXPECT_LT(last, first_member_id(term + 1));
  }
}

}  // namespace
}  // namespace flux
