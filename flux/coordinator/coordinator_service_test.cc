// Every verb of a coordinator through stubs, channel and service to a port that writes down what it
// is asked; roles; who is gone when a connection closes; a network that loses.
#include "flux/coordinator/coordinator_service.h"

#include <map>
#include <optional>

#include <gtest/gtest.h>

#include "flux/client/coordinator_channel.h"
#include "flux/client/message_answer.h"
#include "flux/client/remote_job.h"
#include "flux/client/remote_registry.h"
#include "flux/client/test_executor.h"
#include "flux/rpc/chaos_channel.h"
#include "flux/rpc/loopback_channel.h"

namespace flux {
namespace {

// Answers at once or, if told, later; gives out blocks by number and knows repeated requests.
class FakeMaster final : public JobPort, public ServerRegistry {
 public:
  void join(JoinRequest request, std::function<void(Result<JoinReply>)> done) override {
    joins.push_back(request);
    if (!refuse.is_ok()) return done(refuse);
    JoinReply reply;
    const auto [at, fresh] = ids.try_emplace({request.name, request.boot}, ids.size() + 1);
    reply.worker = static_cast<WorkerId>(at->second);
    reply.job = {"job.yaml", "name: x", {{"a", "b"}}};
    reply.incarnation = 77;
    reply.map = map_;
    if (hold_joins) {
      held.emplace_back([done = std::move(done), reply] { done(reply); });
      return;
    }
    done(reply);
  }
  void lease(LeaseRequest request, std::function<void(Result<LeaseAnswer>)> done) override {
    leases.push_back(request);
    // As JobMaster does it: a repeated request gets the same block.
    const auto key = std::tuple(request.worker, request.lane, request.seq);
    const auto [at, fresh] = given.try_emplace(key, next_block);
    if (fresh) ++next_block;
    LeaseAnswer answer;
    answer.kind = LeaseAnswer::Kind::kBlock;
    answer.lease.id.block = at->second;
    answer.lease.batches = 4;
    done(answer);
  }
  void report(WorkerId worker, WorkerReport report,
              std::function<void(Result<ReportAnswer>)> done) override {
    reports.emplace_back(worker, report);
    done(ReportAnswer{true, 6});
  }
  void map(std::function<void(Result<ClusterMap>)> done) override { done(map_); }
  void geometry(uint64_t hash, std::function<void(Result<std::string>)> done) override {
    if (hash != 9) return done(error(Code::kNotFound, "no geometry {:x}", hash));
    done(std::string(100000, 'g'));  // longer than a control part
  }
  void leave(LeaseRequest last, WorkerReport report, Status why,
             std::function<void(Status)> done) override {
    if (left.contains(last.worker)) return done(Status(Code::kStale, "it has left"));
    left[last.worker] = why;
    reports.emplace_back(last.worker, report);
    done(Status::ok());
  }
  void join(ServerJoin request, std::function<void(Result<ServerJoinReply>)> done) override {
    server_joins.push_back(request);
    done(ServerJoinReply{static_cast<uint32_t>(request.boot), 100});
  }
  void report(ServerReport report, std::function<void(Result<bool>)> done) override {
    server_reports.push_back(report);
    if (report.boot == 0) return done(Status(Code::kStale, "taken for dead"));
    done(report.boot > 1);
  }

  Status refuse;
  bool hold_joins = false;
  std::vector<std::function<void()>> held;
  std::map<std::pair<std::string, uint64_t>, size_t> ids;
  ClusterMap map_{{{0, 0, 1}, {{1, 1}, {1, 1}, {1, 2}}}, {"tcp:a:1", "tcp:b:2"}, 3};
  std::vector<JoinRequest> joins;
  std::vector<LeaseRequest> leases;
  std::map<std::tuple<WorkerId, uint32_t, uint64_t>, uint32_t> given;
  uint32_t next_block = 0;
  std::vector<std::pair<WorkerId, WorkerReport>> reports;
  std::map<WorkerId, Status> left;
  std::vector<ServerJoin> server_joins;
  std::vector<ServerReport> server_reports;
};

class CoordinatorServiceTest : public testing::Test {
 protected:
  template <typename T, typename Call>
  Result<T> result_of(Call call) {
    std::optional<Result<T>> got;
    call([&](Result<T> result) { got = std::move(result); });
    EXPECT_TRUE(executor_.run_until([&] { return got.has_value(); }));
    return got.value_or(Status(Code::kIo, "no answer"));
  }
  Result<JoinReply> join(JobPort* job, const std::string& name, uint64_t boot) {
    return result_of<JoinReply>([&](auto done) {
      job->join({name, boot, 2, "host", 5, {}, 77, {{{0, 0, 0, 6}, 1, 3, false, {}}}},
                std::move(done));
    });
  }
  std::unique_ptr<LoopbackChannel> connect(PeerRole role, uint64_t connection) {
    return std::make_unique<LoopbackChannel>(executor_, service_,
                                             LoopbackOptions{role, "test", connection});
  }

  TestExecutor executor_;
  FakeMaster master_;
  Status admit_;
  std::vector<std::string> gone_;
  CoordinatorService service_{&master_,
                              &master_,
                              &executor_,
                              {500 * kMillisecond,
                               [this](const std::string& name, uint64_t boot) {
                                 gone_.push_back(fmt::format("worker {} {}", name, boot));
                               },
                               [this](const std::string& name, uint64_t boot) {
                                 gone_.push_back(fmt::format("server {} {}", name, boot));
                               },
                               [this] { return admit_; }}};
};

TEST_F(CoordinatorServiceTest, EveryVerbOfAWorker) {
  const auto link = connect(PeerRole::kWorker, 1);
  RemoteJob job(link.get(), &executor_, 1);
  const auto joined = join(&job, "worker-1", 8);
  ASSERT_TRUE(joined.is_ok());
  EXPECT_EQ(joined.value().worker, 1U);
  EXPECT_EQ(joined.value().incarnation, 77U);
  EXPECT_EQ(joined.value().job.sets.size(), 1U);
  EXPECT_EQ(joined.value().map.route.epoch, master_.map_.route.epoch);
  ASSERT_EQ(master_.joins.size(), 1U);
  EXPECT_EQ(master_.joins[0].threads, 2U);
  EXPECT_EQ(master_.joins[0].host, "host");
  EXPECT_EQ(master_.joins[0].incarnation, 77U);
  ASSERT_EQ(master_.joins[0].held.size(), 1U);
  EXPECT_EQ(master_.joins[0].held[0].id, (BlockId{0, 0, 0, 6}));

  const LeaseRequest request{1, 0, 1, {{{0, 0, 0, 7}, 1, 4}}, {}, {}};
  const auto leased =
      result_of<LeaseAnswer>([&](auto done) { job.lease(request, std::move(done)); });
  ASSERT_TRUE(leased.is_ok());
  EXPECT_EQ(leased.value().kind, LeaseAnswer::Kind::kBlock);
  EXPECT_EQ(leased.value().lease.batches, 4U);
  EXPECT_EQ(master_.leases[0].applied, request.applied);

  WorkerReport report;
  report.examples = 123;
  const auto told =
      result_of<ReportAnswer>([&](auto done) { job.report(1, report, std::move(done)); });
  ASSERT_TRUE(told.is_ok());
  EXPECT_TRUE(told.value().stop);
  EXPECT_EQ(told.value().map_version, 6U);
  EXPECT_EQ(master_.reports[0].second.examples, 123U);
  const auto map = result_of<ClusterMap>([&](auto done) { job.map(std::move(done)); });
  ASSERT_TRUE(map.is_ok());
  EXPECT_EQ(map.value().servers, master_.map_.servers);
  EXPECT_EQ(map.value().version, 3U);
  const auto geometry =
      result_of<std::string>([&](auto done) { job.geometry(9, std::move(done)); });
  ASSERT_TRUE(geometry.is_ok());
  EXPECT_EQ(geometry.value(), std::string(100000, 'g'));
  EXPECT_EQ(
      result_of<std::string>([&](auto done) { job.geometry(8, std::move(done)); }).status().code(),
      Code::kNotFound);
  std::optional<Status> left;
  job.leave(request, report, Status(Code::kIo, "disk full"),
            [&](Status status) { left = std::move(status); });
  ASSERT_TRUE(executor_.run_until([&] { return left.has_value(); }));
  EXPECT_TRUE(left->is_ok());
  EXPECT_EQ(master_.left.at(1).message(), "disk full");
  EXPECT_EQ(join(&job, "worker-1", 8).status().code(), Code::kStale) << "a copy that came late";
  EXPECT_EQ(master_.joins.size(), 1U);
  EXPECT_TRUE(join(&job, "worker-1", 9).is_ok()) << "it was started anew";
  master_.refuse = Status(Code::kInvalid, "dim 8 here, 4 there");
  EXPECT_EQ(join(&job, "worker-2", 1).status().message(), "dim 8 here, 4 there");
}

TEST_F(CoordinatorServiceTest, EveryVerbOfAServerAndNoOthers) {
  const auto link = connect(PeerRole::kServer, 1);
  RemoteRegistry registry(link.get(), &executor_, 1);
  const auto joined = result_of<ServerJoinReply>([&](auto done) {
    registry.join({"server-2", 2, "tcp:x:1", "host", 5}, std::move(done));
  });
  ASSERT_TRUE(joined.is_ok());
  EXPECT_EQ(joined.value().server, 2U);
  EXPECT_EQ(joined.value().report_every_ms, 100U);
  EXPECT_EQ(master_.server_joins[0].address, "tcp:x:1");
  const auto report = [&](uint64_t boot) {
    return result_of<bool>([&](auto done) {
      registry.report({2, boot, {4, 6}, 99}, std::move(done));
    });
  };
  EXPECT_TRUE(report(2).value());
  EXPECT_FALSE(report(1).value());
  EXPECT_EQ(report(0).status().code(), Code::kStale);
  EXPECT_EQ(master_.server_reports[0].suspects, (std::vector<ServerId>{4, 6}));
  EXPECT_EQ(master_.server_reports[0].rss_bytes, 99U);
  // A server is no worker, and a worker no server.
  RemoteJob job(link.get(), &executor_, 1);
  EXPECT_EQ(join(&job, "w", 1).status().code(), Code::kInvalid);
  const auto worker = connect(PeerRole::kWorker, 2);
  RemoteRegistry intruder(worker.get(), &executor_, 1);
  EXPECT_EQ(result_of<ServerJoinReply>([&](auto done) {
              intruder.join({"s", 2, "a", "h", 5}, std::move(done));
            })
                .status()
                .code(),
            Code::kInvalid);
  EXPECT_EQ(master_.joins.size(), 0U);
  EXPECT_EQ(master_.server_joins.size(), 1U);
}

TEST_F(CoordinatorServiceTest, DamagedRequestsAreRefusedWithoutAskingAnybody) {
  for (const ApiVerb verb :
       {ApiVerb::kJoin, ApiVerb::kLease, ApiVerb::kReport, ApiVerb::kGeometry, ApiVerb::kLeave,
        ApiVerb::kServerJoin, ApiVerb::kServerReport, ApiVerb::kMap, ApiVerb::kPull}) {
    RpcRequest request;
    request.verb = static_cast<Verb>(verb);
    request.control = "\xff\xff\xff";
    Status got;
    service_.handle(std::move(request),
                    Responder([&](Status status, const RpcAnswer&) { got = std::move(status); }));
    EXPECT_TRUE(got.code() == Code::kCorrupt || got.code() == Code::kInvalid) << verb_name(verb);
  }
  EXPECT_TRUE(master_.joins.empty() && master_.leases.empty() && master_.reports.empty());
}

TEST_F(CoordinatorServiceTest, WhoIsGoneWithAConnection) {
  auto one = connect(PeerRole::kWorker, 1), two = connect(PeerRole::kWorker, 2);
  auto three = connect(PeerRole::kServer, 3);
  auto job_one = std::make_unique<RemoteJob>(one.get(), &executor_, 1);
  RemoteJob job_two(two.get(), &executor_, 2);
  auto registry = std::make_unique<RemoteRegistry>(three.get(), &executor_, 3);
  ASSERT_EQ(join(job_one.get(), "a", 10).value().worker, 1U);
  ASSERT_EQ(join(job_one.get(), "b", 20).value().worker, 2U);
  ASSERT_EQ(join(job_one.get(), "c", 30).value().worker, 3U);
  ASSERT_TRUE(result_of<ServerJoinReply>([&](auto done) {
                registry->join({"s", 7, "x", "h", 1}, std::move(done));
              }).is_ok());
  // b is heard elsewhere before its connection goes, c after it; a is not heard again.
  (void)result_of<ReportAnswer>([&](auto done) { job_two.report(2, {}, std::move(done)); });
  job_one.reset();
  one.reset();
  executor_.run_for(100 * kMillisecond);
  (void)result_of<LeaseAnswer>([&](auto done) {
    job_two.lease({3, 0, 1, {}, {}, {}}, std::move(done));
  });
  executor_.run_for(399 * kMillisecond);
  EXPECT_TRUE(gone_.empty());
  executor_.run_for(2 * kMillisecond);
  EXPECT_EQ(gone_, std::vector<std::string>{"worker a 10"});
  // One that leaves is not reported, a server is.
  std::optional<Status> left;
  job_two.leave({2, 0, 2, {}, {}, {}}, {}, Status::ok(), [&](Status s) { left = std::move(s); });
  ASSERT_TRUE(executor_.run_until([&] { return left.has_value(); }));
  two.reset();
  registry.reset();
  three.reset();
  executor_.run_for(kSecond);
  EXPECT_EQ(gone_, (std::vector<std::string>{"worker a 10", "worker c 30", "server s 7"}));
}

TEST_F(CoordinatorServiceTest, AConnectionThatGoesWhileItsWorkerJoins) {
  master_.hold_joins = true;
  auto link = connect(PeerRole::kWorker, 1);
  auto job = std::make_unique<RemoteJob>(link.get(), &executor_, 1);
  job->join({"late", 4, 1, "", 0, {}, 0, {}}, [](const Result<JoinReply>&) {});
  ASSERT_TRUE(executor_.run_until([&] { return !master_.held.empty(); }));
  job.reset();
  link.reset();
  executor_.run_for(kMillisecond);
  master_.held[0]();
  executor_.run_for(kSecond);
  EXPECT_EQ(gone_, std::vector<std::string>{"worker late 4"});
}

// A standby answers for nobody, and whoever asks goes on to the next address.
TEST_F(CoordinatorServiceTest, AStandbySendsEverybodyOn) {
  FakeMaster idle;
  CoordinatorService standby(&idle, &idle, &executor_,
                             {.on_worker_gone = {}, .on_server_gone = {}, .admit = [] {
                                return Status(Code::kUnavailable, "stands by");
                              }});
  std::vector<std::unique_ptr<Channel>> channels;
  channels.push_back(std::make_unique<LoopbackChannel>(
      executor_, standby, LoopbackOptions{PeerRole::kWorker, "standby", 1}));
  channels.push_back(connect(PeerRole::kWorker, 2));
  CoordinatorChannel channel(std::move(channels));
  RemoteJob job(&channel, &executor_, 1);
  EXPECT_TRUE(join(&job, "w", 1).is_ok());
  EXPECT_EQ(channel.peer(), "test");
  EXPECT_TRUE(idle.joins.empty());
  EXPECT_EQ(master_.joins.size(), 1U);
  // The one that acted stands by from now on: nothing is answered until one acts again.
  admit_ = Status(Code::kUnavailable, "stands by");
  std::optional<Result<JoinReply>> got;
  job.join({"w", 1, 1, "", 0, {}, 0, {}}, [&](Result<JoinReply> r) { got = std::move(r); });
  executor_.run_for(2 * kSecond);
  EXPECT_FALSE(got.has_value());
  admit_ = Status::ok();
  ASSERT_TRUE(executor_.run_until([&] { return got.has_value(); }));
  EXPECT_TRUE(got->is_ok());
}

TEST_F(CoordinatorServiceTest, ANetworkThatLosesAndRepeatsLosesNoBlock) {
  ChaosChannel lossy(executor_, connect(PeerRole::kWorker, 1),
                     {.seed = 5, .request = 0.25, .reply = 0.25, .doubled = 0.2, .delay_ms = 30});
  RemoteJob job(&lossy, &executor_, 1);
  const auto joined = join(&job, "w", 1);
  ASSERT_TRUE(joined.is_ok()) << joined.status().message();
  EXPECT_EQ(joined.value().worker, 1U) << "a repeated join is the same one";
  for (uint32_t i = 0; i < 100; ++i) {
    const LeaseRequest request{1, 0, i + 1, {}, {}, {}};
    const auto leased =
        result_of<LeaseAnswer>([&](auto done) { job.lease(request, std::move(done)); });
    ASSERT_TRUE(leased.is_ok()) << leased.status().message();
    EXPECT_EQ(leased.value().lease.id.block, i) << "each block once, in order";
    const auto told =
        result_of<ReportAnswer>([&](auto done) { job.report(1, {}, std::move(done)); });
    ASSERT_TRUE(told.is_ok());
  }
  EXPECT_GT(master_.leases.size(), 110U) << "many were asked more than once";
  std::optional<Status> left;
  job.leave({1, 0, 101, {}, {}, {}}, {}, Status::ok(), [&](Status s) { left = std::move(s); });
  ASSERT_TRUE(executor_.run_until([&] { return left.has_value(); }));
  EXPECT_TRUE(left->is_ok()) << left->message();
}

}  // namespace
}  // namespace flux
