// A port between servers: used by many threads at once over a real socket, and let go at any time.
#include "flux/client/remote_replica.h"

#include <atomic>
#include <cstring>
#include <future>
#include <map>
#include <mutex>
#include <thread>

#include <gtest/gtest.h>
#include <unistd.h>

#include "flux/api/test_batch_data.h"
#include "flux/api/verbs.h"
#include "flux/api/wire_replica.h"
#include "flux/client/message_answer.h"
#include "flux/rpc/listener.h"
#include "flux/rpc/socket_channel.h"

namespace flux {
namespace {

using namespace test;

// The other server: writes down what it gets; shard 3 refuses.
class Follower final : public Service {
 public:
  bool allows(PeerRole role, Verb verb) const override {
    return verb_allowed(VerbHome::kServer, caller_role(role), verb);
  }
  void handle(RpcRequest request, Responder respond) override {
    if (request.verb == static_cast<Verb>(ApiVerb::kInstall)) return install(request, &respond);
    WireReplicate got;
    const Status status = decode_replicate(request.control, request.payload, shape_of_life, &got);
    if (!status.is_ok()) return respond.fail(status);
    const ReplicateRequest& r = got.request;
    ReplicateReply reply;
    const std::lock_guard lock(mutex);
    ops[r.pass].push_back(r.ops[0]);
    if (has_rows(r)) sums += r.push.tables[1][0];
    if (r.push.shards[0] == 3) reply.refused.push_back({3, FollowAnswer::kOlderEpoch, {9, 9}});
    if (keep)
      kept.push_back(std::move(respond));
    else
      respond.reply(message_answer(encode_replicate_reply(reply)));
  }
  size_t kept_count() {
    const std::lock_guard lock(mutex);
    return kept.size();
  }

  std::mutex mutex;
  bool keep = false;
  std::vector<Responder> kept;
  std::map<uint32_t, std::vector<uint64_t>> ops;  // by pass: in the order they came
  double sums = 0;
  uint64_t installed = 0;

 private:
  void install(const RpcRequest& request, Responder* respond) {
    InstallRequest got;
    const Status status = decode_install(request.control, request.payload, &got);
    if (!status.is_ok()) return respond->fail(status);
    const std::lock_guard lock(mutex);
    for (const std::byte byte : got.bytes) installed += static_cast<uint64_t>(byte);
    if (got.part == 9) return respond->fail(Status(Code::kStale, "another copy"));
    respond->reply({});
  }
};

class RemoteReplicaTest : public testing::Test {
 protected:
  RemoteReplicaTest() {
    static std::atomic<int> count{0};
    address_ = fmt::format("unix:{}flux-replica-{}-{}", testing::TempDir(), ::getpid(), ++count);
    start();
    thread_ = std::thread([this] { loop_.run(); });
  }
  ~RemoteReplicaTest() override {
    port_.reset();
    std::promise<void> idle;  // what was posted before has run
    loop_.post(0, [&] { idle.set_value(); });
    idle.get_future().wait();
    loop_.stop();
    thread_.join();
    service_.kept.clear();
  }
  void start() {
    ListenerOptions options;
    options.addresses = {address_};
    listener_ = Listener::start(options, service_).value();
  }
  void open(RemoteReplicaOptions options = {}) {
    port_ = std::make_shared<RemoteReplica>(
        &loop_,
        [this]() -> std::unique_ptr<Channel> {
          SocketChannelOptions socket;
          socket.role = PeerRole::kServer;
          auto channel = SocketChannel::create(loop_, address_, socket);
          EXPECT_TRUE(channel.is_ok());
          return std::move(channel).value();
        },
        [](uint64_t incarnation) {
          return incarnation == kLife ? std::make_shared<const ModelShape>(kShape) : nullptr;
        },
        options);
  }
  // An operation without rows, of shard `shard`; `pass` tells callers apart.
  void open_pass(uint32_t pass, uint64_t op, ShardId shard,
                 std::function<void(const ReplicateReply&)> done) {
    const std::vector<ShardId> shards = {shard};
    const std::vector<ShardEpoch> epochs = {{1, 1}};
    const std::vector<uint64_t> ops = {op}, hashes = {op * 7};
    ReplicateRequest request;
    request.kind = OpKind::kOpenPass;
    request.push.claim.incarnation = kLife;
    request.push.shards = shards;
    request.push.epochs = epochs;
    request.ops = ops;
    request.hashes = hashes;
    request.pass = pass;
    request.geometry = 1;
    port_->replicate(request, std::move(done));
  }
  ReplicateReply wait(ShardId shard) {
    std::promise<ReplicateReply> got;
    open_pass(99, 1, shard, [&](const ReplicateReply& reply) { got.set_value(reply); });
    return got.get_future().get();
  }

  std::string address_;
  Follower service_;
  std::unique_ptr<Listener> listener_;
  IoLoop loop_;
  std::thread thread_;
  std::shared_ptr<RemoteReplica> port_;
};

TEST_F(RemoteReplicaTest, ManyThreadsEachInItsOrder) {
  constexpr uint32_t kThreads = 4;
  constexpr uint64_t kOps = 300;
  open();
  std::atomic<uint64_t> answered{0}, failed{0};
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      for (uint64_t op = 1; op <= kOps; ++op)
        open_pass(t, op, 0, [&](const ReplicateReply& reply) {
          failed += reply.status.is_ok() && reply.refused.empty() ? 0 : 1;
          ++answered;
        });
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(wait(0).status.is_ok());  // the last one: those before it are answered too
  EXPECT_EQ(answered.load(), kThreads * kOps);
  EXPECT_EQ(failed.load(), 0U);
  const std::lock_guard lock(service_.mutex);
  for (uint32_t t = 0; t < kThreads; ++t) {
    ASSERT_EQ(service_.ops[t].size(), kOps);
    for (uint64_t op = 1; op <= kOps; ++op) ASSERT_EQ(service_.ops[t][op - 1], op);
  }
}

TEST_F(RemoteReplicaTest, RowsRefusalsAndParts) {
  open();
  const std::vector<ShardId> shards = {3, 4};
  const BatchData data(1, 100, shards);
  const std::vector<uint64_t> ops = {5, 6}, hashes = {7, 8};
  ReplicateRequest request;
  request.push = data.push;
  request.ops = ops;
  request.hashes = hashes;
  std::promise<ReplicateReply> got;
  port_->replicate(request, [&](const ReplicateReply& reply) { got.set_value(reply); });
  const ReplicateReply reply = got.get_future().get();
  EXPECT_TRUE(reply.status.is_ok()) << reply.status.message();
  ASSERT_EQ(reply.refused.size(), 1U);
  EXPECT_EQ(reply.refused[0].why, FollowAnswer::kOlderEpoch);
  EXPECT_EQ(reply.refused[0].epoch, (ShardEpoch{9, 9}));
  EXPECT_EQ(service_.sums, data.narrow[data.begin[3]]);

  const std::vector<std::byte> bytes(1000, std::byte{3});
  for (const uint32_t part : {0U, 9U}) {
    std::promise<Status> status;
    port_->install({kLife, 1, {1, 1}, 5, 6, part, 10, bytes},
                   [&](Status s) { status.set_value(std::move(s)); });
    EXPECT_EQ(status.get_future().get().code(), part == 0 ? Code::kOk : Code::kStale);
  }
  EXPECT_EQ(service_.installed, 6000U);
  // A job that is not here, and a request that cannot be: said at once.
  request.push.claim.incarnation = 5;
  Status status;
  port_->replicate(request, [&](const ReplicateReply& r) { status = r.status; });
  EXPECT_EQ(status.code(), Code::kStale);
  request.push.claim.incarnation = kLife;
  request.ops = {};
  port_->replicate(request, [&](const ReplicateReply& r) { status = r.status; });
  EXPECT_EQ(status.code(), Code::kInvalid);
}

TEST_F(RemoteReplicaTest, ABreakFailsWhatIsUnderWayAndTheNextFindsItAgain) {
  open({.replicate_timeout_ns = 60 * kSecond});
  service_.keep = true;
  std::promise<ReplicateReply> lost;
  open_pass(0, 1, 0, [&](const ReplicateReply& reply) { lost.set_value(reply); });
  while (service_.kept_count() == 0) std::this_thread::yield();
  listener_.reset();  // as if the process had died
  EXPECT_EQ(lost.get_future().get().status.code(), Code::kUnavailable);
  EXPECT_EQ(wait(0).status.code(), Code::kUnavailable) << "nobody is there";
  service_.keep = false;
  start();
  int tries = 0;
  while (!wait(0).status.is_ok() && ++tries < 100) {
  }
  EXPECT_LT(tries, 100);
}

TEST_F(RemoteReplicaTest, LetGoWithCallsUnderWay) {
  open({.replicate_timeout_ns = 60 * kSecond});
  service_.keep = true;
  std::promise<ReplicateReply> lost;
  open_pass(0, 1, 0, [&](const ReplicateReply& reply) { lost.set_value(reply); });
  while (service_.kept_count() == 0) std::this_thread::yield();
  std::thread([port = std::move(port_)]() mutable { port.reset(); }).join();
  EXPECT_EQ(lost.get_future().get().status.code(), Code::kUnavailable);
}

}  // namespace
}  // namespace flux
