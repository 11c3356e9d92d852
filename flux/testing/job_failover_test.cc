// A job whose servers, workers and coordinators die and come back: real servers (job_world.h), the
// JobMaster, workers that follow the map and lease on. In the end every batch was applied exactly
// once on every shard: the audit of the closing checkpoint says so, and the counters of the rows.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <regex>
#include <string>

#include <gtest/gtest.h>

#include "flux/base/random.h"
#include "flux/checkpoint/store.h"
#include "flux/testing/job_world.h"
#include "flux/testing/odd_files.h"

namespace flux {
namespace {

struct TestWorker {
  std::string name;
  uint64_t boot = 0;
  WorkerId id = 0;
  uint64_t incarnation = 0;
  bool joined = false, joining = false, asking = false, ended = false, paused = false;
  uint64_t seq = 0;
  std::optional<LeaseAnswer> lease;
  uint32_t finished = 0;  // batches of the lease that are replicated
  std::shared_ptr<TestPush> push;
  std::vector<BatchId> told;  // applied, until an answer makes it certain that it is known
  TimeNs reported = 0, next = 0;
  uint64_t trained = 0;
};

class World : public JobEvents {
 public:
  explicit World(uint64_t seed = 1) : random(seed) {
    std::string folder = (std::filesystem::temp_directory_path() / "flux_failover_XXXXXX").string();
    plan.output = mkdtemp(folder.data());
    plan.name = "test";
    plan.sparse_shards = plan.all_shards = kTestShards;
    plan.passes = {"a"};
    plan.replicas = 2;
    plan.checkpoint_every_s = 1;
    plan.scan = [this](uint32_t, const std::atomic<bool>*) { return make_geometry(blocks); };
    plan.check_frozen = [](uint32_t, const Geometry&) { return Result<std::string>(""); };
    plan.scan_test = [](const std::atomic<bool>*) { return make_geometry(1); };
    options.servers = 3;
  }
  ~World() override {
    master.reset();
    std::filesystem::remove_all(plan.output);
  }
  void say(const std::string& line) override {
    said += fmt::format("{:.3f} {}\n", static_cast<double>(clock.now_ns()) * 1e-9, line);
  }
  void finished(const JobOutcome& out) override { outcome = out; }

  void start_master() {
    kill_master();
    options.incarnation = ++incarnations + 100;
    master_clock = std::make_unique<ProcessClock>(&clock);
    clocks.push_back(master_clock->alive);
    master = std::make_unique<JobMaster>(
        plan, options, master_clock.get(), master_clock.get(), files,
        [this](const std::string& address) -> std::shared_ptr<ServerAdminPort> {
          TestServer* server = servers.at(address);
          return server == nullptr ? nullptr : server->admin;
        },
        this);
    master->start();
    say("-- a coordinator starts");
  }
  void kill_master() {
    if (!master) return;
    say("-- the coordinator is killed");
    *master_clock->alive = false;
    master.reset();
    for (TestWorker& w : workers) w.joining = w.asking = false;
  }
  void kill_server(const std::string& name) {
    TestServer* server = servers.find(name);
    if (server == nullptr) return;
    say("-- kill " + name);
    *server->clock.alive = false;
    if (master) master->server_gone(name, server->boot, "its connection is closed");
  }
  void add_worker(const std::string& name) {
    workers.push_back({});
    workers.back().name = name;
    workers.back().boot = ++boots;
  }
  void kill_worker(size_t i) {
    say("-- kill " + workers[i].name);
    const TestWorker dead = workers[i];
    workers.erase(workers.begin() + static_cast<long>(i));
    if (master) master->worker_gone(dead.name, dead.boot, "its connection is closed");
  }

  // --- what processes do by themselves
  void drive_server(TestServer* s) {
    if (!master) return;
    if (s->id == kNoServer) {
      master->join(s->info(), [this, s](const Result<ServerJoinReply>& r) {
        if (r.is_ok()) s->id = r.value().server;
        if (r.status().code() == Code::kStale && s->alive()) {
          *s->clock.alive = false;
          servers.start(s->name);
        }
      });
      return;
    }
    const auto answered = [this, s](const Result<bool>& go) {
      if (go.is_ok()) {
        s->jobs->heard_coordinator();
        s->may_go = go.value();
      } else if (go.status().code() == Code::kNotFound) {
        s->id = kNoServer;  // another coordinator: joins with what it has
      } else if (go.status().code() == Code::kStale) {
        *s->clock.alive = false;  // taken for dead: comes back as a new process
        servers.start(s->name);
      }
    };
    master->report({s->id, s->boot, s->jobs->suspects(), 0}, answered);
  }
  void join_worker(TestWorker* w) {
    JoinRequest request;
    request.name = w->name;
    request.boot = w->boot;
    request.incarnation = w->incarnation;
    if (w->lease) {
      HeldBlock held;
      held.id = w->lease->lease.id;
      held.applied = w->finished;
      held.round = w->lease->round;
      request.held = {held};
    }
    w->joining = true;
    master->join(request, [this, name = w->name, boot = w->boot](const Result<JoinReply>& r) {
      TestWorker* me = find_worker(name, boot);
      if (me == nullptr) return;
      me->joining = false;
      if (r.status().code() == Code::kStale) {
        me->incarnation = 0;
        me->lease.reset();
        me->push.reset();
        me->told.clear();
      }
      if (!r.is_ok() || !r.value().waits.empty()) return;
      me->id = r.value().worker;
      me->incarnation = r.value().incarnation;
      me->joined = true;
    });
  }
  TestWorker* find_worker(const std::string& name, uint64_t boot) {
    for (TestWorker& w : workers)
      if (w.name == name && w.boot == boot) return &w;
    return nullptr;
  }
  void ask_lease(TestWorker* w) {
    LeaseRequest request;
    request.worker = w->id;
    request.seq = ++w->seq;
    request.applied = w->told;
    w->asking = true;
    const size_t sent = w->told.size();
    master->lease(request,
                  [this, sent, name = w->name, boot = w->boot](const Result<LeaseAnswer>& r) {
                    TestWorker* me = find_worker(name, boot);
                    if (me == nullptr) return;
                    me->asking = false;
                    if (r.status().code() == Code::kStale) me->joined = false;
                    if (!r.is_ok()) return;
                    me->told.erase(me->told.begin(), me->told.begin() + static_cast<long>(sent));
                    if (r.value().kind == LeaseAnswer::Kind::kEnd) {
                      me->ended = true;
                      LeaseRequest last;
                      last.worker = me->id;
                      master->leave(last, {}, Status::ok(), [](const Status&) {});
                    }
                    if (r.value().kind != LeaseAnswer::Kind::kBlock) return;
                    me->lease = r.value();
                    me->finished = r.value().lease.skip_mask;
                  });
  }
  void train(TestWorker* w) {
    const BlockLease& lease = w->lease->lease;
    if (!w->push) {
      if (clock.now_ns() < w->next) return;
      w->next = clock.now_ns() + pace;
      for (uint8_t b = 0; b < lease.batches && !w->push; ++b)
        if (((w->finished >> b) & 1) == 0)
          w->push =
              std::make_shared<TestPush>(&servers, w->incarnation, w->lease->geometry,
                                         BatchId{lease.id, b, static_cast<uint8_t>(lease.batches)});
      if (!w->push) {
        w->lease.reset();
        return;
      }
    }
    w->push->give_up(clock.now_ns(), [&](uint64_t boot) {
      for (TestServer* server : servers.live())
        if (server->boot == boot) return true;
      return false;
    });
    w->push->send(w->push, map);
    if (!w->push->done()) return;
    ++w->trained;
    w->told.push_back(w->push->id());
    w->finished |= 1U << w->push->id().batch;
    w->push.reset();
  }
  void drive_worker(TestWorker* w) {
    if (w->ended || w->paused) return;
    if (w->lease) train(w);
    if (!master) return;
    if (!w->joined) {
      if (!w->joining) join_worker(w);
      return;
    }
    if (clock.now_ns() - w->reported > 200 * kMillisecond) {
      w->reported = clock.now_ns();
      master->report(w->id, {},
                     [this, name = w->name, boot = w->boot](const Result<ReportAnswer>& r) {
                       TestWorker* me = find_worker(name, boot);
                       if (me != nullptr && r.status().code() == Code::kStale) me->joined = false;
                     });
    }
    if (w->joined && !w->lease && !w->asking) ask_lease(w);
  }
  void step() {
    if (++steps % 20 == 0)
      for (TestServer* s : servers.live()) drive_server(s);
    if (master)
      master->map([this](const Result<ClusterMap>& m) {
        if (m.value().route.size() != 0) map = m.value();
      });
    for (size_t i = 0; i < workers.size(); ++i) drive_worker(&workers[i]);
    clock.advance(5 * kMillisecond);
  }
  void run_for(TimeNs ns) {
    for (const TimeNs end = clock.now_ns() + ns; clock.now_ns() < end && !outcome;) step();
  }
  bool run_until(const std::function<bool()>& done, TimeNs limit = 120 * kSecond) {
    for (const TimeNs end = clock.now_ns() + limit; clock.now_ns() < end;) {
      if (done()) return true;
      step();
    }
    return done();
  }
  void start(uint32_t server_count, uint32_t worker_count) {
    options.servers = server_count;
    start_master();
    for (uint32_t i = 0; i < server_count; ++i) servers.start(fmt::format("server-{}", i));
    for (uint32_t i = 0; i < worker_count; ++i) add_worker(fmt::format("worker-{}", i));
  }
  bool training() { return master && master->status().state == "training"; }
  uint64_t trained() const {
    uint64_t sum = 0;
    for (const TestWorker& w : workers) sum += w.trained;
    return sum;
  }
  uint64_t all_batches() const { return 2ULL * blocks * plan.schedule.sections(); }
  // Runs to the end; every batch counted once on every shard.
  void expect_exactly_once(TimeNs limit = 120 * kSecond) {
    ASSERT_TRUE(run_until([&] { return outcome.has_value(); }, limit))
        << said << waits() << "state " << (master ? master->status().state : "no master");
    ASSERT_TRUE(outcome->status.is_ok()) << outcome->status.message() << "\n" << said;
    EXPECT_TRUE(outcome->complete);
    ASSERT_EQ(outcome->totals.occurrences.size(), 1U);
    EXPECT_EQ(outcome->totals.occurrences[0], all_batches() * kTestKeys) << said;
  }
  std::string waits() {
    std::string text;
    for (TestServer* s : servers.live())
      for (const auto& job : s->jobs->all())
        for (const ShardState& state : job->server()->holdings().shards)
          text += fmt::format("{} shard {} {} {}.{} op {} backup {}{}{}\n", s->name, state.shard,
                              role_name(state.role), state.epoch.term, state.epoch.n, state.op,
                              static_cast<int>(state.backup), state.sealed ? " sealed" : "",
                              job->server()->serves(state.shard) ? " serves" : "");
    for (const TestWorker& w : workers)
      text += fmt::format("{} joined {} lease {} finished {:x} push {}\n", w.name, w.joined,
                          w.lease ? to_string(w.lease->lease.id) : "-", w.finished,
                          w.push ? w.push->waits() : "-");
    if (master)
      for (const WaitStatus& w : master->status().waits) text += w.who + " " + w.what + "\n";
    for (const TestServer* s : servers.live())
      text += fmt::format("{} id {} boot {}\n", s->name, s->id, s->boot);
    return text;
  }

  JobPlan plan;
  JobMasterOptions options;
  Random random;
  uint32_t blocks = 30;
  TimeNs pace = 0;  // a batch takes a worker so long
  ManualClock clock;
  TestServers servers{&clock};
  std::unique_ptr<ProcessClock> master_clock;
  std::vector<std::shared_ptr<bool>> clocks;
  Files* files = &real_files();
  std::unique_ptr<JobMaster> master;
  std::vector<TestWorker> workers;
  ClusterMap map;
  std::string said;
  std::optional<JobOutcome> outcome;
  uint64_t incarnations = 0, boots = 0, steps = 0;
};

TEST(JobFailover, APrimaryThatIsLostIsReplacedByItsBackupAtOnce) {
  World world;
  world.start(3, 2);
  ASSERT_TRUE(world.run_until([&] { return world.training() && world.trained() > 8; }))
      << world.said;
  const JobStatus before = world.master->status();
  EXPECT_EQ(before.shards_without_backup, 0U);
  world.kill_server("server-1");
  world.clock.advance(3 * kMillisecond);
  EXPECT_EQ(world.master->status().shards_unserved, 0U) << world.said;
  world.expect_exactly_once();
  EXPECT_EQ(world.trained(), world.all_batches()) << "nothing is trained twice";
}

TEST(JobFailover, ServersThatGoBeforeTheTotalsAreCountedDoNotHoldTheEndUp) {
  World world;
  world.options.member_lease_ns = 60 * kSecond;
  world.start(2, 2);
  // This one asks for nothing and says no goodbye, for which the coordinator waits.
  ASSERT_TRUE(world.run_until([&] { return world.workers[1].joined; }));
  world.workers[1].paused = true;
  ASSERT_TRUE(world.run_until([&] { return world.master->status().state == "ending"; }))
      << world.said;
  world.kill_server("server-0");
  world.kill_server("server-1");
  ASSERT_TRUE(world.run_until([&] { return world.outcome.has_value(); },
                              2 * world.options.servers_deadline_ns))
      << world.said << world.waits();
  EXPECT_EQ(world.outcome->status.code(), Code::kUnavailable) << world.said;
  EXPECT_FALSE(world.outcome->model.empty()) << "what was trained is saved";
}

TEST(JobFailover, AServerThatComesBackGetsItsShareAgain) {
  World world;
  world.blocks = 200;
  world.start(3, 1);
  ASSERT_TRUE(world.run_until([&] { return world.training(); }));
  const auto shares = [&] {
    std::map<std::string, std::pair<uint32_t, uint32_t>> all;
    for (const ServerStatus& s : world.master->status().servers)
      all[s.name] = {s.shards, s.backups};
    return all;
  };
  const auto before = shares();
  world.kill_server("server-0");
  world.run_for(500 * kMillisecond);
  EXPECT_EQ(world.master->status().shards_without_backup, 0U) << world.said;
  world.servers.start("server-0");
  ASSERT_TRUE(world.run_until([&] { return shares() == before; }, 10 * kSecond)) << world.said;
  world.expect_exactly_once();
}

TEST(JobFailover, BothReplicasLostComeBackFromACheckpointAndTheRestIsTrainedAgain) {
  World world;
  world.blocks = 120;
  world.pace = 20 * kMillisecond;
  world.start(2, 2);
  ASSERT_TRUE(world.run_until([&] {
    return world.training() && !world.master->status().last_checkpoint.empty();
  })) << world.said;
  world.run_for(300 * kMillisecond);
  world.kill_server("server-0");
  world.kill_server("server-1");
  world.servers.start("server-0");
  world.servers.start("server-1");
  world.expect_exactly_once();
  EXPECT_GT(world.trained(), world.all_batches());
  EXPECT_NE(world.said.find("computed anew"), std::string::npos) << world.said;
  // It was made every second, and 0.3 s ago at least.
  std::smatch found;
  const std::regex age("have no replica left: .* from .*, ([0-9.]+) s old");
  ASSERT_TRUE(std::regex_search(world.said, found, age)) << world.said;
  EXPECT_GE(std::stod(found[1]), 0.3) << world.said;
  EXPECT_LE(std::stod(found[1]), 3.0) << world.said;
}

TEST(JobFailover, OneReplicaOnlyIsRestoredElsewhereAndNothingElseIsTouched) {
  World world;
  world.plan.replicas = 1;
  world.plan.schedule.epochs = 2;
  world.blocks = 40;
  world.start(2, 2);
  ASSERT_TRUE(world.run_until([&] { return world.training() && world.trained() > 90; }));
  world.kill_server("server-1");
  world.expect_exactly_once();
}

TEST(JobFailover, WithoutACheckpointLostShardsBeginAnewAndThatIsSaid) {
  World world;
  world.plan.replicas = 1;
  world.plan.checkpoint_every_s = 0;
  world.start(2, 1);
  ASSERT_TRUE(world.run_until([&] { return world.training() && world.trained() > 20; }));
  world.kill_server("server-0");
  world.expect_exactly_once();
  EXPECT_NE(world.said.find("there is no checkpoint yet, they begin anew"), std::string::npos);
}

TEST(JobFailover, ACoordinatorThatComesBackAdoptsWhatServersHave) {
  for (const bool log_too : {false, true}) {
    World world;
    world.blocks = 60;
    world.start(3, 2);
    ASSERT_TRUE(world.run_until([&] { return world.training() && world.trained() > 20; }));
    const uint64_t life = world.master->status().incarnation;
    world.kill_master();
    const uint64_t then = world.trained();
    world.run_for(200 * kMillisecond);
    EXPECT_GT(world.trained(), then) << "training goes on without it";
    if (log_too) std::filesystem::remove(world.plan.output + "/coordinator.log");
    world.start_master();
    world.expect_exactly_once();
    EXPECT_EQ(world.outcome->last.incarnation, life) << world.said;
    EXPECT_TRUE(world.outcome->last.taken_over);
    EXPECT_LE(world.trained(), world.all_batches() + 4) << world.said;
  }
}

// The coordinator was killed during a save: servers write files of it still.
TEST(JobFailover, AnUnfinishedCheckpointThatCannotBeRemovedIsNoReasonToEnd) {
  World world;
  world.blocks = 60;
  world.start(3, 2);
  ASSERT_TRUE(world.run_until([&] { return world.training() && world.trained() > 20; }));
  world.kill_master();
  const std::string unfinished = world.plan.output + "/checkpoints/000777";
  ASSERT_TRUE(real_files().make_folders(unfinished).is_ok());
  BusyFolder files(unfinished);
  world.files = &files;
  world.start_master();
  world.expect_exactly_once();
  EXPECT_NE(world.said.find("000777: not empty"), std::string::npos) << world.said;
}

// The servers have everything: whoever empties the disk within minutes loses nothing.
TEST(JobFailover, TheEndOfAPassWaitsForAFullDisk) {
  for (const TimeNs full_for : {60 * kSecond, 600 * kSecond}) {
    FullDisk files;
    World world;
    world.files = &files;
    world.start(3, 2);
    world.run_until([&] { return world.outcome.has_value(); }, full_for);
    files.full = false;
    EXPECT_GT(files.refused, 3);
    if (full_for < world.options.disk_patience_ns) {
      world.expect_exactly_once();
      continue;
    }
    ASSERT_EQ(world.outcome->status.code(), Code::kIo);
    EXPECT_NE(world.outcome->status.message().find("mend this and run again"), std::string::npos);
  }
}

TEST(JobFailover, ADrainedServerEndsEmptyAndMayGo) {
  World world;
  world.blocks = 200;
  world.start(3, 1);
  ASSERT_TRUE(world.run_until([&] { return world.training(); }));
  EXPECT_EQ(world.master->drain("nobody").code(), Code::kNotFound);
  EXPECT_TRUE(world.master->drain("server-2").is_ok());
  TestServer* drained = world.servers.find("server-2");
  ASSERT_TRUE(world.run_until([&] { return drained->may_go; }, 10 * kSecond)) << world.said;
  EXPECT_EQ(world.master->status().shards_without_backup, 0U);
  world.kill_server("server-2");
  EXPECT_EQ(world.master->status().failovers, 0U);
  EXPECT_TRUE(world.master->scale(-1, 1).is_ok());
  TestServer* second = world.servers.find("server-1");
  ASSERT_TRUE(world.run_until([&] { return second->may_go; }, 10 * kSecond)) << world.said;
  EXPECT_FALSE(world.master->drain("server-0").is_ok()) << "somebody must stay";
  world.expect_exactly_once();
}

TEST(JobFailover, AShardIsMovedWhereOperatorsWantIt) {
  World world;
  world.blocks = 200;
  world.start(2, 1);
  ASSERT_TRUE(world.run_until([&] { return world.training(); }));
  EXPECT_EQ(world.master->move(0, "server-9").code(), Code::kNotFound);
  EXPECT_EQ(world.master->move(99, "server-0").code(), Code::kInvalid);
  for (ShardId s = 0; s < kTestShards; ++s) EXPECT_TRUE(world.master->move(s, "server-1").is_ok());
  const auto moved = [&] {
    for (const ServerStatus& s : world.master->status().servers)
      if (s.name == "server-1" && s.shards == kTestShards) return true;
    return false;
  };
  ASSERT_TRUE(world.run_until(moved, 10 * kSecond)) << world.said;
  world.expect_exactly_once();
  EXPECT_EQ(world.trained(), world.all_batches());
}

TEST(JobFailover, ABackupThatCannotBeReachedIsDroppedAndTakenBackLater) {
  World world;
  world.blocks = 400;
  world.pace = 50 * kMillisecond;
  world.start(2, 1);
  ASSERT_TRUE(world.run_until([&] { return world.training(); }));
  world.servers.cuts.insert({"server-0", "server-1"});
  world.servers.cuts.insert({"server-1", "server-0"});
  const auto bare = [&] { return world.master->status().shards_without_backup == kTestShards; };
  ASSERT_TRUE(world.run_until(bare, 10 * kSecond)) << world.said;
  const uint64_t then = world.trained();
  world.run_for(kSecond);
  EXPECT_GT(world.trained(), then + 5);
  world.servers.cuts.clear();
  ASSERT_TRUE(world.run_until([&] { return world.master->status().shards_without_backup == 0; },
                              60 * kSecond))
      << world.said;
  world.expect_exactly_once();
}

class JobChaos : public testing::TestWithParam<uint64_t> {};
INSTANTIATE_TEST_SUITE_P(Seeds, JobChaos, testing::Range<uint64_t>(1, 41));

void disturb(World* world) {
  Random& random = world->random;
  const auto server = fmt::format("server-{}", random.below(3));
  switch (random.below(7)) {
    case 0:
    case 1:
      world->kill_server(server);
      break;
    case 2:
      if (!world->workers.empty()) world->kill_worker(random.below(world->workers.size()));
      break;
    case 3:
      if (world->master) world->kill_master();
      if (random.below(3) == 0) std::filesystem::remove(world->plan.output + "/coordinator.log");
      break;
    case 4:
      world->servers.cuts.insert({server, fmt::format("server-{}", random.below(3))});
      break;
    case 5:
      if (world->master) (void)world->master->drain(server);
      break;
    default:
      world->servers.cuts.clear();
  }
}

void mend(World* world) {
  for (int i = 0; i < 3; ++i) {
    const std::string name = fmt::format("server-{}", i);
    TestServer* server = world->servers.find(name);
    if (server != nullptr && server->may_go) {
      world->kill_server(name);
      server = nullptr;
    }
    if (server == nullptr) world->servers.start(name);
  }
  for (int i = 0; i < 2; ++i) {
    const std::string name = fmt::format("worker-{}", i);
    const bool there = std::any_of(world->workers.begin(), world->workers.end(),
                                   [&](const TestWorker& w) { return w.name == name; });
    if (!there) world->add_worker(name);
  }
  if (!world->master) world->start_master();
}

TEST_P(JobChaos, EveryBatchCountsOnce) {
  World world(GetParam());
  world.plan.replicas = GetParam() % 4 == 0 ? 1 : 2;
  world.plan.schedule.epochs = 2;
  world.plan.passes = {"a", "b"};
  world.plan.schedule.passes = 2;
  world.blocks = 60;
  world.pace = 30 * kMillisecond;
  world.start(3, 2);
  for (int i = 0; i < 40 && !world.outcome; ++i) {
    world.run_for(static_cast<TimeNs>(world.random.below(400)) * kMillisecond);
    if (world.outcome) break;
    disturb(&world);
    if (world.random.below(2) == 0) {
      world.run_for(static_cast<TimeNs>(world.random.below(300)) * kMillisecond);
      mend(&world);
    }
  }
  world.servers.cuts.clear();
  if (!world.outcome) mend(&world);
  ASSERT_TRUE(world.run_until([&] { return world.outcome.has_value(); }, 300 * kSecond))
      << world.said << world.waits();
  ASSERT_TRUE(world.outcome->status.is_ok()) << world.outcome->status.message() << world.said;
  EXPECT_TRUE(world.outcome->complete);
  ASSERT_EQ(world.outcome->totals.occurrences.size(), 1U);
  EXPECT_EQ(world.outcome->totals.occurrences[0], 2 * world.all_batches() * kTestKeys)
      << world.said;
}

}  // namespace
}  // namespace flux
