// The simulated network, disk and audit keep their own promises: else a clean run proves nothing.
#include <cstring>
#include <memory>

#include <gtest/gtest.h>

#include "flux/base/bytes.h"
#include "flux/testing/mem_files.h"
#include "flux/testing/shard_audit.h"
#include "flux/testing/sim_channel.h"
#include "flux/testing/sim_data.h"
#include "flux/testing/sim_offload.h"

namespace flux {
namespace {

ByteSpan bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// Answers with control and payload as they came; verb 9 never answers.
class Echo final : public Service {
 public:
  bool allows(PeerRole role, Verb) const override { return role == PeerRole::kWorker; }
  void handle(RpcRequest request, Responder respond) override {
    ++handled;
    if (request.verb == 9) {
      kept.push_back(std::make_shared<Responder>(std::move(respond)));
      return;
    }
    RpcAnswer answer;
    answer.control = std::string(request.control);
    answer.payload = {request.payload};
    answer.memory = request.memory;
    respond.reply(std::move(answer));
  }
  void closed(uint64_t) override { ++closes; }
  int handled = 0;
  int closes = 0;
  std::vector<std::shared_ptr<Responder>> kept;
};

struct NetTest : testing::Test {
  void start(uint64_t seed, NetFaults faults) {
    channel.reset();
    client.reset();
    server.reset();
    net.reset();
    world = std::make_unique<SimWorld>(seed);
    net = std::make_unique<SimNet>(world.get(), faults);
    client = std::make_unique<SimNode>(world.get(), "client", 1);
    server = std::make_unique<SimNode>(world.get(), "server", 1);
    net->listen("sim:server", server.get(), &echo);
    channel = net->connect(client.get(), "sim:server", PeerRole::kWorker);
  }
  void call(Verb verb, TimeNs timeout = kSecond) {
    RpcCall call;
    call.verb = verb;
    call.control = "head";
    call.payload = {bytes_of(body)};
    call.timeout_ns = timeout;
    call.place = [this](std::string_view, uint64_t size) -> Result<std::vector<MutableByteSpan>> {
      placed.assign(size, '?');
      return std::vector<MutableByteSpan>{
          std::as_writable_bytes(std::span(placed.data(), placed.size()))};
    };
    call.done = [this](const Status& status, const RpcReply&) {
      ++done;
      if (status.is_ok()) ++good;
      last = status;
    };
    channel->call(std::move(call));
  }
  void run() {
    while (world->executor().step()) {
    }
  }
  std::string body = "some bytes";
  std::string placed;
  int done = 0, good = 0;
  Status last;
  Echo echo;
  std::unique_ptr<SimWorld> world;
  std::unique_ptr<SimNet> net;
  std::unique_ptr<SimNode> client, server;
  std::unique_ptr<Channel> channel;
};

TEST_F(NetTest, CarriesBytesBothWays) {
  start(1, {});
  call(1);
  EXPECT_EQ(done, 0) << "nothing runs inside call()";
  run();
  EXPECT_EQ(good, 1);
  EXPECT_EQ(placed, body);
}

TEST_F(NetTest, EveryCallEndsOnceUnderAllFaults) {
  uint64_t failed = 0, doubled = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    echo.handled = done = good = 0;
    start(seed, {0.25, 0.25, 0.1, 300 * kMillisecond});
    for (int i = 0; i < 20; ++i) call(1);
    run();
    EXPECT_EQ(done, 20);
    failed += static_cast<uint64_t>(20 - good);
    doubled += echo.handled > 20 ? 1 : 0;
  }
  EXPECT_GT(failed, 100U);
  EXPECT_GT(doubled, 0U);
}

TEST_F(NetTest, NobodyAnswersAfterTheirDeath) {
  start(3, {});
  call(9);
  while (echo.kept.empty() && world->executor().step()) {
  }
  server->kill();
  echo.kept[0]->reply({});
  net->node_died(server.get());
  run();
  EXPECT_EQ(good, 0);
  EXPECT_EQ(done, 1) << "the break or the time-out ends the call";
  EXPECT_EQ(last.code(), Code::kUnavailable);
}

TEST_F(NetTest, ADeadOwnerHearsNothingAndItsPeerIsTold) {
  start(4, {});
  call(1);
  call(9);
  while (echo.handled < 2 && world->executor().step()) {
  }
  client->kill();
  net->node_died(client.get());
  run();
  EXPECT_EQ(done, 0);
  EXPECT_EQ(echo.closes, 1);
}

TEST_F(NetTest, ACallWaitsForALateListenerAndRolesAreChecked) {
  start(5, {});
  net->close("sim:server");
  call(1, 10 * kSecond);
  server->post(2 * kSecond, [this] { net->listen("sim:server", server.get(), &echo); });
  run();
  EXPECT_EQ(good, 1);
  channel = net->connect(client.get(), "sim:server", PeerRole::kViewer);
  call(1);
  run();
  EXPECT_EQ(last.code(), Code::kInvalid);
}

TEST_F(NetTest, AnIsolatedNodeIsReachedAgainAfterwards) {
  start(6, {});
  net->isolate("server", 5 * kSecond);
  call(1, kSecond);
  call(1, 20 * kSecond);
  run();
  EXPECT_EQ(done, 2);
  EXPECT_EQ(good, 1);
}

// A timer never comes too early by the node's own clock, and after a jump it comes late.
TEST(SimNode, ClocksJumpAndDriftButNeverGoBack) {
  SimWorld world(1);
  SimNode node(&world, "n", 1);
  node.set_clock(5 * kSecond, 1.2);
  TimeNs last = node.now_ns(), due = 0, late = 0;
  Random random(7);
  std::function<void()> set = [&] {
    const TimeNs delay = static_cast<TimeNs>(1 + random.below(100)) * kMillisecond;
    due = node.now_ns() + delay;
    node.post(delay, [&] {
      EXPECT_GE(node.now_ns(), due);
      late = std::max(late, node.now_ns() - due);
      set();
    });
  };
  set();
  for (int i = 0; i < 1000; ++i) {
    if (i == 500) {
      EXPECT_LT(late, 100 * kMillisecond) << "by drift alone";
    }
    if (i % 3 == 0) node.drift_clock(0.8 + random.uniform() * 0.5);
    if (i > 500 && i % 10 == 0) {
      const TimeNs before = node.now_ns();
      node.jump_clock(kSecond);
      EXPECT_EQ(node.now_ns(), before + kSecond);
    }
    EXPECT_GE(node.now_ns(), last);
    last = node.now_ns();
    ASSERT_TRUE(world.executor().step());
    EXPECT_GE(node.now_ns(), last);
  }
  EXPECT_GT(late, kSecond / 2);
}

TEST(SimNode, APausedNodeDoesNothingAndADeadOneNothingEver) {
  SimWorld world(1);
  SimNode node(&world, "n", 1);
  std::vector<TimeNs> ran;
  node.post(10, [&] { ran.push_back(world.now_ns()); });
  node.pause(100);
  world.executor().step();
  EXPECT_TRUE(ran.empty());
  world.executor().step();
  EXPECT_EQ(ran, std::vector<TimeNs>{100});
  SimOffload offload(&node, 10);
  bool worked = false;
  offload.run([&] { worked = true; }, [&] { node.kill(); });
  node.post(1000, [&] { ran.push_back(0); });
  while (world.executor().step()) {
  }
  EXPECT_TRUE(worked);
  EXPECT_EQ(ran.size(), 1U);
}

TEST(MemFiles, KeepsTheContractsOfFiles) {
  SimWorld world(1);
  MemDisk disk(&world);
  MemFiles files(&disk, nullptr, {});
  EXPECT_EQ(files.write_atomic("a/b/c", "x").code(), Code::kNotFound);
  ASSERT_TRUE(files.make_folders("a/b").is_ok());
  ASSERT_TRUE(files.write_atomic("a/b/c", "x").is_ok());
  ASSERT_TRUE(files.append_synced("a/b/c", "yz").is_ok());
  EXPECT_EQ(files.read("a/b/c", 10).value(), "xyz");
  EXPECT_FALSE(files.read("a/b/c", 2).is_ok());
  EXPECT_TRUE(files.create_exclusive("a/b/d", "1").is_ok());
  EXPECT_EQ(files.create_exclusive("a/b/d", "2").code(), Code::kStale);
  EXPECT_EQ(files.read("a/b/d", 10).value(), "1");
  EXPECT_EQ(files.list("a").value(), std::vector<std::string>{"b"});
  EXPECT_EQ(files.list("a/b").value(), (std::vector<std::string>{"c", "d"}));
  EXPECT_TRUE(files.exists("a") && files.exists("a/b/c") && !files.exists("a/c"));
  ASSERT_TRUE(files.remove_all("a/b").is_ok());
  EXPECT_FALSE(files.exists("a/b") || files.exists("a/b/c"));
}

TEST(MemFiles, ReadingFailsOrLiesAndHarmsNothing) {
  SimWorld world(1);
  MemDisk disk(&world);
  MemFiles eye(&disk, nullptr, {});
  SimNode node(&world, "n", 1);
  ASSERT_TRUE(eye.make_folders("f/checkpoints/1").is_ok());
  for (const char* path : {"f/log", "f/checkpoints/1/shard"})
    ASSERT_TRUE(eye.write_atomic(path, "content").is_ok());
  MemFiles broken(&disk, &node, {.unread = 1});
  EXPECT_EQ(broken.read("f/log", 10).status().code(), Code::kIo);
  EXPECT_EQ(broken.list("f").status().code(), Code::kIo);
  EXPECT_EQ(broken.read("f/none", 10).status().code(), Code::kNotFound);
  EXPECT_TRUE(broken.write_atomic("f/log", "content").is_ok());
  MemFiles bent(&disk, &node, {.bent = 1});
  int shorter = 0;
  for (int i = 0; i < 50; ++i) {
    const std::string read = bent.read("f/checkpoints/1/shard", 10).value();
    EXPECT_NE(read, "content");
    shorter += read.size() < 7 ? 1 : 0;
  }
  EXPECT_TRUE(shorter > 0 && shorter < 50) << shorter;
  EXPECT_EQ(bent.read("f/log", 10).value(), "content") << "only checkpoints have check sums";
  EXPECT_EQ(eye.read("f/checkpoints/1/shard", 10).value(), "content");
  EXPECT_EQ(disk.unread(), 2U);
  EXPECT_EQ(disk.bent(), 50U);
  bent.heal();
  EXPECT_EQ(bent.read("f/checkpoints/1/shard", 10).value(), "content");
}

TEST(MemFiles, APowerCutLosesOnlyWhatWasNotSynced) {
  int lost = 0;
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    SimWorld world(seed);
    MemDisk disk(&world);
    MemFiles files(&disk, nullptr, {});
    ASSERT_TRUE(files.make_folders("f").is_ok());
    ASSERT_TRUE(files.write_synced("f/synced", "1").is_ok());
    ASSERT_TRUE(files.sync_folder("f").is_ok());
    ASSERT_TRUE(files.write_atomic("f/atomic", "1").is_ok());
    ASSERT_TRUE(files.write_synced("f/not", "1").is_ok());
    disk.power_cut();
    EXPECT_TRUE(files.exists("f/synced") && files.exists("f/atomic"));
    if (!files.exists("f/not")) ++lost;
  }
  EXPECT_GT(lost, 0);
  EXPECT_LT(lost, 50);
}

TEST(MemFiles, ANodeThatDiesInAWriteLeavesOldOrNewBehind) {
  int old = 0, fresh = 0;
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    SimWorld world(seed);
    MemDisk disk(&world);
    MemFiles eye(&disk, nullptr, {});
    ASSERT_TRUE(eye.make_folders("f").is_ok());
    ASSERT_TRUE(eye.write_atomic("f/x", "old").is_ok());
    SimNode node(&world, "n", 1);
    MemFiles files(&disk, &node, {0, 1});
    EXPECT_FALSE(files.write_atomic("f/x", "new").is_ok());
    EXPECT_FALSE(node.alive());
    const std::string now = eye.read("f/x", 10).value();
    EXPECT_TRUE(now == "old" || now == "new") << now;
    ++(now == "old" ? old : fresh);
    EXPECT_EQ(files.write_atomic("f/x", "later").code(), Code::kIo) << "the dead write nothing";
  }
  EXPECT_GT(old, 0);
  EXPECT_GT(fresh, 0);
}

// A shard image whose rows are those of the batches given.
ShardImage image_of(const Geometry& g, uint32_t shards, ShardId shard,
                    const std::vector<BatchId>& marked, const std::vector<BatchId>& counted) {
  ShardImage image;
  image.shards = shards;
  image.replica = ShardReplica(shard, 1, {1, 1});
  EXPECT_TRUE(image.replica.open_pass(0, g.hash()).is_ok());
  for (const BatchId& id : marked) image.replica.commit({1, g.hash(), {id}}, 0);
  std::map<Key, uint32_t> rows;
  const auto data = std::move(open_sim_dataset(g)).value();
  for (const BatchId& id : counted) {
    Batch batch;
    const auto reader = std::move(data->open_block(id.block.block, id.block.epoch)).value();
    EXPECT_TRUE(reader->read_batch(id.batch, &batch).is_ok());
    for (const Key key : batch.keys)
      if (shard_of(key, shards) == shard) ++rows[key];
  }
  ByteWriter bytes;
  for (const auto& [key, count] : rows) {
    bytes.put<uint64_t>(key);
    bytes.put<uint32_t>(count);
    bytes.put<float>(0);
  }
  image.tables.push_back({"t", 16, rows.size(), std::string(bytes.str())});
  return image;
}

TEST(ShardAudit, SeesOneMissingOrDoubledBatch) {
  const Geometry g = sim_geometry({0, 2, 6, 5, 3, 7});
  ASSERT_TRUE(Geometry::from_json(g.to_json()).is_ok());
  const ShardAudit audit({g}, {1, 1, 2}, 2, 2);
  EXPECT_EQ(audit.batches(), 8U);
  const BatchId a{{0, 0, 0, 0}, 0, 2}, b{{0, 0, 1, 1}, 1, 2};
  const BatchId alien{{0, 0, 7, 0}, 0, 2};
  for (ShardId s = 0; s < 2; ++s) {
    EXPECT_EQ(audit.check(image_of(g, 2, s, {a, b}, {a, b})), "");
    EXPECT_NE(audit.check_complete(image_of(g, 2, s, {a, b}, {a, b}), 1), "");
    EXPECT_NE(audit.check(image_of(g, 2, s, {a, alien}, {a})), "") << "an unknown mark";
  }
  const auto either = [&](const std::vector<BatchId>& marked, const std::vector<BatchId>& rows) {
    return audit.check(image_of(g, 2, 0, marked, rows)) +
           audit.check(image_of(g, 2, 1, marked, rows));
  };
  EXPECT_NE(either({a, b}, {a}), "");
  EXPECT_NE(either({a}, {a, b}), "");
  EXPECT_NE(either({a}, {a, a}), "");
}

}  // namespace
}  // namespace flux
