// For tests of the coordinator only: real servers in one process that can be killed, workers that
// push to them and lease from the JobMaster as it comes and goes, all on a clock that the test
// moves. Not thread-safe.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "flux/base/key.h"
#include "flux/coordinator/job_master.h"
#include "flux/server/local_admin.h"
#include "flux/server/server.h"

namespace flux {

class ManualClock final : public Executor, public Offload {
 public:
  TimeNs now_ns() const override { return now_; }
  void post(TimeNs delay_ns, std::function<void()> task) override {
    tasks_.emplace(std::make_pair(now_ + delay_ns, order_++), std::move(task));
  }
  void run(std::function<void()> work, std::function<void()> done) override {
    post(kMillisecond, [work, done] {
      work();
      done();
    });
  }
  void advance(TimeNs ns) {
    const TimeNs end = now_ + ns;
    while (!tasks_.empty() && tasks_.begin()->first.first <= end) {
      auto node = tasks_.extract(tasks_.begin());
      now_ = std::max(now_, node.key().first);
      node.mapped()();
    }
    now_ = end;
  }

 private:
  TimeNs now_ = kSecond;
  uint64_t order_ = 0;
  std::map<std::pair<TimeNs, uint64_t>, std::function<void()>> tasks_;
};

// A part of the clock that belongs to one process: it stops with it.
class ProcessClock final : public Executor, public Offload {
 public:
  explicit ProcessClock(ManualClock* clock) : clock_(clock) {}
  TimeNs now_ns() const override { return clock_->now_ns(); }
  void post(TimeNs delay_ns, std::function<void()> task) override {
    clock_->post(delay_ns, [alive = alive, task = std::move(task)] {
      if (*alive) task();
    });
  }
  void run(std::function<void()> work, std::function<void()> done) override {
    post(kMillisecond, [work, done] {
      work();
      done();
    });
  }
  const std::shared_ptr<bool> alive = std::make_shared<bool>(true);

 private:
  ManualClock* clock_;
};

constexpr uint32_t kTestShards = 4;
constexpr uint64_t kTestKeys = 16;  // in every batch

inline Geometry make_geometry(uint32_t blocks) {
  Geometry g;
  g.format = "criteo_tsv";
  g.batch_size = 10;
  g.files = {{"a.tsv", blocks * 50ULL, blocks * 20ULL, Packing::kPlain}};
  for (uint32_t b = 0; b < blocks; ++b) g.blocks.push_back({0, b * 50, b * 50 + 50, b * 20, 20});
  return g;
}

class TestServers;

// One process; a new one for every start.
class TestServer {
 public:
  TestServer(TestServers* all, ManualClock* clock, std::string name_of, uint64_t boot_of);
  bool alive() const { return *clock.alive; }
  ServerJoin info() const { return {name, boot, address, "host", 1}; }

  const std::string name, address;
  const uint64_t boot;
  ProcessClock clock;
  std::unique_ptr<ServerJobs> jobs;
  std::shared_ptr<LocalAdmin> admin;
  ServerId id = kNoServer;  // as the coordinator said; kNoServer: not joined
  bool may_go = false;      // and that it may go
};

class TestServers {
 public:
  explicit TestServers(ManualClock* clock) : clock_(clock) {}
  TestServer* start(const std::string& name) {
    processes_.push_back(std::make_unique<TestServer>(this, clock_, name, ++boots_));
    return processes_.back().get();
  }
  TestServer* at(const std::string& address) {
    for (const auto& p : processes_)
      if (p->address == address) return p.get();
    return nullptr;
  }
  // The live one of that name.
  TestServer* find(const std::string& name) {
    for (const auto& p : processes_)
      if (p->name == name && p->alive()) return p.get();
    return nullptr;
  }
  std::vector<TestServer*> live() {
    std::vector<TestServer*> all;
    for (const auto& p : processes_)
      if (p->alive()) all.push_back(p.get());
    return all;
  }
  std::set<std::pair<std::string, std::string>> cuts;  // names: forwards from one to the other

 private:
  ManualClock* clock_;
  uint64_t boots_ = 0;
  std::vector<std::unique_ptr<TestServer>> processes_;
};

// Forwards from one process to another: inside the call, or lost.
class TestLink final : public ReplicaPort {
 public:
  TestLink(TestServers* all, TestServer* from, std::string to)
      : all_(all), from_(from), to_(std::move(to)) {}
  void replicate(const ReplicateRequest& request,
                 std::function<void(const ReplicateReply&)> done) override {
    if (TestServer* to = there(); to != nullptr) return to->jobs->replicate(request, done);
    from_->clock.post(kMillisecond, [done] { done({Status(Code::kUnavailable, "lost"), {}}); });
  }
  void install(const InstallRequest& request, std::function<void(Status)> done) override {
    if (TestServer* to = there(); to != nullptr) return to->jobs->install(request, done);
    from_->clock.post(kMillisecond, [done] { done(Status(Code::kUnavailable, "lost")); });
  }

 private:
  TestServer* there() const {
    TestServer* to = all_->at(to_);
    const bool reaches = to != nullptr && to->alive() && from_->alive() &&
                         !all_->cuts.contains({from_->name, to->name});
    return reaches ? to : nullptr;
  }
  TestServers* all_;
  TestServer* from_;
  std::string to_;
};

inline TestServer::TestServer(TestServers* all, ManualClock* the_clock, std::string name_of,
                              uint64_t boot_of)
    : name(std::move(name_of)),
      address(fmt::format("{}#{}", name, boot_of)),
      boot(boot_of),
      clock(the_clock) {
  jobs = std::make_unique<ServerJobs>(
      [this, all](const OpenJob& job) -> Result<std::shared_ptr<Server>> {
        ServerOptions o;
        o.shards = kTestShards;
        o.tables.resize(1);
        o.tables[0].dim = 1;
        o.tables[0].init = "zero";
        o.tables[0].optimizer = {.rule = "sgd", .lr = 1.0F};
        o.incarnation = job.incarnation;
        o.places = job.places;
        o.self = job.self;
        o.executor = &clock;
        o.seed = boot;
        o.reach = [this, all](const std::string& to) {
          return std::make_shared<TestLink>(all, this, to);
        };
        return Server::create(o);
      });
  admin = std::make_shared<LocalAdmin>(jobs.get(), &clock);
}

// The rows of every batch: keys of all shards, each counted once per batch.
struct TestBatch {
  std::vector<uint64_t> keys;
  std::vector<uint32_t> begin{0}, counts;
  std::vector<float> gradient;
  std::vector<const float*> tables;

  TestBatch() {
    std::vector<std::vector<uint64_t>> by_shard(kTestShards);
    for (uint64_t key = 0; key < kTestKeys; ++key)
      by_shard[shard_of(key, kTestShards)].push_back(key);
    for (const auto& part : by_shard) {
      keys.insert(keys.end(), part.begin(), part.end());
      begin.push_back(static_cast<uint32_t>(keys.size()));
    }
    counts.assign(keys.size(), 1);
    gradient.assign(keys.size(), -1);
    tables = {gradient.data()};
  }
};

// Pushes one batch until every shard has it replicated, following the map.
class TestPush {
 public:
  TestPush(TestServers* servers, uint64_t incarnation, uint64_t geometry, BatchId id)
      : servers_(servers), claim_{incarnation, geometry, {id}, Verdict::kApplied} {
    for (ShardId s = 0; s < kTestShards; ++s) left_.insert(s);
  }
  bool done() const { return left_.empty(); }
  bool refused() const { return refused_; }
  // For messages: what is left, and who is asked.
  std::string waits() const {
    std::string text;
    for (const ShardId s : left_)
      text += fmt::format("{}{} ", s, waits_.contains(s) ? fmt::format("@{}", waits_.at(s)) : "");
    return text;
  }
  const BatchId& id() const { return claim_.ids[0]; }
  SyncStep step;  // round 0: not sync

  // Sends what is left by this map.
  void send(const std::shared_ptr<TestPush>& self, const ClusterMap& map) {
    std::map<ServerId, std::vector<ShardId>> by_server;
    for (const ShardId s : left_)
      if (!waits_.contains(s) && s < map.route.size()) by_server[map.route.server[s]].push_back(s);
    for (const auto& [server, shards] : by_server) {
      if (server >= map.servers.size()) continue;
      TestServer* to = servers_->at(map.servers[server]);
      if (to == nullptr || !to->alive()) continue;
      PushRequest push;
      push.claim = claim_;
      std::vector<ShardEpoch> epochs;
      for (const ShardId s : shards) epochs.push_back(map.route.epoch[s]);
      push.shards = shards;
      push.epochs = epochs;
      push.keys = {batch_.keys.data(), batch_.begin.data()};
      push.counts = batch_.counts.data();
      push.tables = batch_.tables;
      push.examples = 10;
      if (step.round != 0) push.step = &step;
      for (const ShardId s : shards) waits_[s] = to->boot;
      to->jobs->push(push, [self, shards = shards, to](const PushReply& reply) {
        self->answered(self, shards, to, reply);
      });
    }
  }
  // Calls to processes that are gone are over; others are asked again after a while.
  void give_up(TimeNs now, const std::function<bool(uint64_t boot)>& alive) {
    const bool late = now - sent_ > 2 * kSecond;
    if (late) sent_ = now;
    std::erase_if(waits_, [&](const auto& wait) { return late || !alive(wait.second); });
  }

 private:
  void answered(const std::shared_ptr<TestPush>& self, const std::vector<ShardId>& shards,
                TestServer* to, const PushReply& reply) {
    if (!to->alive()) return;
    std::vector<ShardId> has;
    for (const ShardAnswer& answer : reply.answers) {
      if (answer.answer == Answer::kApplied || answer.answer == Answer::kDuplicate)
        has.push_back(answer.shard);
      if (answer.answer == Answer::kStaleRound) refused_ = true;
    }
    for (const ShardId s : shards) waits_.erase(s);
    if (reply.receipt == 0) {
      for (const ShardId s : has) left_.erase(s);
      return;
    }
    for (const ShardId s : has) waits_[s] = to->boot;
    to->jobs->confirm(claim_.incarnation, reply.receipt, [self, has, to](const Status& status) {
      if (!to->alive()) return;
      for (const ShardId s : has) {
        self->waits_.erase(s);
        if (status.is_ok()) self->left_.erase(s);
      }
    });
  }

  TestServers* servers_;
  PushClaim claim_;
  TestBatch batch_;
  std::set<ShardId> left_;
  std::map<ShardId, uint64_t> waits_;  // shard -> boot of who is asked
  bool refused_ = false;
  TimeNs sent_ = 0;
};

}  // namespace flux
