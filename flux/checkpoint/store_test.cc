// The store in a scratch folder: what exists when, what is removed, what is refused and advised.
#include "flux/checkpoint/store.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>

#include <gtest/gtest.h>

#include "flux/storage/atomic_file.h"

namespace flux {
namespace {

class StoreTest : public testing::Test {
 protected:
  StoreTest() {
    std::string name = testing::TempDir() + "flux_store_XXXXXX";
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
    store_.emplace(folder_);
  }
  ~StoreTest() override { std::filesystem::remove_all(folder_); }

  // Writes a checkpoint of one shard and one file; without `commit`, all but the manifest.
  Manifest write(bool commit = true) {
    Manifest m;
    const auto number = store_->begin();
    EXPECT_TRUE(number.is_ok());
    m.number = number.value();
    ShardImage image;
    image.replica = ShardReplica(0, 5, {1, 1});
    EXPECT_TRUE(image.replica.open_pass(0, m.number).is_ok());
    image.shards = 1;
    const auto shard = store_->add(m.number, "shard-00000", encode_shard(image));
    EXPECT_TRUE(shard.is_ok());
    m.shards.push_back({shard.value(), image.replica.op(), image.replica.stream_hash(), 0});
    const auto file = store_->add(m.number, "geometry.json", "{\"a\": 1}");
    EXPECT_TRUE(file.is_ok());
    m.files.push_back(file.value());
    if (commit) {
      EXPECT_TRUE(store_->commit(m).is_ok());
    }
    return m;
  }
  void put(const std::string& path, const std::string& content) const {
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path, std::ios::binary) << content;
  }
  std::string manifest_path(uint64_t n) const { return store_->path_of(n) + "/manifest.json"; }

  std::string folder_;
  std::optional<CheckpointStore> store_;
};

TEST_F(StoreTest, ExistsFromTheManifestOn) {
  EXPECT_TRUE(store_->committed().value().empty());
  EXPECT_EQ(store_->load_newest().status().code(), Code::kNotFound);
  const Manifest m = write(false);
  EXPECT_EQ(m.number, 1U);
  EXPECT_TRUE(store_->committed().value().empty());
  EXPECT_EQ(store_->load_newest().status().code(), Code::kNotFound);
  ASSERT_TRUE(store_->commit(m).is_ok());
  EXPECT_EQ(store_->committed().value(), std::vector<uint64_t>{1});
  EXPECT_EQ(list_folder(store_->path_of(1)),
            (std::vector<std::string>{"geometry.json", "manifest.json", "shard-00000"}));
  write();
  const auto newest = store_->load_newest();
  ASSERT_TRUE(newest.is_ok());
  EXPECT_EQ(newest.value().number, 2U);
  EXPECT_EQ(store_->load(1).value().number, 1U);
  EXPECT_EQ(store_->read(newest.value(), newest.value().files[0]).value(), "{\"a\": 1}");
  const auto image = store_->read_shard(newest.value(), 0);
  ASSERT_TRUE(image.is_ok()) << image.status().message();
  EXPECT_EQ(image.value().replica.geometry(0), 2U);
}

TEST_F(StoreTest, ABegunNumberTakesNothingOverFromALeftover) {
  write();
  put(store_->path_of(2) + "/shard-00099", "left over");
  EXPECT_EQ(store_->begin().value(), 3U);
  EXPECT_TRUE(list_folder(store_->path_of(3)).empty());
}

// Two coordinators that both believe to be the one: neither gets the other's number, not even after
// one has cleared the other's folder away.
TEST_F(StoreTest, ANumberIsNeverGivenTwice) {
  CheckpointStore other(folder_);
  const uint64_t mine = store_->begin().value();
  const uint64_t theirs = other.begin().value();
  EXPECT_NE(mine, theirs);
  ASSERT_TRUE(other.remove_leftovers().is_ok());
  EXPECT_GT(other.begin().value(), theirs);
  ASSERT_TRUE(store_->abandon(5).is_ok());
  EXPECT_EQ(store_->begin(7).value(), 8U);
  EXPECT_EQ(store_->begin().value(), 9U);
  EXPECT_EQ(list_folder(folder_ + "/.claims"), std::vector<std::string>{"000009"});
}

TEST_F(StoreTest, ALateCommitIsRefused) {
  const Manifest late = write(false);
  write();
  const Status status = store_->commit(late);
  EXPECT_EQ(status.code(), Code::kStale) << status.message();
  EXPECT_EQ(store_->committed().value(), std::vector<uint64_t>{2});
  const Manifest cleared = write(false);
  ASSERT_TRUE(store_->remove_leftovers().is_ok());
  EXPECT_EQ(store_->commit(cleared).code(), Code::kCorrupt) << "its files were taken away";
  EXPECT_EQ(store_->committed().value(), std::vector<uint64_t>{2});
}

TEST_F(StoreTest, RemovesLeftoversAndNothingElse) {
  write();
  write(false);  // number 2, without a manifest
  put(folder_ + "/000009/manifest.json.tmp", "half");
  put(folder_ + "/something.tmp", "half");
  put(store_->path_of(1) + "/manifest.json.tmp", "half");
  put(folder_ + "/notes.txt", "a person's");
  put(folder_ + "/old/keep", "a person's");
  ASSERT_TRUE(store_->remove_leftovers().is_ok());
  EXPECT_EQ(list_folder(folder_),
            (std::vector<std::string>{".claims", "000001", "notes.txt", "old"}));
  EXPECT_EQ(list_folder(store_->path_of(1)),
            (std::vector<std::string>{"geometry.json", "manifest.json", "shard-00000"}));
  EXPECT_TRUE(store_->load_newest().is_ok());
}

// Else a job would begin anew beside its checkpoints, and remove them as leftovers.
TEST_F(StoreTest, WhatCannotBeReadIsNoEmptyFolder) {
  write();
  const std::string manifest = manifest_path(1);
  std::filesystem::rename(manifest, manifest + ".away");
  std::filesystem::create_symlink(manifest, manifest);  // a link to itself
  EXPECT_EQ(store_->committed().value(), std::vector<uint64_t>{1});
  const Status newest = store_->load_newest().status();
  EXPECT_FALSE(newest.is_ok());
  EXPECT_NE(newest.code(), Code::kNotFound) << newest.message();
  ASSERT_TRUE(store_->remove_leftovers().is_ok());
  EXPECT_EQ(list_folder(store_->path_of(1)).size(), 4U) << "nothing of it is removed";

  put(folder_ + "/file", "no folder");
  const CheckpointStore no_folder(folder_ + "/file");
  EXPECT_FALSE(no_folder.committed().is_ok());
  EXPECT_FALSE(no_folder.load_newest().is_ok());
  EXPECT_NE(no_folder.load_newest().status().code(), Code::kNotFound);
  EXPECT_FALSE(no_folder.remove_leftovers().is_ok());
  EXPECT_FALSE(no_folder.prune(1).is_ok());
}

TEST_F(StoreTest, PruneKeepsTheNewest) {
  for (int i = 0; i < 5; ++i) write();
  ASSERT_TRUE(store_->prune(9).is_ok());
  EXPECT_EQ(store_->committed().value().size(), 5U);
  ASSERT_TRUE(store_->prune(2).is_ok());
  EXPECT_EQ(store_->committed().value(), (std::vector<uint64_t>{4, 5}));
  EXPECT_EQ(list_folder(folder_), (std::vector<std::string>{".claims", "000004", "000005"}));
  EXPECT_EQ(store_->begin().value(), 6U);
}

TEST_F(StoreTest, AdviceNamesTheOthers) {
  write();
  write();
  const Manifest bad = write();
  put(store_->path_of(3) + "/geometry.json", "{\"a\": 2}");
  const Status flipped = store_->read(bad, bad.files[0]).status();
  EXPECT_EQ(flipped.code(), Code::kCorrupt);
  const std::string& text = flipped.message();
  EXPECT_NE(text.find(store_->path_of(3) + "/geometry.json"), std::string::npos) << text;
  EXPECT_NE(text.find(store_->path_of(1) + " or " + store_->path_of(2)), std::string::npos) << text;
  EXPECT_NE(text.find("--fresh"), std::string::npos) << text;
  ASSERT_TRUE(store_->prune(1).is_ok());
  const Status alone = store_->read(bad, bad.files[0]).status();
  EXPECT_NE(alone.message().find("no other checkpoint"), std::string::npos) << alone.message();
}

TEST_F(StoreTest, EveryDamageIsCorrupt) {
  const Manifest m = write();
  const std::string shard = store_->path_of(1) + "/shard-00000";
  const std::string whole = read_whole_file(shard, 1 << 20).value();
  const auto expect_corrupt = [&](const char* what) {
    const auto image = store_->read_shard(m, 0);
    ASSERT_FALSE(image.is_ok()) << what;
    EXPECT_EQ(image.status().code(), Code::kCorrupt) << what;
    EXPECT_NE(image.status().message().find(shard), std::string::npos) << what;
  };
  put(shard, whole.substr(1));
  expect_corrupt("shorter");
  put(shard, whole + "x");
  expect_corrupt("longer");
  put(shard, "");
  expect_corrupt("empty");
  std::filesystem::remove(shard);
  expect_corrupt("gone");
  ShardImage other;  // a good file of the same size, but not this one
  other.replica = ShardReplica(0, 5, {1, 1});
  ASSERT_TRUE(other.replica.open_pass(0, 77).is_ok());
  other.shards = 1;
  ASSERT_EQ(encode_shard(other).size(), whole.size());
  put(shard, encode_shard(other));
  expect_corrupt("another shard's");
  put(shard, whole);
  EXPECT_TRUE(store_->read_shard(m, 0).is_ok());
}

TEST_F(StoreTest, ANewestManifestThatIsBadIsNotSkipped) {
  write();
  write();
  const std::string good = read_whole_file(manifest_path(2), 1 << 20).value();
  put(manifest_path(2), good.substr(0, good.size() / 2));
  const auto newest = store_->load_newest();
  ASSERT_FALSE(newest.is_ok()) << "nothing ever falls back silently";
  EXPECT_EQ(newest.status().code(), Code::kCorrupt);
  EXPECT_NE(newest.status().message().find(store_->path_of(1)), std::string::npos);
  put(manifest_path(2), read_whole_file(manifest_path(1), 1 << 20).value());
  EXPECT_FALSE(store_->load_newest().is_ok()) << "a manifest of another number";
}

}  // namespace
}  // namespace flux
