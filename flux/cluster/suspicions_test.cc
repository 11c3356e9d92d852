// Runs tests/scripts/suspicions_*.txt (base/script_test.h) and random words of members.
//
//   bound S PAUSE MAX        makes new suspicions
//   at T                     the time in seconds
//   live WORKERS SERVERS     how many there are
//   worker ID [SERVER...]    all that it cannot reach; none: it reaches all
//   server ID [SERVER...]    the same of a server
//   gone worker|server ID    it is no member any more
//   pause NAME               it was condemned
#include "flux/cluster/suspicions.h"

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
    double seconds = 0, pause = 0, most = 0;
    uint64_t id = 0;
    if (verb == "bound" && in >> seconds >> pause >> most) {
      suspicions_ = Suspicions({ns(seconds), ns(pause), ns(most)});
      return "";
    }
    if (verb == "live" && in >> workers_ >> servers_) return "";
    if (verb == "pause" && in >> name)
      return fmt::format("> no shards until {:g} s\n",
                         static_cast<double>(suspicions_.pause(name, now_)) / kSecond);
    if (verb == "at" && in >> seconds) {
      now_ = ns(seconds);
    } else if (verb == "gone" && in >> name >> id) {
      suspicions_.gone({name == "worker", id});
    } else if ((verb == "worker" || verb == "server") && in >> id) {
      std::vector<ServerId> named;
      for (ServerId server = 0; in >> server;) named.push_back(server);
      suspicions_.tell({verb == "worker", id}, named, now_);
    } else {
      ADD_FAILURE() << "unknown line: " << line;
    }
    std::string out = "> condemned:";
    for (const ServerId server : suspicions_.condemned(workers_, servers_, now_))
      out += fmt::format(" {} (named by {})", server, suspicions_.count(server));
    return out + "\n";
  }

 private:
  static TimeNs ns(double seconds) { return TimeNs(seconds * kSecond); }
  Suspicions suspicions_;
  size_t workers_ = 0, servers_ = 0;
  TimeNs now_ = 0;
};

FLUX_SCRIPT_TEST(SuspicionsScript, "suspicions_", Script);

// One worker among several may say whatever it likes, for ever.
TEST(Suspicions, OneWordAmongSeveralCondemnsNobody) {
  Random random(7);
  for (int round = 0; round < 200; ++round) {
    const size_t workers = 2 + random.below(4), servers = 2 + random.below(5);
    Suspicions suspicions;
    TimeNs now = 0;
    for (int step = 0; step < 200; ++step) {
      now += static_cast<TimeNs>(random.below(kSecond));
      std::vector<ServerId> named;
      for (ServerId s = 0; s < servers; ++s)
        if (random.chance(0.5)) named.push_back(s);
      suspicions.tell({true, 1}, named, now);
      ASSERT_TRUE(suspicions.condemned(workers, servers, now).empty());
    }
  }
}

// Against a plain list of who has named whom since when.
TEST(Suspicions, AgreesWithAPlainCount) {
  Random random(8);
  constexpr TimeNs kBound = 50;
  constexpr size_t kWorkers = 3, kServers = 5;
  Suspicions suspicions({kBound, 10, 100});
  std::map<std::pair<bool, uint64_t>, std::map<ServerId, TimeNs>> since;
  uint64_t condemned = 0;
  TimeNs now = 0;
  for (int step = 0; step < 50000; ++step) {
    now += static_cast<TimeNs>(random.below(10));
    const bool is_worker = random.chance(0.6);
    const uint64_t id = random.below(is_worker ? kWorkers : kServers);
    auto& said = since[{is_worker, id}];
    std::vector<ServerId> named;
    for (ServerId s = 0; s < kServers; ++s) {
      const bool says = random.chance(said.contains(s) ? 0.97 : 0.15);
      if (!says || (!is_worker && id == s)) {
        said.erase(s);
        continue;
      }
      said.emplace(s, now);
      named.push_back(s);
    }
    suspicions.tell({is_worker, id}, named, now);
    std::vector<ServerId> expected;
    for (ServerId s = 0; s < kServers; ++s) {
      size_t yes[2] = {0, 0}, all[2] = {0, 0};
      for (const bool w : {false, true})
        for (uint64_t by = 0; by < (w ? kWorkers : kServers); ++by) {
          if (!w && by == s) continue;
          const auto& list = since[{w, by}];
          if (list.size() * 2 > kServers && list.contains(s)) continue;
          ++all[w];
          yes[w] += list.contains(s) && now - list.at(s) >= kBound ? 1 : 0;
        }
      const bool everyone = yes[1] > 0 && yes[1] == all[1];
      const bool most = yes[0] + yes[1] >= 2 && 2 * (yes[0] + yes[1]) > all[0] + all[1];
      if (everyone || most) expected.push_back(s);
    }
    ASSERT_EQ(suspicions.condemned(kWorkers, kServers, now), expected) << "step " << step;
    condemned += expected.size();
  }
  EXPECT_GT(condemned, 100U);
}

}  // namespace
}  // namespace flux
