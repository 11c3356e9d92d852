// When a shard is written whole, and servers whose saves are committed, fail, or never are: what a
// chain of their files gives is always the shard as it was.
#include "flux/server/save_plan.h"

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <thread>

#include <gtest/gtest.h>

#include "flux/checkpoint/store.h"
#include "flux/server/test_push.h"
#include "flux/server/test_replicas.h"

namespace flux {
namespace {

TEST(ChainPolicy, WholeOrIncrement) {
  const ChainPolicy policy{8, 0.5};
  SavedChain base{7, 100, 1, 1000, 0, 0};
  const auto whole = [&](uint64_t committed = 7, uint64_t next = 10, ShardId shard = 0) {
    return write_whole(base, committed, shard, next, policy);
  };
  EXPECT_FALSE(whole());
  EXPECT_TRUE(whole(6)) << "the last save was not committed";
  EXPECT_TRUE(whole(8)) << "somebody else's was";
  EXPECT_TRUE(whole(0)) << "the coordinator wants no base";
  EXPECT_FALSE(whole(7, 500));
  EXPECT_TRUE(whole(7, 501)) << "more than half of the whole file";
  base.increment_bytes = 400;
  EXPECT_FALSE(whole(7, 100));
  EXPECT_TRUE(whole(7, 101));
  base.increment_bytes = 0;
  base.increments = 7;
  EXPECT_FALSE(whole());
  base.increments = 8;
  EXPECT_TRUE(whole());
  base = {};
  EXPECT_TRUE(whole(0)) << "nothing was ever saved";
  base = {7, 0, 0, 1000, 5, 10};
  std::vector<bool> choices;
  for (ShardId s = 0; s < 8; ++s) choices.push_back(whole(7, 10, s));
  EXPECT_EQ(choices, (std::vector<bool>{false, false, false, true, false, false, false, true}))
      << "not all shards at once";
  base.increments = 4;
  for (ShardId s = 0; s < 8; ++s) EXPECT_FALSE(whole(7, 10, s));
}

class Chains : public testing::Test {
 protected:
  Chains() {
    std::string name = testing::TempDir() + "flux_saves_XXXXXX";
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
    options_.chain = {8, 1e9};
    server_ = make_test_server(options_);
  }
  ~Chains() override { std::filesystem::remove_all(folder_); }

  void push(size_t keys = 40) {
    TestPush push(pushes_, test_batch(pushes_), keys, *server_);
    for (const ShardId s : push.shards) push.epochs[s] = server_->state(s).epoch;
    ASSERT_TRUE(
        all_are(send_push(server_.get(), push.request), push.shards.size(), Answer::kApplied));
    ++pushes_;
  }
  // Asks for a save and links it as a coordinator does, but does not commit it.
  Manifest save(Server* server, uint64_t committed) {
    Manifest m;
    m.number = store().begin().value();
    const auto saved = server->save(server->primaries(), folder_, m.number, committed);
    EXPECT_TRUE(saved.is_ok()) << saved.status().message();
    for (const SavedShard& s : saved.value()) m.shards.push_back(entry_of(s));
    return m;
  }
  ShardEntry entry_of(const SavedShard& s) const {
    ShardEntry entry{{s.name, s.bytes, s.hash}, s.op, s.stream_hash, s.rows};
    if (!s.incremental) return entry;
    const ShardEntry& before = committed_->shards[s.shard];
    EXPECT_EQ(before.op, s.base_op);
    EXPECT_EQ(before.stream_hash, s.base_stream_hash);
    entry.chain = before.chain;
    entry.chain.push_back({committed_->number, before.file, before.op, before.stream_hash});
    return entry;
  }
  void commit(const Manifest& m) {
    ASSERT_TRUE(store().commit(m).is_ok());
    committed_ = m;
  }
  static size_t increments(const Manifest& m) {
    return static_cast<size_t>(std::count_if(m.shards.begin(), m.shards.end(),
                                             [](const auto& s) { return !s.chain.empty(); }));
  }
  static LoadJob load_of(const std::string& folder, const Manifest& m) {
    LoadJob load{folder, m.number, {}, 0};
    for (ShardId s = 0; s < m.shards.size(); ++s) {
      const ShardEntry& e = m.shards[s];
      ShardToLoad part{s, e.file.name, e.file.bytes, e.file.hash, e.op, e.stream_hash};
      for (const ChainLink& l : e.chain)
        part.chain.push_back(
            {l.number, l.file.name, l.file.bytes, l.file.hash, l.op, l.stream_hash});
      load.shards.push_back(part);
    }
    return load;
  }
  // A server that has these shards of the checkpoint and serves them; null: every shard.
  std::shared_ptr<Server> loaded(const Manifest& m, uint32_t threads = 1,
                                 const std::vector<ShardId>* shards = nullptr) {
    ServerOptions options = options_;
    options.file_threads = threads;
    options.places = Assignments();
    auto server = Server::create(options).value();
    const std::vector<ShardId> all = TestCluster::every_shard();
    AdminCall call{kLife, 1, shards != nullptr ? *shards : all, {}};
    epoch_ += 2;
    call.epochs.assign(call.shards.size(), {1, epoch_ - 1});
    LoadJob load = load_of(folder_, m);
    std::erase_if(load.shards, [&](const ShardToLoad& part) {
      return !std::binary_search(call.shards.begin(), call.shards.end(), part.shard);
    });
    const Status status = server->load(call, load);
    EXPECT_TRUE(status.is_ok()) << status.message();
    EXPECT_TRUE(server->assign(alone(call.shards, {1, epoch_})).is_ok());
    return server;
  }
  // The files of a checkpoint give exactly the server as it is now.
  void expect_loads_as_now(const Manifest& m) {
    const auto copy = loaded(m);
    EXPECT_EQ(copy->content_hash(), server_->content_hash());
    for (const ShardId s : TestCluster::every_shard()) {
      EXPECT_EQ(copy->replica(s).op(), server_->replica(s).op());
      EXPECT_EQ(copy->replica(s).stream_hash(), server_->replica(s).stream_hash());
      EXPECT_EQ(copy->replica(s).ledger(), server_->replica(s).ledger());
      const ShardImage live = server_->image(s), back = copy->image(s);
      uint64_t rows = 0;
      for (const TableImage& table : live.tables) rows += table.rows;
      EXPECT_EQ(m.shards[s].rows, rows) << "of all tables";
      for (size_t t = 0; t < live.tables.size(); ++t) {
        EXPECT_EQ(live.tables[t].rows, back.tables[t].rows);
        EXPECT_EQ(live.tables[t].bytes, back.tables[t].bytes) << "also in the same order";
      }
    }
  }
  // By key: what the rows of the first table count, and what the pushes in the ledger add up to.
  using Counts = std::map<Key, uint32_t>;
  static Counts counts_in(const ShardImage& image) {
    Counts counts;
    const TableImage& table = image.tables[0];
    for (size_t at = 0; at < table.bytes.size(); at += table.row_bytes) {
      Key key;
      std::memcpy(&key, table.bytes.data() + at, sizeof key);
      std::memcpy(&counts[key], table.bytes.data() + at + 8, sizeof(uint32_t));
    }
    return counts;
  }
  Counts counts_by_ledger(const ShardReplica& replica) const {
    Counts counts;
    const ShardId s = replica.shard();
    for (uint32_t n = 0; n <= 80; ++n) {
      if (!replica.ledger().find(test_batch(n))) continue;
      const TestPush push(n, test_batch(n), n == 0 ? 400 : 40, *server_);
      for (uint32_t k = push.begin[s]; k < push.begin[s + 1]; ++k)
        counts[push.keys[k]] += push.counts[k];
    }
    return counts;
  }
  CheckpointStore store() const { return CheckpointStore(folder_); }

  ServerOptions options_ = test_options();
  std::shared_ptr<Server> server_;
  std::string folder_;
  uint32_t pushes_ = 0;
  uint64_t epoch_ = 100;  // of the server loaded last
  std::optional<Manifest> committed_;
};

TEST_F(Chains, EachSaveAddsWhatChanged) {
  for (int i = 0; i < 7; ++i) {
    push();
    const Manifest m = save(server_.get(), committed_ ? committed_->number : 0);
    EXPECT_EQ(increments(m), i == 0  ? 0U
                             : i < 6 ? kShards
                                     : kShards * 3 / 4)
        << "dense shards are always whole; whole files are spread over several saves";
    expect_loads_as_now(m);
    commit(m);
  }
  EXPECT_TRUE(store().prune(1).is_ok());
  expect_loads_as_now(*committed_);
}

TEST_F(Chains, ASaveThatWasNeverCommittedIsNoBase) {
  push(200);
  commit(save(server_.get(), 0));
  push();
  save(server_.get(), committed_->number);  // lost
  push();
  const Manifest after = save(server_.get(), committed_->number);
  EXPECT_EQ(increments(after), kShards);
  EXPECT_EQ(after.shards[0].chain.size(), 1U) << "on the committed one, not on the lost one";
  expect_loads_as_now(after);
  commit(after);
  push();
  save(server_.get(), committed_->number);
  save(server_.get(), committed_->number);
  const Manifest none = save(server_.get(), 0);
  EXPECT_EQ(increments(none), 0U) << "the coordinator wants no base";
  expect_loads_as_now(none);
  const Manifest back = save(server_.get(), committed_->number);
  EXPECT_EQ(increments(back), kShards) << "the base is still known";
  expect_loads_as_now(back);
}

TEST_F(Chains, AFailedWriteLosesNoChange) {
  push(200);
  commit(save(server_.get(), 0));
  push();
  const uint64_t number = store().begin().value();
  ASSERT_TRUE(store().abandon(number).is_ok());  // no folder: nothing can be written
  const AdminCall all = server_->primaries();
  EXPECT_FALSE(server_->save(all, folder_, number, committed_->number).is_ok());
  push();
  const Manifest m = save(server_.get(), committed_->number);
  EXPECT_EQ(increments(m), kShards);
  expect_loads_as_now(m);
  // Even if it were said to be committed: what was not written is no base.
  push();
  const uint64_t again = store().begin().value();
  ASSERT_TRUE(store().abandon(again).is_ok());
  EXPECT_FALSE(server_->save(all, folder_, again, committed_->number).is_ok());
  EXPECT_EQ(increments(save(server_.get(), again)), 0U);
}

TEST_F(Chains, ALoadedServerGoesOnFromWhatItLoaded) {
  push(200);
  commit(save(server_.get(), 0));
  push();
  commit(save(server_.get(), committed_->number));
  server_ = loaded(*committed_);
  push();
  const Manifest m = save(server_.get(), committed_->number);
  EXPECT_EQ(increments(m), kShards);
  EXPECT_EQ(m.shards[0].chain.size(), 2U);
  expect_loads_as_now(m);
  // A server that took the shard over otherwise has no base.
  ServerOptions options = options_;
  options.epoch = {1, epoch_ + 1};
  auto other = Server::create(options).value();
  for (const ShardId s : TestCluster::every_shard())
    ASSERT_TRUE(other->load(server_->image(s)).is_ok());
  EXPECT_EQ(increments(save(other.get(), committed_->number)), 0U);
}

// Two saves of one shard at once: the later one ends the former, and loses nothing by it.
TEST_F(Chains, ASaveThatBeginsEndsTheOneUnderWay) {
  const TableOptions table;
  const auto rule = make_optimizer(table.optimizer).value();
  std::vector<SparseShard> tables;
  tables.emplace_back(table, rule.get(), make_row_arena(table));
  const ShardReplica replica(0, kLife, {1, 1});
  const ShardParts parts{&replica, tables, {&table, 1}, nullptr, 1};
  const std::vector<Key> keys{1, 2, 3, 4, 5, 6, 7, 8};
  const std::vector<float> gradients(keys.size() * table.dim, 0.5F);
  const std::vector<uint32_t> counts(keys.size(), 1);
  tables[0].push(keys, gradients.data(), counts.data());
  ShardSaves saves;
  ShardCopy first, second;
  first.begin(parts, &saves, 1, 0, {});
  ASSERT_TRUE(first.step(parts, &saves, 1).value()) << "there is more";
  second.begin(parts, &saves, 2, 0, {});
  EXPECT_EQ(first.step(parts, &saves).status().code(), Code::kUnavailable);
  EXPECT_FALSE(second.step(parts, &saves).value());
  EXPECT_EQ(second.whole.tables[0].bytes, copy_whole(parts).tables[0].bytes);
  saves.wrote(1, second.report({"", 100, 0}));
  ShardCopy third;
  third.begin(parts, &saves, 3, 2, {8, 1e9});
  EXPECT_FALSE(third.incremental) << "the file of save 2 was never written";
  EXPECT_FALSE(third.step(parts, &saves).value());
  saves.wrote(3, third.report({"", 100, 0}));
  ShardCopy fourth;
  fourth.begin(parts, &saves, 4, 3, {8, 1e9});
  EXPECT_TRUE(fourth.incremental);
}

TEST_F(Chains, OnlyTheShardsAskedFor) {
  push();
  const uint64_t number = store().begin().value();
  const AdminCall some{kLife, 1, {1, 4, kShards}, {{1, 1}, {1, 1}, {1, 1}}};
  const auto saved = server_->save(some, folder_, number, 0);
  ASSERT_TRUE(saved.is_ok());
  ASSERT_EQ(saved.value().size(), 3U);
  EXPECT_EQ(saved.value()[1].shard, 4U);
  EXPECT_EQ(saved.value()[2].name, "shard-00008");
  EXPECT_FALSE(server_->save({kLife, 1, {999}, {{1, 1}}}, folder_, number, 0).is_ok());
}

// A checkpoint of one server, restored on three: each goes on with increments of its own shards.
TEST_F(Chains, RestoredOnAnotherNumberOfServers) {
  push(300);
  commit(save(server_.get(), 0));
  push();
  commit(save(server_.get(), committed_->number));
  const std::vector<std::vector<ShardId>> places = {{0, 3, 6, 9}, {1, 4, 7, 10}, {2, 5, 8}};
  std::vector<std::shared_ptr<Server>> servers;
  uint64_t hash = 0;
  for (const auto& shards : places) {
    servers.push_back(loaded(*committed_, 2, &shards));
    hash += servers.back()->content_hash();
  }
  EXPECT_EQ(hash, server_->content_hash());
  push();  // the reference goes on with everything, they with their parts
  Manifest m;
  m.number = store().begin().value();
  m.shards.resize(server_->shard_count());
  for (const auto& server : servers) {
    TestPush part(pushes_ - 1, test_batch(pushes_ - 1), 40, *server);
    for (const ShardId s : part.shards) part.epochs[s] = server->state(s).epoch;
    send_push(server.get(), part.request);  // shards that are elsewhere refuse
    const auto saved = server->save(server->primaries(), folder_, m.number, committed_->number);
    ASSERT_TRUE(saved.is_ok()) << saved.status().message();
    for (const SavedShard& s : saved.value()) {
      EXPECT_EQ(s.incremental, s.shard < kShards);
      m.shards[s.shard] = entry_of(s);
    }
  }
  expect_loads_as_now(m);
}

// What a former primary saved is no business of the backup that takes its place.
TEST_F(Chains, APromotedBackupWritesWhole) {
  TestCluster cluster;
  cluster.add_pair(options_);
  std::vector<std::unique_ptr<Pushed>> pushes;
  const auto push_to = [&](ServerId leader, size_t keys) {
    const auto n = static_cast<uint32_t>(pushes.size());
    pushes.push_back(std::make_unique<Pushed>(n, n, *cluster.servers[0], keys));
    pushes.back()->send(cluster.servers[leader].get());
    ASSERT_TRUE(pushes.back()->replicated());
  };
  const auto save_of = [&](ServerId i) {
    server_ = cluster.servers[i];
    const Manifest m = save(server_.get(), committed_ ? committed_->number : 0);
    expect_loads_as_now(m);
    return m;
  };
  push_to(0, 200);
  commit(save_of(0));
  push_to(0, 40);
  commit(save_of(0));
  EXPECT_EQ(increments(*committed_), kShards);
  push_to(0, 40);
  // A backup saves nothing, also when it is asked.
  AdminCall call = cluster.servers[0]->primaries();
  EXPECT_FALSE(cluster.servers[1]->save(call, folder_, 99, committed_->number).is_ok());
  cluster.servers[0]->assign(TestCluster::all(ReplicaRole::kBackup, kNoServer, {1, 2})).value();
  cluster.servers[1]->assign(TestCluster::all(ReplicaRole::kPrimary, 0, {1, 2})).value();
  push_to(1, 40);
  const Manifest lost = save_of(1);
  EXPECT_EQ(increments(lost), 0U) << "it knows no save";
  push_to(1, 40);
  // Back to the first, before anything was committed: its base is still the newest checkpoint, and
  // it has followed every change since.
  cluster.servers[1]->assign(TestCluster::all(ReplicaRole::kBackup, kNoServer, {1, 3})).value();
  cluster.servers[0]->assign(TestCluster::all(ReplicaRole::kPrimary, 1, {1, 3})).value();
  push_to(0, 40);
  const Manifest back = save_of(0);
  EXPECT_EQ(increments(back), kShards);
  // And again, after the second one's save was committed: now it knows less than there is.
  cluster.servers[0]->assign(TestCluster::all(ReplicaRole::kBackup, kNoServer, {1, 4})).value();
  cluster.servers[1]->assign(TestCluster::all(ReplicaRole::kPrimary, 0, {1, 4})).value();
  push_to(1, 40);
  commit(save_of(1));
  EXPECT_EQ(increments(*committed_), 0U);
  cluster.servers[1]->assign(TestCluster::all(ReplicaRole::kBackup, kNoServer, {1, 5})).value();
  cluster.servers[0]->assign(TestCluster::all(ReplicaRole::kPrimary, 1, {1, 5})).value();
  push_to(0, 40);
  EXPECT_EQ(increments(save_of(0)), 0U);
}

// A copy of the shard's rows knows no save of them.
TEST_F(Chains, AMovedShardWritesWhole) {
  TestCluster cluster;
  cluster.add_alone(options_);
  Pushed first(0, 0, *cluster.servers[0], 200);
  first.send(cluster.servers[0].get());
  server_ = cluster.servers[0];
  commit(save(server_.get(), 0));
  std::optional<Status> copied;
  copy_all(server_.get(), server_->primaries(), 1, "1",
           [&](const Status& status) { copied = status; });
  ASSERT_TRUE(cluster.clock.run_until([&] { return copied.has_value(); }));
  ASSERT_TRUE(copied->is_ok()) << copied->message();
  cluster.servers[0]->assign(TestCluster::all(ReplicaRole::kPrimary, 1, {1, 2})).value();
  cluster.servers[1]->assign(TestCluster::all(ReplicaRole::kBackup, kNoServer, {1, 2})).value();
  cluster.servers[1]->assign(TestCluster::all(ReplicaRole::kPrimary, kNoServer, {1, 3})).value();
  Pushed second(1, 1, *cluster.servers[0]);
  second.send(cluster.servers[1].get());
  server_ = cluster.servers[1];
  const Manifest m = save(server_.get(), committed_->number);
  EXPECT_EQ(increments(m), 0U);
  expect_loads_as_now(m);
}

class ChainsInSlices : public Chains, public testing::WithParamInterface<size_t> {};
INSTANTIATE_TEST_SUITE_P(Bytes, ChainsInSlices, testing::Values(size_t{1} << 20, size_t{300}));

// Two threads write while two others push: each file is one moment of its shard, also if pushes
// come between the slices that it is copied in.
TEST_P(ChainsInSlices, SavesBesidePushes) {
  options_.file_threads = 2;
  options_.slice_bytes = GetParam();
  server_ = make_test_server(options_);
  push(400);
  commit(save(server_.get(), 0));
  std::vector<std::thread> pushers;
  for (uint32_t t = 0; t < 2; ++t)
    pushers.emplace_back([&, t] {
      for (uint32_t i = 0; i < 40; ++i) {
        const uint32_t n = 1 + i * 2 + t;
        const TestPush push(n, test_batch(n), 40, *server_);
        send_push(server_.get(), push.request);
      }
    });
  for (int i = 0; i < 6; ++i) {
    const Manifest m = save(server_.get(), committed_->number);
    const auto copy = loaded(m, 2);
    for (ShardId s = 0; s < kShards; ++s)
      EXPECT_EQ(counts_in(copy->image(s)), counts_by_ledger(copy->replica(s)));
    if (i % 2 == 0) commit(m);
  }
  for (std::thread& thread : pushers) thread.join();
  const Manifest m = save(server_.get(), committed_->number);
  EXPECT_GT(increments(m), 0U);
  expect_loads_as_now(m);
}

}  // namespace
}  // namespace flux
