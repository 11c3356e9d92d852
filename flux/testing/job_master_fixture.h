// For tests of JobMaster only: a coordinator on a clock of the test's own, with real servers
// (job_world.h), real files, checkpoints and audits; workers are played by the test.
// Not thread-safe.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "flux/coordinator/job_master.h"
#include "flux/testing/job_world.h"

namespace flux {

class JobMasterTest : public testing::Test, public JobEvents {
 protected:
  JobMasterTest() {
    std::string folder = (std::filesystem::temp_directory_path() / "flux_master_XXXXXX").string();
    plan_.output = mkdtemp(folder.data());
    plan_.name = "test";
    plan_.sparse_shards = plan_.all_shards = kTestShards;
    plan_.passes = {"a"};
    plan_.checkpoint_every_s = 0;
    plan_.scan = [this](uint32_t, const std::atomic<bool>*) { return make_geometry(blocks_); };
    plan_.check_frozen = [](uint32_t, const Geometry&) { return Result<std::string>(""); };
    plan_.scan_test = [](const std::atomic<bool>*) { return make_geometry(1); };
    options_.servers = 2;
    options_.member_lease_ns = 5 * kSecond;
  }
  ~JobMasterTest() override { std::filesystem::remove_all(plan_.output); }

  void say(const std::string& line) override { said_ += line + "\n"; }
  void finished(const JobOutcome& outcome) override { outcome_ = outcome; }

  // A coordinator over servers that are started anew; joins them unless told not to.
  void begin(bool join_servers = true) {
    for (TestServer* server : servers_.live()) *server->clock.alive = false;
    for (uint32_t i = 0; i < options_.servers; ++i) servers_.start(fmt::format("server-{}", i));
    start_master();
    if (join_servers) join_all();
    clock_.advance(100 * kMillisecond);
    keep_alive();
  }
  // Another process of the coordinator; the one before is gone.
  void start_master() {
    if (master_clock_) *master_clock_->alive = false;
    master_.reset();
    outcome_.reset();
    options_.incarnation = ++incarnation_;
    master_clock_ = std::make_unique<ProcessClock>(&clock_);
    master_ = std::make_unique<JobMaster>(
        plan_, options_, master_clock_.get(), master_clock_.get(), &real_files(),
        [this](const std::string& address) -> std::shared_ptr<ServerAdminPort> {
          TestServer* server = servers_.at(address);
          return server == nullptr ? nullptr : server->admin;
        },
        this);
    master_->start();
    clock_.advance(20 * kMillisecond);
  }
  void join_all() {
    for (TestServer* server : servers_.live()) join_server(server);
  }
  void join_server(TestServer* server) {
    server->id = kNoServer;
    master_->join(server->info(), [server](const Result<ServerJoinReply>& r) {
      if (r.is_ok()) server->id = r.value().server;
    });
    clock_.advance(5 * kMillisecond);
  }
  void keep_alive() {
    for (TestServer* server : servers_.live()) {
      ServerReport report;
      report.server = server->id;
      report.boot = server->boot;
      report.suspects = server->jobs->suspects();
      if (fill_report_) fill_report_(*server, &report);
      if (server->id != kNoServer)
        master_->report(report, [server](const Result<bool>& go) {
          if (go.is_ok()) server->jobs->heard_coordinator();
          server->may_go = go.is_ok() && go.value();
        });
    }
  }
  void pass_time(TimeNs ns) {
    for (; ns > 0; ns -= 200 * kMillisecond) {
      keep_alive();
      clock_.advance(std::min(ns, 200 * kMillisecond));
    }
  }
  void kill(const std::string& name) {
    TestServer* server = servers_.find(name);
    ASSERT_NE(server, nullptr);
    *server->clock.alive = false;
    master_->server_gone(name, server->boot, "its connection is closed");
  }
  WorkerId join(const std::string& name, uint64_t boot = 1, uint32_t threads = 1) {
    Result<JoinReply> reply = invalid("no answer");
    JoinRequest request;
    request.name = name;
    request.boot = boot;
    request.threads = threads;
    master_->join(request, [&](Result<JoinReply> r) { reply = std::move(r); });
    EXPECT_TRUE(reply.is_ok()) << reply.status().message();
    return reply.is_ok() ? reply.value().worker : 0;
  }
  // Asks and waits a little; kUnavailable: held back.
  Result<LeaseAnswer> ask(LeaseRequest request, TimeNs wait = 100 * kMillisecond) {
    auto answer = std::make_shared<Result<LeaseAnswer>>(error(Code::kUnavailable, "held back"));
    master_->lease(std::move(request), [answer](Result<LeaseAnswer> a) { *answer = std::move(a); });
    clock_.advance(wait);
    return *answer;
  }
  Result<LeaseAnswer> lease(WorkerId worker, std::vector<BatchId> applied = {}, uint32_t lane = 0) {
    LeaseRequest request;
    request.worker = worker;
    request.lane = lane;
    request.seq = ++seq_[{worker, lane}];
    request.applied = std::move(applied);
    return ask(request);
  }
  static std::vector<BatchId> batches(const BlockLease& lease) {
    std::vector<BatchId> ids;
    for (uint8_t b = 0; b < lease.batches; ++b)
      if (((lease.skip_mask >> b) & 1) == 0)
        ids.push_back({lease.id, b, static_cast<uint8_t>(lease.batches)});
    return ids;
  }
  // Pushes until everything of it is replicated, or not for long.
  std::vector<BatchId> train(const LeaseAnswer& answer) {
    std::vector<BatchId> ids = batches(answer.lease);
    for (const BatchId& id : ids) {
      const uint64_t life = master_->status().incarnation;
      const auto push = std::make_shared<TestPush>(&servers_, life, answer.geometry, id);
      if (answer.round.id != 0) {
        push->step = sync_step(answer.round, id.batch);
        push->step.examples = 10 * push->step.ids.size();
      }
      for (int i = 0; i < 400 && !push->done(); ++i) {
        ClusterMap map;
        master_->map([&](const Result<ClusterMap>& m) { map = m.value(); });
        push->give_up(clock_.now_ns(), [&](uint64_t boot) {
          for (TestServer* server : servers_.live())
            if (server->boot == boot) return true;
          return false;
        });
        push->send(push, map);
        if (push->done()) break;
        keep_alive();
        clock_.advance(10 * kMillisecond);
      }
      EXPECT_TRUE(push->done()) << to_string(id) << "\n" << said_;
    }
    return ids;
  }
  // Trains until the job has ended; returns how many batches it took.
  size_t train_all(WorkerId worker, std::vector<BatchId> done = {}) {
    size_t trained = done.size();
    for (int i = 0; i < 200 && !outcome_; ++i) {
      keep_alive();
      const auto answer = lease(worker, done);
      done.clear();
      if (!answer.is_ok()) continue;
      if (answer.value().kind == LeaseAnswer::Kind::kEnd) break;
      if (answer.value().kind != LeaseAnswer::Kind::kBlock) continue;
      done = train(answer.value());
      trained += done.size();
    }
    LeaseRequest last;
    last.worker = worker;
    master_->leave(last, {}, Status::ok(), [](const Status&) {});
    clock_.advance(kSecond);
    return trained;
  }
  // One worker after the other, each of which dies of a batch; returns how many did.
  int train_with_poison(const BatchId& poison) {
    std::vector<BatchId> done;
    int deaths = 0;
    WorkerId w = join("w", boot_);
    for (uint64_t i = 0; i < 400 && !outcome_; ++i) {
      keep_alive();
      const auto answer = lease(w, done);
      done.clear();
      if (!answer.is_ok() || answer.value().kind != LeaseAnswer::Kind::kBlock) continue;
      const auto ids = batches(answer.value().lease);
      if (std::find(ids.begin(), ids.end(), poison) == ids.end()) {
        done = train(answer.value());
        continue;
      }
      ++deaths;
      master_->worker_gone("w", boot_, "killed by signal 11");
      w = join("w", ++boot_);
    }
    pass_time(options_.leave_deadline_ns + kSecond);  // it does not say goodbye
    return deaths;
  }
  bool ended_well() const { return outcome_ && outcome_->status.is_ok(); }

  JobPlan plan_;
  JobMasterOptions options_;
  std::function<void(const TestServer&, ServerReport*)> fill_report_;
  uint32_t blocks_ = 5;
  uint64_t incarnation_ = 100;
  ManualClock clock_;
  TestServers servers_{&clock_};
  std::unique_ptr<ProcessClock> master_clock_;
  std::unique_ptr<JobMaster> master_;
  std::map<std::pair<WorkerId, uint32_t>, uint64_t> seq_;
  std::string said_;
  uint64_t boot_ = 1;
  std::optional<JobOutcome> outcome_;
};

}  // namespace flux
