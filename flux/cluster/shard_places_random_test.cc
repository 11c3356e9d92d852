// ShardPlaces against servers of a model: each has replicas with roles, epochs and log heads, calls
// are lost on the way there or back, servers die, come and drain. The model writes all the time and
// knows what was acknowledged as replicated; nothing of that may be lost by a promotion that is not
// called lossy.
#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "flux/base/random.h"
#include "flux/cluster/shard_places.h"

namespace flux {
namespace {

struct Replica {
  ReplicaRole role = ReplicaRole::kNone;
  ShardEpoch epoch;
  ServerId backup = kNoServer;
  ServerId learner = kNoServer;  // of a primary
  bool sealed = false;
  uint64_t op = 0;
  uint64_t base = 0;  // of a primary: the log head when its epoch began
};

class World {
 public:
  World(uint64_t seed, uint32_t shards, uint32_t replicas)
      : random_(seed), acked_(shards), places_(shards, 3, options(replicas)), shards_(shards) {}

  static ShardPlacesOptions options(uint32_t replicas) {
    ShardPlacesOptions o;
    o.replicas = replicas;
    return o;
  }
  ServerId join() {
    const auto id = static_cast<ServerId>(servers_.size());
    servers_.emplace_back();
    live_.insert(id);
    places_.joined(id, fmt::format("server-{}", id % 5));
    return id;
  }
  void start() {
    places_.place_all();
    for (ShardId s = 0; s < shards_; ++s) {
      const ShardPlace& p = places_.place(s);
      servers_[p.primary][s] = {ReplicaRole::kPrimary, p.epoch, p.backup, kNoServer, false, 0, 0};
      if (p.backup != kNoServer) servers_[p.backup][s] = {ReplicaRole::kBackup, p.epoch};
    }
  }
  void kill(ServerId id) {
    live_.erase(id);
    servers_[id].clear();
    std::erase_if(calls_, [&](const auto& call) { return call.second.server == id; });
    places_.lost(id, now_);
  }
  // A server whose name nobody else has.
  void restart() {
    std::set<uint32_t> taken;
    for (const ServerId id : live_) taken.insert(id % 5);
    while (taken.contains(static_cast<uint32_t>(servers_.size() % 5))) servers_.emplace_back();
    join();
  }

  void take_steps() {
    for (const PlaceStep& step : places_.next(now_)) {
      ASSERT_TRUE(live_.contains(step.server)) << step_name(step.kind);
      const bool makes = step.kind != StepKind::kCopy && step.kind != StepKind::kSeal;
      if (makes && step.kind != StepKind::kForget) {
        const auto [at, is_new] = epochs_.try_emplace(step.epoch, step.shard);
        ASSERT_EQ(at->second, step.shard) << "an epoch was used for two changes";
      }
      calls_[step.id] = step;
    }
  }
  bool assign(ServerId server, ShardId s, ShardEpoch epoch, ReplicaRole role, ServerId backup,
              uint64_t at_op = ~0ULL) {
    const auto at = servers_[server].find(s);
    if (at == servers_[server].end()) return role == ReplicaRole::kNone;
    Replica& r = at->second;
    if (epoch < r.epoch) return false;
    if (epoch == r.epoch && r.role == role && r.backup == backup && !r.sealed) return true;
    if (epoch == r.epoch && r.role != ReplicaRole::kLearner) return false;
    if (at_op != ~0ULL && r.op != at_op) return false;
    if (role == ReplicaRole::kNone) {
      servers_[server].erase(at);
      forgotten_[{server, s}] = epoch;
      return true;
    }
    r.role = role;
    r.epoch = epoch;
    r.backup = backup;
    r.learner = backup;  // goes on forwarding to who becomes the backup
    r.sealed = false;
    r.base = r.op;
    return true;
  }

  // Does what was asked; the log head, or nothing if it is refused.
  std::optional<uint64_t> perform(const PlaceStep& step) {
    auto& here = servers_[step.server];
    const auto head = [&]() -> std::optional<uint64_t> { return here[step.shard].op; };
    switch (step.kind) {
      case StepKind::kPromote:
        if (!here.contains(step.shard)) return {};
        return assign(step.server, step.shard, step.epoch, ReplicaRole::kPrimary, kNoServer)
                   ? head()
                   : std::nullopt;
      case StepKind::kDrop:
      case StepKind::kAttach:
        if (!here.contains(step.shard)) return {};
        return assign(step.server, step.shard, step.epoch, ReplicaRole::kPrimary, step.other)
                   ? head()
                   : std::nullopt;
      case StepKind::kFollow:
        if (!here.contains(step.shard)) return {};
        return assign(step.server, step.shard, step.epoch, ReplicaRole::kBackup, kNoServer)
                   ? head()
                   : std::nullopt;
      case StepKind::kSwitch:
        if (!here.contains(step.shard)) return {};
        return assign(step.server, step.shard, step.epoch, ReplicaRole::kPrimary, step.other,
                      step.op)
                   ? head()
                   : std::nullopt;
      case StepKind::kSeal:
        if (!here.contains(step.shard) || here[step.shard].epoch != step.epoch) return {};
        here[step.shard].sealed = true;
        return head();
      case StepKind::kCopy: {
        if (!here.contains(step.shard) || here[step.shard].epoch != step.epoch) return {};
        if (!live_.contains(step.other)) return {};
        here[step.shard].learner = step.other;
        // A server remembers what it has forgotten: an older primary is told that its time is over.
        const bool in_office =
            places_.served(step.shard) && places_.place(step.shard).epoch == step.epoch;
        EXPECT_TRUE((!in_office || forgotten_[{step.other, step.shard}] <= step.epoch));
        Replica& copy = servers_[step.other][step.shard];
        if (copy.role == ReplicaRole::kPrimary || copy.epoch > step.epoch) return {};
        copy = {ReplicaRole::kLearner, step.epoch, kNoServer, kNoServer, false,
                here[step.shard].op,   0};
        return head();
      }
      case StepKind::kForget:
        assign(step.server, step.shard, step.epoch, ReplicaRole::kNone, kNoServer);
        return 0;
      case StepKind::kRestore:
        EXPECT_LT((forgotten_[{step.server, step.shard}]), (ShardEpoch{3, step.epoch.n - 1}));
        here[step.shard] = {ReplicaRole::kPrimary, step.epoch};
        acked_[step.shard] = 0;
        return 0;
    }
    return {};
  }

  void run_one_call(bool faulty) {
    if (calls_.empty()) return;
    auto at = calls_.begin();
    std::advance(at, static_cast<long>(random_.below(calls_.size())));
    const PlaceStep step = at->second;
    const bool lost_before = faulty && random_.below(8) == 0;
    const bool lost_after = faulty && random_.below(8) == 0;
    std::optional<uint64_t> head;
    if (!lost_before) head = perform(step);
    calls_.erase(at);
    const bool unknown = lost_before || lost_after;
    const auto end = unknown ? StepEnd::kUnknown : head ? StepEnd::kDone : StepEnd::kRefused;
    const PlaceChange change = places_.ended(step.id, end, head.value_or(0), now_);
    if (change.promoted && !change.lossy) {
      const Replica& r = servers_[places_.place(step.shard).primary][step.shard];
      ASSERT_GE(r.op, acked_[step.shard]) << "acknowledged operations were lost";
      ++promotions_;
    }
    if (change.lossy) {
      acked_[step.shard] = servers_[places_.place(step.shard).primary][step.shard].op;
      ++lossy_;
    }
  }

  // A push under the published epoch, forwarded as far as chance lets it.
  void write(ShardId s) {
    const ShardPlace& p = places_.place(s);
    if (!live_.contains(p.primary)) return;
    const auto at = servers_[p.primary].find(s);
    if (at == servers_[p.primary].end()) return;
    Replica& r = at->second;
    if (r.role != ReplicaRole::kPrimary || r.epoch != p.epoch || r.sealed) return;
    ++r.op;
    forward(s);
  }
  void forward(ShardId s) {
    const ShardPlace& p = places_.place(s);
    const auto at = servers_[p.primary].find(s);
    if (!live_.contains(p.primary) || at == servers_[p.primary].end()) return;
    Replica& r = at->second;
    if (r.role != ReplicaRole::kPrimary) return;
    for (const ServerId to : std::set<ServerId>{r.backup, r.learner}) {
      if (to == kNoServer || !live_.contains(to) || random_.below(3) == 0) continue;
      const auto there = servers_[to].find(s);
      if (there == servers_[to].end() || there->second.epoch > r.epoch) continue;
      Replica& f = there->second;
      if (f.role == ReplicaRole::kPrimary || f.op > r.op) continue;
      const bool told = f.epoch == r.epoch;
      if (!told && f.role == ReplicaRole::kBackup) continue;
      if (!told && to == r.backup) continue;  // it does not know the epoch yet
      f.op += random_.below(r.op - f.op + 1);
      // What came before the epoch is pushed again, and then needs the whole log to be there.
      if (told && to == r.backup && f.role == ReplicaRole::kBackup && f.op >= r.base)
        acked_[s] = std::max(acked_[s], f.op);
    }
    if (r.backup == kNoServer) acked_[s] = std::max(acked_[s], r.op);
  }

  void step(bool faulty) {
    now_ += static_cast<TimeNs>(random_.below(20)) * kMillisecond;
    take_steps();
    for (uint64_t n = random_.below(4); n > 0; --n) run_one_call(faulty);
    for (ShardId s = 0; s < shards_; ++s) random_.below(2) == 0 ? write(s) : forward(s);
  }
  void disturb() {
    const auto any = [&] {
      auto at = live_.begin();
      std::advance(at, static_cast<long>(random_.below(live_.size())));
      return *at;
    };
    switch (random_.below(8)) {
      case 0:
      case 1:
        if (live_.size() > 1) kill(any());
        break;
      case 2:
      case 3:
        if (live_.size() < 5) restart();
        break;
      case 4:
        places_.draining(any(), random_.below(2) == 0);
        break;
      case 5:
        places_.suspected(any(), any(), now_);
        break;
      default:
        places_.pin(static_cast<ShardId>(random_.below(shards_)),
                    random_.below(2) == 0 ? "" : fmt::format("server-{}", any() % 5));
    }
  }
  // Without faults it comes to rest where everything is wanted.
  void settle() {
    for (int i = 0; i < 20000 && !places_.settled(); ++i) {
      step(false);
      if (testing::Test::HasFatalFailure()) return;
    }
    ASSERT_TRUE(places_.settled());
    for (ShardId s = 0; s < shards_; ++s) {
      const ShardPlace& p = places_.place(s);
      ASSERT_TRUE(live_.contains(p.primary));
      const Replica& r = servers_[p.primary].at(s);
      ASSERT_EQ(r.role, ReplicaRole::kPrimary);
      ASSERT_EQ(r.epoch, p.epoch);
      ASSERT_FALSE(r.sealed);
      ASSERT_EQ(r.backup, p.backup);
      ASSERT_GE(r.op, acked_[s]);
      for (const ServerId id : live_) {
        const bool member = id == p.primary || id == p.backup;
        ASSERT_EQ(servers_[id].contains(s), member) << "server " << id << " shard " << s;
      }
      if (p.backup == kNoServer) continue;
      ASSERT_EQ(servers_[p.backup].at(s).role, ReplicaRole::kBackup);
      ASSERT_EQ(servers_[p.backup].at(s).epoch, p.epoch);
    }
  }

  Random random_;
  std::vector<uint64_t> acked_;
  ShardPlaces places_;
  const uint32_t shards_;
  TimeNs now_ = kSecond;
  std::vector<std::map<ShardId, Replica>> servers_;
  std::set<ServerId> live_;
  std::map<uint64_t, PlaceStep> calls_;
  std::map<ShardEpoch, ShardId> epochs_;
  std::map<std::pair<ServerId, ShardId>, ShardEpoch> forgotten_;
  uint64_t promotions_ = 0, lossy_ = 0;
};

void live_and_settle(uint64_t seed, uint32_t replicas, uint64_t* promotions, uint64_t* lossy) {
  World world(seed, 6, replicas);
  for (int i = 0; i < 3; ++i) world.join();
  world.start();
  for (int i = 0; i < 400; ++i) {
    world.step(true);
    if (testing::Test::HasFatalFailure()) return;
    if (world.random_.below(12) == 0) world.disturb();
  }
  for (const ServerId id : world.live_) world.places_.draining(id, false);
  world.settle();
  if (testing::Test::HasFatalFailure()) return;
  if (world.live_.size() > 1) {  // one is drained
    const ServerId drained = *world.live_.begin();
    world.places_.draining(drained, true);
    world.settle();
    if (testing::Test::HasFatalFailure()) return;
    ASSERT_TRUE(world.places_.empty(drained));
    ASSERT_TRUE(world.servers_[drained].empty());
  }
  *promotions += world.promotions_;
  *lossy += world.lossy_;
}

TEST(ShardPlacesRandom, NothingAcknowledgedIsLostAndItComesToRest) {
  uint64_t promotions = 0, lossy = 0;
  for (uint64_t seed = 0; seed < 600; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    live_and_settle(seed, seed % 4 == 0 ? 1 : 2, &promotions, &lossy);
    if (testing::Test::HasFatalFailure()) return;
  }
  EXPECT_GT(promotions, 1000U);
  EXPECT_GT(lossy, 100U);
}

}  // namespace
}  // namespace flux
