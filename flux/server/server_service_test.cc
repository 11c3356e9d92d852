// Every verb of a server through stubs, a channel and the service, against the Server called
// straight; zero copies; repeated and delayed requests; a network that loses.
#include "flux/server/server_service.h"

#include <cstdlib>
#include <filesystem>
#include <optional>

#include <gtest/gtest.h>

#include "flux/checkpoint/store.h"
#include "flux/client/remote_admin.h"
#include "flux/client/remote_server.h"
#include "flux/client/test_executor.h"
#include "flux/rpc/chaos_channel.h"
#include "flux/rpc/io_loop.h"
#include "flux/rpc/listener.h"
#include "flux/rpc/loopback_channel.h"
#include "flux/rpc/socket_channel.h"
#include "flux/server/test_batch.h"

namespace flux {
namespace {

using namespace test;  // NOLINT: the model of these tests

class ServerServiceTest : public testing::Test {
 protected:
  ServerServiceTest() : direct_(std::move(make_server(job())).value()) {
    std::string name = testing::TempDir() + "flux_service_XXXXXX";
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
    direct_->open_pass(direct_->primaries(), 0, kGeometry,
                       [](const Status& status) { EXPECT_TRUE(status.is_ok()); });
  }
  ~ServerServiceTest() override { std::filesystem::remove_all(folder_); }

  static OpenJob job() {
    return {"job", {"job.yaml", "name: job", {}}, kLife, 1, 0, alone(every_shard())};
  }
  // What a coordinator says about all shards.
  static AdminCall call(uint64_t incarnation = kLife, uint64_t term = 1) {
    const std::vector<ShardId> shards = every_shard();
    return {incarnation, term, shards, std::vector<ShardEpoch>(shards.size(), {1, 1})};
  }
  static OpenJob life(uint64_t incarnation, uint64_t term, const std::string& name = "job") {
    OpenJob open = job();
    open.incarnation = incarnation;
    open.term = term;
    open.name = name;
    return open;
  }
  bool run_slow(std::function<void()> task) {
    if (slow_waiting_ >= slow_max_) return false;
    ++slow_waiting_;
    ++slow_run_;
    executor_.post(slow_ns_, [this, task = std::move(task)] {
      --slow_waiting_;
      task();
    });
    return true;
  }
  Status status_of(const std::function<void(ServerAdminPort::Done)>& call) {
    std::optional<Status> got;
    call([&](Status status) { got = std::move(status); });
    EXPECT_TRUE(executor_.run_until([&] { return got.has_value(); }));
    return got.value_or(Status(Code::kIo, "no answer"));
  }
  template <typename T, typename Call>
  Result<T> result_of(Call call) {
    std::optional<Result<T>> got;
    call([&](Result<T> result) { got = std::move(result); });
    EXPECT_TRUE(executor_.run_until([&] { return got.has_value(); }));
    return got.value_or(Status(Code::kIo, "no answer"));
  }
  Status open(const OpenJob& what) {
    return status_of([&](auto done) { admin_.open_job(what, std::move(done)); });
  }
  Status open_pass(uint64_t incarnation, uint32_t pass, uint64_t geometry) {
    return status_of(
        [&](auto done) { admin_.open_pass(call(incarnation), pass, geometry, std::move(done)); });
  }
  void open_all() {
    ASSERT_TRUE(open(job()).is_ok());
    ASSERT_TRUE(open_pass(kLife, 0, kGeometry).is_ok());
  }
  Server* served() { return jobs_.find(kLife).value()->server(); }
  PushReply push(ServerPort* port, const PushRequest& request) {
    std::optional<PushReply> got;
    port->push(request, [&](const PushReply& reply) { got = reply; });
    EXPECT_TRUE(executor_.run_until([&] { return got.has_value(); }));
    return got.value_or(PushReply{});
  }
  Status pull(ServerPort* port, const PullRequest& request) {
    std::optional<Status> got;
    port->pull(request, [&](const PullReply& reply) { got = reply.status; });
    EXPECT_TRUE(executor_.run_until([&] { return got.has_value(); }));
    return got.value_or(Status(Code::kIo, "no answer"));
  }

  TestExecutor executor_;
  ServerJobs jobs_{make_server};
  TimeNs slow_ns_ = kMillisecond;
  int slow_waiting_ = 0, slow_max_ = 4, slow_run_ = 0;
  ServerService service_{
      &jobs_, {[this](std::function<void()> task) { return run_slow(std::move(task)); }}};
  LoopbackChannel worker_link_{executor_, service_, {PeerRole::kWorker, "worker", 1}};
  LoopbackChannel admin_link_{executor_, service_, {PeerRole::kCoordinator, "admin", 2}};
  RemoteServer remote_{&worker_link_, kShape};
  RemoteAdmin admin_{&admin_link_, &executor_, 1};
  std::shared_ptr<Server> direct_;
  std::string folder_;
};

void expect_same_answers(const PushReply& a, const PushReply& b) {
  ASSERT_EQ(a.answers.size(), b.answers.size());
  for (size_t i = 0; i < a.answers.size(); ++i) {
    EXPECT_EQ(a.answers[i].shard, b.answers[i].shard);
    EXPECT_EQ(a.answers[i].answer, b.answers[i].answer) << answer_name(a.answers[i].answer);
    EXPECT_EQ(a.answers[i].op, b.answers[i].op);
    EXPECT_EQ(a.answers[i].already, b.answers[i].already);
  }
}

TEST_F(ServerServiceTest, PullAndPushEqualTheServerCalledStraight) {
  open_all();
  const std::vector<std::vector<ShardId>> sets = {
      every_shard(), {0, 2, 3, 7, 8, 10}, {1, 4, 5, 6, 9}, {5}, {9}};
  for (uint32_t i = 0; i < 12; ++i) {
    const BatchData data(i, i, sets[i % sets.size()]);
    expect_same_answers(push(&remote_, data.push), push(direct_.get(), data.push));
    EXPECT_EQ(served()->content_hash(), direct_->content_hash()) << i;
    Rows far(data), near(data);
    ASSERT_TRUE(pull(&remote_, far.pull).is_ok());
    ASSERT_TRUE(pull(direct_.get(), near.pull).is_ok());
    EXPECT_EQ(far.wide, near.wide);
    EXPECT_EQ(far.narrow, near.narrow);
    EXPECT_EQ(far.dense, near.dense);
    far.pull.dense = nullptr;
    std::fill(far.dense.begin(), far.dense.end(), 3.0F);
    ASSERT_TRUE(pull(&remote_, far.pull).is_ok());
    EXPECT_EQ(far.dense, std::vector<float>(kShape.parameters, 3.0F)) << "not asked for";
  }
  // Once more: all is known.
  const BatchData again(3, 3, sets[3]);
  const PushReply reply = push(&remote_, again.push);
  EXPECT_EQ(reply.answers[0].answer, Answer::kDuplicate);
  EXPECT_GT(remote_.traffic().sent, 12U * 100 * 24);
  EXPECT_GT(remote_.traffic().received, 12U * 100 * 20);
}

TEST_F(ServerServiceTest, AgesComeThroughTheWire) {
  open_all();
  const auto mark_of = [&](ServerPort* port, const PullRequest& request) {
    std::optional<AgeMark> mark;
    port->pull(request, [&](const PullReply& reply) { mark = reply.mark; });
    EXPECT_TRUE(executor_.run_until([&] { return mark.has_value(); }));
    return mark.value_or(AgeMark{});
  };
  for (ServerPort* port :
       {static_cast<ServerPort*>(&remote_), static_cast<ServerPort*>(direct_.get())}) {
    BatchData first(1, 1), second(2, 2), third(3, 3);
    Rows rows(first);
    const AgeMark begun = mark_of(port, rows.pull);
    EXPECT_NE(begun.clock, 0U);
    first.push.pulled = second.push.pulled = begun;
    EXPECT_EQ(push(port, first.push).age, 0U);
    EXPECT_EQ(push(port, second.push).age, first.push.examples);
    third.push.pulled = mark_of(port, rows.pull);
    EXPECT_EQ(third.push.pulled.examples, first.push.examples + second.push.examples);
    EXPECT_EQ(push(port, third.push).age, 0U);
    EXPECT_EQ(push(port, third.push).age, std::nullopt) << "a duplicate";
  }
}

TEST_F(ServerServiceTest, MergedIdsAndPartialAnswers) {
  open_all();
  BatchData one(1, 1), set(2, 2);
  for (Server* server : {served(), direct_.get()}) server->push(one.push, [](const PushReply&) {});
  set.push.claim.ids = {{{0, 0, 0, 0}, 1, 4}, {{0, 0, 0, 0}, 2, 4}, {{0, 0, 0, 0}, 3, 4}};
  const PushReply far = push(&remote_, set.push), near = push(direct_.get(), set.push);
  expect_same_answers(far, near);
  EXPECT_EQ(far.answers[0].answer, Answer::kPartial);
  EXPECT_EQ(far.answers[0].already, one.push.claim.ids);
  EXPECT_EQ(served()->content_hash(), direct_->content_hash());
}

TEST_F(ServerServiceTest, ASyncStepIsAnsweredWhenItsLastPushIsHere) {
  open_all();
  BatchData first(1, 0), second(2, 4);  // batch 0 of blocks 0 and 1
  const SyncStep step{5, 0, {first.push.claim.ids[0], second.push.claim.ids[0]}, 20};
  first.push.step = second.push.step = &step;
  std::optional<PushReply> one, two, near_one, near_two;
  // The memory of the first push is the frame's: it must live until the second one pours the step.
  remote_.push(first.push, [&](const PushReply& r) { one = r; });
  direct_->push(first.push, [&](const PushReply& r) { near_one = r; });
  executor_.run_for(100 * kMillisecond);
  EXPECT_FALSE(one.has_value());
  remote_.push(second.push, [&](const PushReply& r) { two = r; });
  direct_->push(second.push, [&](const PushReply& r) { near_two = r; });
  ASSERT_TRUE(executor_.run_until([&] { return one && two; }));
  ASSERT_TRUE(near_one && near_two);
  EXPECT_EQ(one->answers.size(), kShape.all_shards());
  for (const ShardAnswer& a : one->answers) EXPECT_EQ(a.answer, Answer::kApplied);
  EXPECT_EQ(served()->content_hash(), direct_->content_hash());
  // A member that is gone counts as empty.
  BatchData left(3, 1);
  const SyncStep short_of_one{6, 0, {left.push.claim.ids[0], {{0, 0, 0, 2}, 0, 4}}, 20};
  left.push.step = &short_of_one;
  std::optional<PushReply> alone;
  remote_.push(left.push, [&](const PushReply& r) { alone = r; });
  executor_.run_for(100 * kMillisecond);
  EXPECT_FALSE(alone.has_value());
  ASSERT_TRUE(status_of([&](auto done) {
                admin_.void_member(call(), 6, {0, 0, 0, 2}, std::move(done));
              }).is_ok());
  EXPECT_TRUE(executor_.run_until([&] { return alone.has_value(); }));
}

TEST_F(ServerServiceTest, HalvesOnTheWireStayWithinTheirBounds) {
  open_all();
  for (const auto& [value, bound] :
       {std::pair{WireValue::kFp16, 0x1p-10F}, {WireValue::kBf16, 0x1p-7F}}) {
    RemoteServer half(&worker_link_, kShape, {.value = value});
    const BatchData data(7, value == WireValue::kFp16 ? 0 : 1);
    ASSERT_EQ(push(&half, data.push).answers[0].answer, Answer::kApplied);
    Rows far(data), near(data);
    ASSERT_TRUE(pull(&half, far.pull).is_ok());
    ASSERT_TRUE(pull(served(), near.pull).is_ok());
    for (size_t i = 0; i < far.wide.size(); ++i)
      ASSERT_NEAR(far.wide[i], near.wide[i], std::fabs(near.wide[i]) * bound + 1e-6F);
    for (size_t i = 0; i < far.dense.size(); ++i)
      ASSERT_NEAR(far.dense[i], near.dense[i], std::fabs(near.dense[i]) * bound + 1e-6F);
    // The gradients, too: the other server got them exact. SGD with lr 0.5 shows them.
    push(direct_.get(), data.push);
    Rows exact(data);
    ASSERT_TRUE(pull(direct_.get(), exact.pull).is_ok());
    for (size_t i = 0; i < exact.narrow.size(); ++i)
      ASSERT_NEAR(near.narrow[i], exact.narrow[i], 8 * bound + 1e-6F);
    const auto part = encode_pull(far.pull, kShape, WireValue::kFp32).value().part;
    EXPECT_LT(half.traffic().received,
              pull_reply_bytes(part, kShape, WireValue::kFp32, true) * 0.51 + 200);
  }
}

// Payload bytes are seen by no one but the two ends: the rows that are sent are the memory that the
// server wrote, and they are received in the caller's arrays.
TEST_F(ServerServiceTest, RowsAreWrittenOnceAndPlacedOnce) {
  open_all();
  const BatchData data(1, 0);
  push(&remote_, data.push);
  Rows rows(data);
  const auto encoded = encode_pull(rows.pull, kShape, WireValue::kFp32);
  ASSERT_TRUE(encoded.is_ok());
  struct Spy final : Channel {
    uint64_t call(RpcCall c) override {
      seen = std::move(c);
      return 1;
    }
    void cancel(uint64_t) override {}
    std::string peer() const override { return "spy"; }
    RpcCall seen;
  } spy;
  RemoteServer stub(&spy, kShape);
  Status got(Code::kIo, "not called");
  stub.pull(rows.pull, [&](const PullReply& r) { got = r.status; });
  ASSERT_GE(spy.seen.payload.size(), 1U);
  EXPECT_EQ(static_cast<const void*>(spy.seen.payload[0].data()), data.keys.data());
  const uint64_t bytes = pull_reply_bytes(encoded.value().part, kShape, WireValue::kFp32, true);
  const auto targets = spy.seen.place("", bytes);
  ASSERT_TRUE(targets.is_ok());
  EXPECT_EQ(static_cast<void*>(targets.value()[0].data()), rows.wide.data());
  EXPECT_EQ(targets.value()[0].size(), rows.wide.size() * sizeof(float));
  EXPECT_EQ(spy.seen.place("", bytes + 64).status().code(), Code::kCorrupt);
  spy.seen.done(Status(Code::kUnavailable, "gone"), {});
  EXPECT_EQ(got.code(), Code::kUnavailable);
  stub.pull(rows.pull, [&](const PullReply& r) { got = r.status; });
  spy.seen.done(Status::ok(), {});
  EXPECT_EQ(got.code(), Code::kCorrupt) << "no rows came";

  RemoteServer pusher(&spy, kShape);
  std::optional<PushReply> reply;
  pusher.push(data.push, [&](const PushReply& r) { reply = r; });
  EXPECT_EQ(static_cast<const void*>(spy.seen.payload[0].data()), data.keys.data());
  spy.seen.done(Status(Code::kUnavailable, "gone"), {});
  ASSERT_TRUE(reply.has_value());
  EXPECT_TRUE(reply->answers.empty()) << "the session sends again what nobody answered";
}

TEST_F(ServerServiceTest, RequestsThatNobodyShouldSend) {
  open_all();
  BatchData data(1, 0);
  data.push.claim.incarnation = kLife + 1;
  EXPECT_EQ(push(&remote_, data.push).answers.at(3).answer, Answer::kStaleIncarnation);
  data.push.claim.incarnation = kLife;
  data.push.claim.verdict = Verdict::kSkipped;
  EXPECT_EQ(push(&remote_, data.push).answers.at(3).answer, Answer::kMalformed);
  Rows rows(data);
  rows.pull.incarnation = 99;
  const Status stale = pull(&remote_, rows.pull);
  EXPECT_EQ(stale.code(), Code::kStale);
  EXPECT_NE(stale.message().find("has no job of incarnation"), std::string::npos);
  RemoteServer other(&worker_link_, {kShards, {4, 2}, 40000});
  rows.pull.incarnation = kLife;
  const Status differs = pull(&other, rows.pull);
  EXPECT_EQ(differs.code(), Code::kInvalid);
  EXPECT_NE(differs.message().find("rows of [4,2] floats"), std::string::npos);
  // Gradients of keys that hash elsewhere are refused by the shard, and nothing is changed. (A pull
  // changes nothing anyway: it gets initial rows for them.)
  BatchData wrong(2, 1);
  std::swap(wrong.keys.front(), wrong.keys.back());
  EXPECT_EQ(push(&remote_, wrong.push).answers[0].answer, Answer::kMalformed);
  // A worker is no coordinator.
  RemoteAdmin intruder(&worker_link_, &executor_, 1);
  const Status refused = status_of([&](auto done) { intruder.close_job(call(), std::move(done)); });
  EXPECT_EQ(refused.code(), Code::kInvalid) << refused.message();
}

TEST_F(ServerServiceTest, JobsOpenCloseAndReplaceEachOther) {
  EXPECT_EQ(open_pass(kLife, 0, 1).code(), Code::kStale);
  EXPECT_EQ(open(life(1, 1, "broken")).code(), Code::kInvalid);
  ASSERT_TRUE(open(job()).is_ok());
  ASSERT_TRUE(open(job()).is_ok()) << "the same once more";
  ASSERT_TRUE(open(life(50, 1, "another job")).is_ok());
  EXPECT_EQ(jobs_.all().size(), 2U);
  ASSERT_TRUE(open(life(12, 2)).is_ok());
  EXPECT_EQ(jobs_.all().size(), 2U) << "a newer term took the place of the older";
  const BatchData data(1, 0);
  EXPECT_EQ(push(&remote_, data.push).answers[0].answer, Answer::kStaleIncarnation);
  EXPECT_EQ(open(life(13, 1)).code(), Code::kStale) << "an older term";
  EXPECT_EQ(open(job()).code(), Code::kStale) << "a request that was under way for long";
  for (int i = 0; i < 2; ++i)
    EXPECT_TRUE(status_of([&](auto done) { admin_.close_job(call(50), std::move(done)); }).is_ok());
  EXPECT_EQ(open(life(50, 1, "another job")).code(), Code::kStale);
  EXPECT_EQ(jobs_.all().size(), 1U);
}

TEST_F(ServerServiceTest, PassesMarksAndTotals) {
  open_all();
  EXPECT_EQ(open_pass(kLife, 0, kGeometry + 1).code(), Code::kStale);
  const BatchData data(1, 0), part(2, 1, {0, 1});
  push(&remote_, data.push);
  push(&remote_, part.push);
  const auto marked = [&](bool any) {
    return result_of<std::vector<uint32_t>>([&](auto done) {
             admin_.marked(call(), {0, 0, 0, 0}, 2, any, std::move(done));
           })
        .value();
  };
  EXPECT_EQ(marked(false), (std::vector<uint32_t>{0b01, 0}));
  EXPECT_EQ(marked(true), (std::vector<uint32_t>{0b11, 0}));
  const std::vector<BatchId> poison = {{{0, 0, 0, 1}, 2, 4}};
  ASSERT_TRUE(status_of([&](auto done) {
                admin_.mark(call(), kGeometry, poison, Verdict::kSkipped, std::move(done));
              }).is_ok());
  EXPECT_EQ(marked(false), (std::vector<uint32_t>{0b01, 0b100}));
  const auto totals = result_of<JobTotals>([&](auto done) {
    admin_.totals(call(), true, {{100, 2}}, std::move(done));
  });
  ASSERT_TRUE(totals.is_ok());
  EXPECT_EQ(totals.value().content_hash, served()->content_hash());
  EXPECT_EQ(totals.value().rows, served()->totals().rows);
  EXPECT_EQ(totals.value().occurrences, served()->totals().occurrences);
  EXPECT_EQ(totals.value().pushes, 2U);
  EXPECT_FALSE(totals.value().dense.empty());
  EXPECT_EQ(totals.value().bytes_in, remote_.traffic().sent);
  EXPECT_EQ(totals.value().bytes_out, remote_.traffic().received);
  ASSERT_TRUE(
      status_of([&](auto done) { admin_.close_below(call(), 1, std::move(done)); }).is_ok());
  EXPECT_EQ(push(&remote_, BatchData(3, 2).push).answers[0].answer, Answer::kDuplicate);
}

TEST_F(ServerServiceTest, SavesOnceAndLoadsIntoAnotherLife) {
  open_all();
  push(&remote_, BatchData(1, 0).push);
  const CheckpointStore store(folder_);
  const uint64_t number = store.begin().value();
  const auto save = [&](uint64_t n) {
    return result_of<std::vector<SavedShard>>(
        [&](auto done) { admin_.save(call(), folder_, n, 0, std::move(done)); });
  };
  const auto saved = save(number);
  ASSERT_TRUE(saved.is_ok()) << saved.status().message();
  ASSERT_EQ(saved.value().size(), kShape.all_shards());
  const uint64_t hash = served()->content_hash();
  // A copy of the request comes late, when rows have changed and the checkpoint is committed.
  push(&remote_, BatchData(2, 1).push);
  const auto again = save(number);
  ASSERT_TRUE(again.is_ok());
  EXPECT_EQ(again.value()[0].hash, saved.value()[0].hash);
  EXPECT_EQ(again.value()[0].op, saved.value()[0].op);
  EXPECT_EQ(save(number - 1).status().code(), Code::kStale);

  LoadJob load{folder_, number, {}, 0};
  for (const SavedShard& s : saved.value())
    load.shards.push_back({s.shard, s.name, s.bytes, s.hash, s.op, s.stream_hash});
  OpenJob next = life(12, 2);
  next.places = {};
  ASSERT_TRUE(open(next).is_ok());
  const auto load_it = [&] {
    return status_of([&](auto done) { admin_.load(call(12, 2), load, std::move(done)); });
  };
  ASSERT_TRUE(load_it().is_ok());
  const std::vector<ShardId> all = every_shard();
  EXPECT_EQ(jobs_.find(12).value()->server()->content_hash(all), hash);
  EXPECT_TRUE(load_it().is_ok()) << "repeated";
  load.shards[0].hash ^= 1;
  EXPECT_NE(load_it().code(), Code::kOk);
}

// A slow verb takes longer than the caller's patience for one try: the tries join, it is done once.
TEST_F(ServerServiceTest, ASlowVerbIsDoneOnceHoweverOftenItIsAsked) {
  slow_ns_ = 7 * kSecond;
  ASSERT_TRUE(open(job()).is_ok());
  EXPECT_EQ(slow_run_, 1);
  EXPECT_GE(executor_.now_ns(), 7 * kSecond);
  EXPECT_LT(executor_.now_ns(), 12 * kSecond);
}

TEST_F(ServerServiceTest, TooManySlowVerbsArePutOff) {
  slow_max_ = 1;
  slow_ns_ = kSecond;
  std::vector<Status> got;
  for (uint64_t i = 0; i < 5; ++i)
    admin_.open_job(life(100 + i, 1, fmt::format("job-{}", i)),
                    [&](Status status) { got.push_back(std::move(status)); });
  ASSERT_TRUE(executor_.run_until([&] { return got.size() == 5; }));
  for (const Status& status : got) EXPECT_TRUE(status.is_ok()) << status.message();
  EXPECT_EQ(jobs_.all().size(), 5U);
}

TEST_F(ServerServiceTest, EveryVerbThroughANetworkThatLosesAndRepeats) {
  ChaosOptions chaos{.seed = 1, .request = 0.25, .reply = 0.25, .doubled = 0.2, .delay_ms = 30};
  ChaosChannel worker(executor_,
                      std::make_unique<LoopbackChannel>(
                          executor_, service_, LoopbackOptions{PeerRole::kWorker, "worker", 3}),
                      chaos);
  chaos.seed = 2;
  ChaosChannel coordinator(
      executor_,
      std::make_unique<LoopbackChannel>(executor_, service_,
                                        LoopbackOptions{PeerRole::kCoordinator, "coordinator", 4}),
      chaos);
  RemoteAdmin admin(&coordinator, &executor_, 3);
  RemoteServer remote(&worker, kShape, {.push_timeout_ns = kSecond});
  ASSERT_TRUE(status_of([&](auto done) { admin.open_job(job(), std::move(done)); }).is_ok());
  ASSERT_TRUE(status_of([&](auto done) {
                admin.open_pass(call(), 0, kGeometry, std::move(done));
              }).is_ok());
  for (uint32_t i = 0; i < 20; ++i) {
    const BatchData data(i, i);
    push(direct_.get(), data.push);
    for (int tries = 0;; ++tries) {
      ASSERT_LT(tries, 100);
      const PushReply reply = push(&remote, data.push);
      if (reply.answers.empty()) continue;  // what a PushSession would do
      const Answer answer = reply.answers[0].answer;
      // The second copy of a doubled request may be the one that is answered.
      ASSERT_TRUE(answer == Answer::kApplied || answer == Answer::kDuplicate);
      break;
    }
    const auto masks = result_of<std::vector<uint32_t>>([&](auto done) {
      admin.marked(call(), {0, 0, 0, 0}, 5, false, std::move(done));
    });
    ASSERT_TRUE(masks.is_ok());
    EXPECT_EQ(masks.value()[i / 4] >> (i % 4) & 1, 1U);
  }
  EXPECT_EQ(served()->content_hash(), direct_->content_hash()) << "each batch exactly once";
  EXPECT_GT(worker.counts().requests_lost + worker.counts().replies_lost, 5U);
}

// Over a real socket: the same bits, and no byte of payload copied by either end's rpc layer.
TEST_F(ServerServiceTest, OverASocketWithoutCopies) {
  open_all();
  const BatchData data(1, 0);
  push(direct_.get(), data.push);
  ListenerOptions options;
  options.addresses = {"unix:" + folder_ + "/socket"};
  auto listener = Listener::start(options, service_);
  ASSERT_TRUE(listener.is_ok()) << listener.status().message();
  IoLoop loop;
  auto channel = SocketChannel::create(loop, listener.value()->addresses()[0], {});
  ASSERT_TRUE(channel.is_ok()) << channel.status().message();
  RemoteServer remote(channel.value().get(), kShape);
  const auto turn = [&](const bool& over) {
    while (!over && loop.run_one_until(loop.now_ns() + 20 * kSecond)) continue;
    ASSERT_TRUE(over);
  };
  bool over = false;
  PushReply reply;
  remote.push(data.push, [&](const PushReply& r) {
    reply = r;
    over = true;
  });
  turn(over);
  EXPECT_EQ(reply.answers.size(), kShape.all_shards());
  Rows far(data), near(data);
  Status status;
  over = false;
  remote.pull(far.pull, [&](const PullReply& r) {
    status = r.status;
    over = true;
  });
  turn(over);
  ASSERT_TRUE(status.is_ok()) << status.message();
  ASSERT_TRUE(pull(direct_.get(), near.pull).is_ok());
  EXPECT_EQ(far.wide, near.wide);
  EXPECT_EQ(far.narrow, near.narrow);
  EXPECT_EQ(far.dense, near.dense);
  EXPECT_EQ(channel.value()->counters().payload_bytes_copied, 0U);
  EXPECT_EQ(listener.value()->counters().payload_bytes_copied, 0U);
  EXPECT_GT(listener.value()->counters().bytes_in, data.wide.size() * 4 + kShape.parameters * 4);
}

}  // namespace
}  // namespace flux
