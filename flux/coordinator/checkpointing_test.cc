// Checkpoints by a server whose ledgers the test writes: what the audit lets pass and what not.
#include "flux/coordinator/checkpointing.h"

#include <cstdlib>
#include <filesystem>
#include <functional>

#include <gtest/gtest.h>

#include "flux/api/saved_shard.h"
#include "flux/storage/atomic_file.h"

namespace flux {
namespace {

constexpr uint64_t kLife = 5;
constexpr uint32_t kPass = 1;

Geometry make_geometry() {
  Geometry g;
  g.format = "criteo_tsv";
  g.batch_size = 10;
  g.files = {{"a.tsv", 100, 75, Packing::kPlain}};
  g.blocks = {{0, 0, 50, 0, 40}, {0, 50, 100, 40, 35}};  // both of four batches
  return g;
}

// Three shards that have every batch of the pass, two epochs long.
class FakeServer {
 public:
  explicit FakeServer(const Geometry& geometry) {
    for (ShardId s = 0; s < 3; ++s) {
      ShardImage image;
      image.shards = 3;
      image.replica = ShardReplica(s, kLife, {1, 1});
      image.replica.close_below(kPass);
      EXPECT_TRUE(image.replica.open_pass(kPass, geometry.hash()).is_ok());
      images.push_back(image);
    }
  }
  void mark(ShardId shard, uint16_t epoch, uint32_t block, uint8_t batch, Verdict verdict = {}) {
    const BatchId id{{kPass, 0, epoch, block}, batch, 4};
    images[shard].replica.commit({kLife, images[shard].replica.geometry(kPass), {id}, verdict}, 0);
  }
  // Marks everything but what `left_out` says.
  void mark_all(const std::function<bool(ShardId, uint16_t, uint32_t, uint8_t)>& left_out) {
    for (ShardId s = 0; s < images.size(); ++s)
      for (uint16_t epoch = 0; epoch < 2; ++epoch)
        for (uint32_t block = 0; block < 2; ++block)
          for (uint8_t b = 0; b < 4; ++b)
            if (!left_out(s, epoch, block, b)) mark(s, epoch, block, b);
  }
  Result<std::vector<SavedShard>> save(const std::string& folder, uint64_t number) const {
    std::vector<SavedShard> saved;
    for (const ShardImage& image : images) {
      if (fails && !saved.empty()) return error(Code::kIo, "disk full");
      const std::string name = fmt::format("shard-{:05}", image.replica.shard());
      FLUX_ASSIGN_OR_RETURN(const FileInfo file,
                            CheckpointStore(folder).add(number, name, encode_shard(image)));
      saved.push_back({image.replica.shard(), name, file.bytes, file.hash, image.replica.op(),
                       image.replica.stream_hash(), 0});
    }
    return saved;
  }

  std::vector<ShardImage> images;
  bool fails = false;
};

// As the coordinator does it: begin, let the servers save, commit.
Result<Manifest> write_checkpoint(const CheckpointStore& store, const std::string& folder,
                                  const FakeServer* server, Manifest base, const Geometry* geometry,
                                  const PassToClose* closing) {
  FLUX_ASSIGN_OR_RETURN(base.number, store.begin());
  const auto saved = server->save(folder, base.number);
  if (!saved.is_ok()) {
    EXPECT_TRUE(store.abandon(base.number).is_ok());
    return saved.status();
  }
  FLUX_ASSIGN_OR_RETURN(base.shards, link_shards(saved.value(), nullptr));
  return commit_checkpoint(store, std::move(base), geometry, closing);
}

bool nothing(ShardId, uint16_t, uint32_t, uint8_t) {
  return false;
}

class Checkpointing : public testing::Test {
 protected:
  Checkpointing() {
    std::string name = testing::TempDir() + "flux_coordinator_XXXXXX";
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  ~Checkpointing() override { std::filesystem::remove_all(folder_); }
  Result<Manifest> close() {
    const PassToClose closing{kPass, {2, 1, 2}, &geometry_};
    Manifest base;
    base.incarnation = kLife;
    base.job = "j";
    base.closed.push_back({"pass", 75, 2, geometry_.hash(), 0});
    return write_checkpoint(CheckpointStore(folder_), folder_, &server_, base, nullptr, &closing);
  }
  // The pass does not close, the message says why, and no trace is left.
  void expect_refused(const std::string& why) {
    const auto result = close();
    ASSERT_FALSE(result.is_ok()) << why;
    EXPECT_EQ(result.status().code(), Code::kCorrupt);
    EXPECT_NE(result.status().message().find(why), std::string::npos) << result.status().message();
    EXPECT_EQ(list_folder(folder_), std::vector<std::string>{".claims"});
  }

  Geometry geometry_ = make_geometry();
  FakeServer server_{geometry_};
  std::string folder_;
};

TEST_F(Checkpointing, CompleteLedgersPass) {
  server_.mark_all(nothing);
  const auto result = close();
  ASSERT_TRUE(result.is_ok()) << result.status().message();
  EXPECT_EQ(result.value().number, 1U);
  EXPECT_EQ(result.value().shards.size(), 3U);
  EXPECT_TRUE(result.value().files.empty());
  const auto loaded = CheckpointStore(folder_).load_newest();
  ASSERT_TRUE(loaded.is_ok());
  EXPECT_EQ(encode_manifest(loaded.value()), encode_manifest(result.value()));
}

TEST_F(Checkpointing, AgreedVerdictsPass) {
  const auto left = [](ShardId, uint16_t e, uint32_t k, uint8_t b) { return e + k + b == 0; };
  server_.mark_all(left);
  for (ShardId s = 0; s < 3; ++s) server_.mark(s, 0, 0, 0, Verdict::kSkipped);
  EXPECT_TRUE(close().is_ok());
}

// A batch that was skipped while some shards had it already: nobody has to be asked about it.
TEST_F(Checkpointing, SkippedOnSomeShardsAndAppliedOnOthersPasses) {
  const auto left = [](ShardId s, uint16_t e, uint32_t k, uint8_t b) {
    return s != 1 && e == 1 && k == 1 && b == 3;
  };
  server_.mark_all(left);
  server_.mark(0, 1, 1, 3, Verdict::kSkipped);
  server_.mark(2, 1, 1, 3, Verdict::kSkipped);
  const auto result = close();
  ASSERT_TRUE(result.is_ok()) << result.status().message();
  ASSERT_EQ(result.value().closed.size(), 1U);
  EXPECT_EQ(result.value().closed[0].skipped_examples, 5U) << "the last batch of the second block";
}

TEST_F(Checkpointing, DroppedIsNotSkipped) {
  const auto left = [](ShardId s, uint16_t e, uint32_t k, uint8_t b) {
    return s == 2 && e + k + b == 0;
  };
  server_.mark_all(left);
  server_.mark(2, 0, 0, 0, Verdict::kDropped);
  expect_refused("shard 2 and shard 0 disagree about pass 1 phase 0 epoch 0 block 0 batch 0");
}

TEST(LinkShards, AnIncrementComesBehindTheFilesOfTheLastCheckpoint) {
  Manifest last;
  last.number = 7;
  last.shards.push_back({{"shard-00000", 100, 1}, 10, 11, 5});
  last.shards.push_back({{"shard-00001.changes", 9, 2}, 20, 21, 6});
  last.shards[1].chain.push_back({5, {"shard-00001", 90, 3}, 15, 16});
  std::vector<SavedShard> saved = {{0, "shard-00000.changes", 8, 4, 30, 31, 7, true, 10, 11},
                                   {1, "shard-00001", 7, 5, 40, 41, 8}};
  auto linked = link_shards(saved, &last);
  ASSERT_TRUE(linked.is_ok()) << linked.status().message();
  EXPECT_EQ(linked.value()[0].file, (FileInfo{"shard-00000.changes", 8, 4}));
  EXPECT_EQ(linked.value()[0].chain,
            (std::vector<ChainLink>{{7, {"shard-00000", 100, 1}, 10, 11}}));
  EXPECT_TRUE(linked.value()[1].chain.empty());
  saved[1] = {1, "shard-00001.changes", 7, 5, 40, 41, 8, true, 20, 21};
  linked = link_shards(saved, &last);
  ASSERT_TRUE(linked.is_ok());
  EXPECT_EQ(linked.value()[1].chain,
            (std::vector<ChainLink>{{5, {"shard-00001", 90, 3}, 15, 16},
                                    {7, {"shard-00001.changes", 9, 2}, 20, 21}}));
  // What does not continue the last checkpoint, or has none.
  EXPECT_EQ(link_shards(saved, nullptr).status().code(), Code::kCorrupt);
  std::vector<SavedShard> bad = saved;
  bad[1].base_op = 19;
  EXPECT_EQ(link_shards(bad, &last).status().code(), Code::kCorrupt);
  bad = saved;
  bad[0].base_stream_hash = 0;
  EXPECT_EQ(link_shards(bad, &last).status().code(), Code::kCorrupt);
  std::swap(saved[0], saved[1]);
  EXPECT_EQ(link_shards(saved, &last).status().code(), Code::kCorrupt);
}

TEST_F(Checkpointing, OneMissingBatchOnOneShard) {
  server_.mark_all([](ShardId s, uint16_t epoch, uint32_t block, uint8_t b) {
    return s == 2 && epoch == 1 && block == 1 && b == 3;
  });
  expect_refused("shard 2 lacks batches of pass 1 phase 0 epoch 1 block 1");
}

TEST_F(Checkpointing, OneMissingBlockOnTheFirstShard) {
  server_.mark_all([](ShardId s, uint16_t epoch, uint32_t block, uint8_t) {
    return s == 0 && epoch == 0 && block == 0;
  });
  expect_refused("shard 0 lacks batches of pass 1 phase 0 epoch 0 block 0");
}

TEST_F(Checkpointing, ADisagreeingVerdict) {
  server_.mark_all([](ShardId s, uint16_t epoch, uint32_t block, uint8_t b) {
    return s == 1 && epoch == 1 && block == 0 && b == 2;
  });
  server_.mark(1, 1, 0, 2, Verdict::kLost);
  expect_refused("shard 1 and shard 0 disagree about pass 1 phase 0 epoch 1 block 0 batch 2");
}

TEST_F(Checkpointing, AnotherGeometry) {
  Geometry other = geometry_;
  other.shuffle_seed = 9;
  server_ = FakeServer(other);
  server_.mark_all(nothing);
  expect_refused("shard 0: pass 1 has another geometry");
}

TEST_F(Checkpointing, AnotherIncarnation) {
  server_.mark_all(nothing);
  server_.images[1].replica.set_incarnation(kLife + 1);
  expect_refused("shard 1 belongs to another incarnation");
}

TEST_F(Checkpointing, AnotherWatermark) {
  server_.mark_all(nothing);
  server_.images[2].replica.close_below(kPass + 1);
  expect_refused("shard 2: watermark 2, pass 1 is closing");
}

TEST_F(Checkpointing, AnOpenPassNeedsNoCompleteLedgers) {
  Manifest base;
  base.geometry = geometry_.hash();
  const auto result =
      write_checkpoint(CheckpointStore(folder_), folder_, &server_, base, &geometry_, nullptr);
  ASSERT_TRUE(result.is_ok()) << result.status().message();
  ASSERT_EQ(result.value().files.size(), 1U);
  const auto text = CheckpointStore(folder_).read(result.value(), result.value().files[0]);
  ASSERT_TRUE(text.is_ok());
  EXPECT_EQ(Geometry::from_json(text.value()).value().hash(), geometry_.hash());
}

TEST_F(Checkpointing, AFailedSaveLeavesTheOldOne) {
  server_.mark_all(nothing);
  ASSERT_TRUE(close().is_ok());
  server_.fails = true;
  EXPECT_EQ(close().status().code(), Code::kIo);
  EXPECT_EQ(CheckpointStore(folder_).committed().value(), std::vector<uint64_t>{1});
  EXPECT_FALSE(std::filesystem::exists(CheckpointStore(folder_).path_of(2)));
}

}  // namespace
}  // namespace flux
