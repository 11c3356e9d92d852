// Two servers over real sockets, with their services, stubs and threads as processes have them:
// copies, forwards, second acknowledgements, take-over; and who may ask for what.
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <map>
#include <mutex>
#include <thread>

#include <gtest/gtest.h>

#include "flux/api/verbs.h"
#include "flux/client/remote_admin.h"
#include "flux/client/remote_replica.h"
#include "flux/client/remote_server.h"
#include "flux/rpc/io_loop.h"
#include "flux/rpc/listener.h"
#include "flux/rpc/socket_channel.h"
#include "flux/server/server_service.h"
#include "flux/server/test_batch.h"

namespace flux {
namespace {

using namespace test;  // NOLINT: the model of these tests

constexpr TimeNs kPatience = 20 * kSecond;

// One server process: its jobs, its service, a loop for forwards.
class Node {
 public:
  explicit Node(const std::string& address)
      : jobs_([this](const OpenJob& job) { return make(job); }), service_(&jobs_) {
    thread_ = std::thread([this] { loop_.run(); });
    ListenerOptions options;
    options.addresses = {address};
    options.threads = 2;
    listener_ = Listener::start(options, service_).value();
  }
  ~Node() {
    kill();
    jobs_.forget_all();
    std::promise<void> idle;
    loop_.post(0, [&] { idle.set_value(); });
    idle.get_future().wait();
    loop_.stop();
    thread_.join();
  }
  // What others see of a process that dies.
  void kill() { listener_.reset(); }
  Server* server() { return jobs_.find(kLife).value()->server(); }
  ServerService& service() { return service_; }
  ServerJobs& jobs() { return jobs_; }

 private:
  Result<std::shared_ptr<Server>> make(const OpenJob& job) {
    ServerOptions options = options_of(job);
    options.executor = &loop_;
    options.reach = [this](const std::string& address) { return reach(address); };
    FLUX_ASSIGN_OR_RETURN(auto server, Server::create(options));
    std::vector<float> initial(kShape.parameters);
    for (size_t i = 0; i < initial.size(); ++i) initial[i] = hash_uniform(i, 1, 2);
    server->init_dense(initial);
    return server;
  }
  std::shared_ptr<ReplicaPort> reach(const std::string& address) {
    return std::make_shared<RemoteReplica>(
        &loop_,
        [this, address]() -> std::unique_ptr<Channel> {
          SocketChannelOptions options;
          options.role = PeerRole::kServer;
          return std::move(SocketChannel::create(loop_, address, options)).value();
        },
        [this](uint64_t incarnation) { return service_.shape_of(incarnation); });
  }

  IoLoop loop_;
  std::thread thread_;
  ServerJobs jobs_;
  ServerService service_;
  std::unique_ptr<Listener> listener_;
};

class ReplicatedService : public testing::Test {
 protected:
  ReplicatedService() {
    std::string name = testing::TempDir() + "flux_pair_XXXXXX";
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
    for (const char* one : {"/a", "/b"}) {
      addresses_.push_back("unix:" + folder_ + one);
      nodes_.push_back(std::make_unique<Node>(addresses_.back()));
      workers_.push_back(connect(PeerRole::kWorker, nodes_.size() - 1));
      coordinators_.push_back(connect(PeerRole::kCoordinator, nodes_.size() - 1));
      servers_.push_back(std::make_unique<RemoteServer>(workers_.back().get(), kShape));
      admins_.push_back(
          std::make_unique<RemoteAdmin>(coordinators_.back().get(), &loop_, nodes_.size()));
    }
  }
  ~ReplicatedService() override {
    nodes_.clear();
    std::filesystem::remove_all(folder_);
  }
  std::unique_ptr<Channel> connect(PeerRole role, size_t node) {
    SocketChannelOptions options;
    options.role = role;
    return std::move(SocketChannel::create(loop_, addresses_[node], options)).value();
  }
  // Turns the loop until the call has answered.
  template <typename T, typename Call>
  T wait(Call call) {
    std::optional<T> got;
    call([&](T result) { got = std::move(result); });
    const TimeNs end = loop_.now_ns() + kPatience;
    while (!got && loop_.now_ns() < end) loop_.run_one_until(end);
    EXPECT_TRUE(got.has_value());
    return got.value_or(T(Status(Code::kIo, "no answer")));
  }
  using States = Result<std::vector<ShardState>>;
  PushReply push(size_t node, const BatchData& data) {
    std::optional<PushReply> got;
    servers_[node]->push(data.push, [&](const PushReply& reply) { got = reply; });
    const TimeNs end = loop_.now_ns() + kPatience;
    while (!got && loop_.now_ns() < end) loop_.run_one_until(end);
    return got.value_or(PushReply{});
  }
  Status confirm(size_t node, uint64_t receipt) {
    return wait<Status>(
        [&](auto done) { servers_[node]->confirm(kLife, receipt, std::move(done)); });
  }
  static AdminCall call(ShardEpoch epoch, uint64_t term = 1) {
    const std::vector<ShardId> shards = every_shard();
    return {kLife, term, shards, std::vector<ShardEpoch>(shards.size(), epoch)};
  }
  Assignments places(ShardEpoch epoch, ReplicaRole role, ServerId backup, uint64_t at = kAnyOp) {
    Assignments out;
    for (const ShardId id : every_shard()) out.shards.push_back({id, epoch, role, backup, at});
    out.servers = addresses_;
    return out;
  }
  std::vector<ShardState> assign(size_t node, const Assignments& wish) {
    const auto states = wait<States>([&](auto done) {
      admins_[node]->assign({kLife, 1, {}, {}}, wish, std::move(done));
    });
    EXPECT_TRUE(states.is_ok()) << states.status().message();
    for (size_t i = 0; i < wish.shards.size(); ++i) {
      EXPECT_EQ(states.value()[i].epoch, wish.shards[i].epoch);
      EXPECT_EQ(states.value()[i].role, wish.shards[i].role);
    }
    return states.value();
  }
  // Server 0 has everything, server 1 the job alone.
  void open() {
    for (uint32_t i = 0; i < 2; ++i) {
      OpenJob job{"job", {}, kLife, 1, i, i == 0 ? alone(every_shard()) : Assignments{}};
      ASSERT_TRUE(
          wait<Status>([&](auto done) { admins_[i]->open_job(job, std::move(done)); }).is_ok());
    }
    ASSERT_TRUE(wait<Status>([&](auto done) {
                  admins_[0]->open_pass(call({1, 1}), 0, kGeometry, std::move(done));
                }).is_ok());
  }
  void attach() {
    for (const ShardId shard : every_shard()) {
      const auto copied = wait<States>([&](auto done) {
        admins_[0]->copy({kLife, 1, {shard}, {{1, 1}}}, 1, addresses_[1], std::move(done));
      });
      ASSERT_TRUE(copied.is_ok()) << copied.status().message();
    }
    assign(0, places({1, 2}, ReplicaRole::kPrimary, 1));
    assign(1, places({1, 2}, ReplicaRole::kBackup, kNoServer));
  }

  std::string folder_;
  std::vector<std::string> addresses_;
  std::vector<std::unique_ptr<Node>> nodes_;
  IoLoop loop_;
  std::vector<std::unique_ptr<Channel>> workers_, coordinators_;
  std::vector<std::unique_ptr<RemoteServer>> servers_;
  std::vector<std::unique_ptr<RemoteAdmin>> admins_;
};

TEST_F(ReplicatedService, WhatIsConfirmedIsAtTheBackupAndServedFromThere) {
  open();
  const PushReply before = push(0, BatchData(1, 0));
  ASSERT_EQ(before.answers.size(), kShape.all_shards());
  EXPECT_EQ(before.receipt, 0U) << "no backup: nothing to wait for";
  EXPECT_EQ(before.answers[0].epoch, (ShardEpoch{1, 1}));
  attach();
  for (uint32_t i = 1; i < 10; ++i) {
    BatchData data(i + 1, i);
    for (ShardEpoch& epoch : data.epochs) epoch = {1, 2};
    const PushReply reply = push(0, data);
    ASSERT_EQ(reply.answers.size(), kShape.all_shards()) << reply.status.message();
    for (const ShardAnswer& answer : reply.answers) {
      EXPECT_EQ(answer.answer, Answer::kApplied) << answer_name(answer.answer);
      EXPECT_EQ(answer.epoch, (ShardEpoch{1, 2}));
    }
    if (reply.receipt == 0) continue;
    EXPECT_TRUE(confirm(0, reply.receipt).is_ok());
  }
  const std::vector<ShardId> all = every_shard();
  EXPECT_EQ(nodes_[0]->server()->content_hash(all), nodes_[1]->server()->content_hash(all));
  EXPECT_EQ(confirm(0, 12345).code(), Code::kStale) << "a receipt that nobody gave";
  const auto holdings =
      wait<Result<Holdings>>([&](auto done) { admins_[1]->holdings("job", 1, std::move(done)); });
  ASSERT_TRUE(holdings.is_ok());
  EXPECT_EQ(holdings.value().incarnation, kLife);
  EXPECT_EQ(holdings.value().self, 1U);
  ASSERT_EQ(holdings.value().shards.size(), kShape.all_shards());
  for (const ShardState& state : holdings.value().shards) {
    EXPECT_EQ(state.role, ReplicaRole::kBackup);
    EXPECT_TRUE(state.complete);
  }
  // The primary dies: its calls fail at once, and its backup takes its place.
  nodes_[0]->kill();
  BatchData next(20, 10);
  for (ShardEpoch& epoch : next.epochs) epoch = {1, 2};
  EXPECT_EQ(push(0, next).status.code(), Code::kUnavailable);
  assign(1, places({1, 3}, ReplicaRole::kPrimary, kNoServer));
  for (ShardEpoch& epoch : next.epochs) epoch = {1, 3};
  const PushReply taken = push(1, next);
  ASSERT_EQ(taken.answers.size(), kShape.all_shards()) << taken.status.message();
  for (const ShardAnswer& answer : taken.answers) EXPECT_EQ(answer.answer, Answer::kApplied);
  EXPECT_EQ(taken.receipt, 0U);
}

// The backup is gone: a confirm waits, and is void once the primary goes on without it.
TEST_F(ReplicatedService, AReceiptIsVoidWhenItsBackupIsGivenUp) {
  open();
  attach();
  nodes_[1]->kill();
  BatchData data(2, 1);
  for (ShardEpoch& epoch : data.epochs) epoch = {1, 2};
  const PushReply reply = push(0, data);
  ASSERT_EQ(reply.answers[0].answer, Answer::kApplied);
  ASSERT_NE(reply.receipt, 0U);
  std::optional<Status> told;
  servers_[0]->confirm(kLife, reply.receipt, [&](Status status) { told = std::move(status); });
  assign(0, places({1, 3}, ReplicaRole::kPrimary, kNoServer));
  const TimeNs end = loop_.now_ns() + kPatience;
  while (!told && loop_.now_ns() < end) loop_.run_one_until(end);
  ASSERT_TRUE(told.has_value());
  EXPECT_EQ(told->code(), Code::kStale) << told->message();
  for (ShardEpoch& epoch : data.epochs) epoch = {1, 3};
  const PushReply again = push(0, data);
  EXPECT_EQ(again.answers[0].answer, Answer::kDuplicate);
  EXPECT_EQ(again.receipt, 0U);
}

TEST_F(ReplicatedService, SealedUnderOneServerAndOpenedUnderTheOther) {
  open();
  attach();
  const auto sealed = wait<States>([&](auto done) {
    admins_[0]->seal(call({1, 2}), std::move(done));
  });
  ASSERT_TRUE(sealed.is_ok()) << sealed.status().message();
  BatchData data(2, 1);
  for (ShardEpoch& epoch : data.epochs) epoch = {1, 2};
  EXPECT_EQ(push(0, data).answers.at(0).answer, Answer::kNotServing);
  Assignments next = places({1, 3}, ReplicaRole::kPrimary, kNoServer);
  for (size_t i = 0; i < next.shards.size(); ++i) {
    EXPECT_TRUE(sealed.value()[i].sealed);
    next.shards[i].at_op = sealed.value()[i].op;
  }
  assign(1, next);
  for (ShardEpoch& epoch : data.epochs) epoch = {1, 3};
  EXPECT_EQ(push(1, data).answers.at(0).answer, Answer::kApplied);
}

TEST_F(ReplicatedService, OlderTermsAndOtherServersAreRefused) {
  open();
  ASSERT_TRUE(wait<Result<Holdings>>([&](auto done) {
                admins_[0]->holdings("job", 5, std::move(done));
              }).is_ok());
  EXPECT_EQ(wait<Status>([&](auto done) {
              admins_[0]->close_below(call({1, 1}), 1, std::move(done));
            }).code(),
            Code::kStale);
  // A process that has joined anew, or was started anew, opens no job for the one that was there:
  // its shards would be primaries without a history.
  nodes_[1]->service().forget_all();
  EXPECT_TRUE(nodes_[1]->jobs().all().empty());
  nodes_[1]->service().set_boot(7);
  RemoteAdminOptions once;
  once.slow.tries_max = 1;
  RemoteAdmin hasty(coordinators_[1].get(), &loop_, 9, once);
  OpenJob job{"job", {}, kLife, 1, 1, {}, 6};
  EXPECT_EQ(wait<Status>([&](auto done) { hasty.open_job(job, std::move(done)); }).code(),
            Code::kUnavailable);
  EXPECT_TRUE(nodes_[1]->jobs().all().empty());
  job.boot = 7;
  EXPECT_TRUE(wait<Status>([&](auto done) { hasty.open_job(job, std::move(done)); }).is_ok())
      << "the incarnation may be opened again by who began anew";
}

// Every verb of a server is refused to every role but one, before anything is read.
TEST_F(ReplicatedService, VerbsBelongToOneRole) {
  open();
  for (const PeerRole role : {PeerRole::kAdmin, PeerRole::kCoordinator, PeerRole::kServer,
                              PeerRole::kWorker, PeerRole::kViewer}) {
    const auto channel = connect(role, 0);
    for (const VerbRule& rule : kVerbRules) {
      std::optional<Status> got;
      RpcCall rpc;
      rpc.verb = static_cast<Verb>(rule.verb);
      rpc.control = "\xff\xff";
      rpc.done = [&](Status status, const RpcReply&) { got = std::move(status); };
      channel->call(std::move(rpc));
      const TimeNs end = loop_.now_ns() + kPatience;
      while (!got && loop_.now_ns() < end) loop_.run_one_until(end);
      ASSERT_TRUE(got.has_value());
      const bool mine = rule.home == VerbHome::kServer &&
                        static_cast<uint8_t>(rule.caller) == static_cast<uint8_t>(role);
      EXPECT_EQ(got->code(), mine ? Code::kCorrupt : Code::kInvalid)
          << rule.name << " by " << peer_role_name(role) << ": " << got->message();
    }
  }
}

}  // namespace
}  // namespace flux
