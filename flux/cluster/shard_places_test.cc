// Runs tests/scripts/places_*.txt (base/script_test.h); balance of what is wanted.
//
//   places SHARDS TERM [REPLICAS]
//   join ID NAME | lose ID | drain ID | stay ID | suspect PRIMARY BACKUP | pin SHARD NAME
//   start                      every replica is created where it is wanted
//   adopt SHARD PRIMARY BACKUP TERM.N [unsure OP]     "-": none
//   at MS                      the time
//   next                       what is to be done
//   done STEP [OP] | refuse STEP | fail STEP
#include "flux/cluster/shard_places.h"

#include <cmath>
#include <optional>
#include <sstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "flux/base/script_test.h"

namespace flux {
namespace {

std::string id_text(ServerId id) {
  return id == kNoServer ? "-" : std::to_string(id);
}

class Script {
 public:
  std::string run_line(const std::string& line) {
    std::istringstream in(line);
    std::string verb;
    in >> verb;
    if (verb == "places") {
      uint32_t shards = 0;
      uint64_t term = 0;
      ShardPlacesOptions options;
      in >> shards >> term;
      uint32_t replicas = 0;
      if (in >> replicas) options.replicas = replicas;
      places_.emplace(shards, term, options);
      return "";
    }
    if (verb == "at") {
      TimeNs ms = 0;
      in >> ms;
      now_ = ms * kMillisecond;
      return "";
    }
    if (verb == "next") return next();
    if (verb == "done" || verb == "refuse" || verb == "fail") return end(verb, &in);
    event(verb, line, &in);
    return show();
  }

 private:
  void event(const std::string& verb, const std::string& line, std::istringstream* in) {
    uint32_t a = 0, b = 0;
    std::string name;
    if (verb == "start") {
      places_->place_all();
    } else if (verb == "join" && *in >> a >> name) {
      places_->joined(a, name);
    } else if (verb == "lose" && *in >> a) {
      places_->lost(a, now_);
    } else if (verb == "drain" && *in >> a) {
      places_->draining(a, true);
    } else if (verb == "stay" && *in >> a) {
      places_->draining(a, false);
    } else if (verb == "suspect" && *in >> a >> b) {
      places_->suspected(a, b, now_);
    } else if (verb == "pin" && *in >> a >> name) {
      places_->pin(a, name);
    } else if (verb == "adopt") {
      adopt(in);
    } else {
      ADD_FAILURE() << "unknown line: " << line;
    }
  }
  void adopt(std::istringstream* in) {
    uint32_t shard = 0;
    std::string primary, backup, unsure;
    ShardPlace place;
    char dot = 0;
    uint64_t op = 0;
    *in >> shard >> primary >> backup >> place.epoch.term >> dot >> place.epoch.n;
    const bool asks = static_cast<bool>(*in >> unsure >> op);
    if (primary != "-") place.primary = static_cast<ServerId>(std::stoul(primary));
    if (backup != "-") place.backup = static_cast<ServerId>(std::stoul(backup));
    places_->adopt(shard, place, asks, op);
  }
  std::string next() {
    std::string out;
    for (const PlaceStep& s : places_->next(now_))
      out +=
          fmt::format("> step {}: {} shard {} at {}{} under {}.{}{}\n", s.id, step_name(s.kind),
                      s.shard, s.server, s.other == kNoServer ? "" : ", other " + id_text(s.other),
                      s.epoch.term, s.epoch.n, s.op != 0 ? fmt::format(" op {}", s.op) : "");
    return out.empty() ? "> nothing\n" : out;
  }
  std::string end(const std::string& verb, std::istringstream* in) {
    uint64_t step = 0, op = 0;
    *in >> step >> op;
    const StepEnd how = verb == "done"     ? StepEnd::kDone
                        : verb == "refuse" ? StepEnd::kRefused
                                           : StepEnd::kUnknown;
    const PlaceChange change = places_->ended(step, how, op, now_);
    std::string out;
    if (change.route)
      out += fmt::format("> new route{}{}{}\n", change.primary ? ", another primary" : "",
                         change.promoted ? ", after a loss" : "", change.lossy ? ", lossy" : "");
    return out + show();
  }
  std::string show() {
    std::string out = ">";
    for (ShardId s = 0; s < places_->shards(); ++s) {
      const ShardPlace& p = places_->place(s);
      out += fmt::format(" {}/{}@{}.{}{}", id_text(p.primary), id_text(p.backup), p.epoch.term,
                         p.epoch.n, places_->served(s) ? "" : "!");
    }
    return out + "\n";
  }
  std::optional<ShardPlaces> places_;
  TimeNs now_ = kSecond;
};

FLUX_SCRIPT_TEST(ShardPlacesScript, "places_", Script);

// The share of each of S servers is a binomial draw: mean n/S. Five deviations hold for all of
// the names below; a hash that is not uniform misses them soon.
TEST(ShardPlaces, SharesAreBalanced) {
  for (const uint32_t shards : {256U, 4096U}) {
    for (uint32_t servers = 2; servers <= 40; servers += 3) {
      ShardPlaces places(shards, 1);
      for (uint32_t s = 0; s < servers; ++s) places.joined(s, "server-" + std::to_string(s));
      places.place_all();
      const double share = 1.0 / servers;
      const double deviation = std::sqrt(shards * share * (1 - share));
      for (uint32_t s = 0; s < servers; ++s) {
        EXPECT_NEAR(places.primaries(s), shards * share, 5 * deviation) << s << " of " << servers;
        EXPECT_NEAR(places.backups(s), shards * share, 5 * deviation) << s << " of " << servers;
      }
      EXPECT_EQ(places.without_backup(), 0U);
      EXPECT_TRUE(places.next(kSecond).empty());
    }
  }
}

// Who comes moves only its own share: every step is a copy to it.
TEST(ShardPlaces, OnlyTheShareOfWhoComesMoves) {
  ShardPlacesOptions options;
  options.copies_max = options.copies_per_server = 1000;
  ShardPlaces places(300, 1, options);
  for (uint32_t s = 0; s < 5; ++s) places.joined(s, "host" + std::to_string(s));
  places.place_all();
  places.joined(5, "host5");
  const auto steps = places.next(kSecond);
  EXPECT_NEAR(static_cast<double>(steps.size()), 300 * 2.0 / 6, 45);
  for (const PlaceStep& step : steps) {
    EXPECT_EQ(step.kind, StepKind::kCopy);
    EXPECT_EQ(step.other, 5U);
  }
}

TEST(ShardPlaces, NoServerIsABug) {
  ShardPlaces places(4, 1);
  EXPECT_TRUE(places.next(kSecond).empty()) << "they wait for one";
  EXPECT_EQ(places.unserved(), 4U);
  EXPECT_DEATH(places.place_all(), "no server");
}

}  // namespace
}  // namespace flux
