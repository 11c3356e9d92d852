// Checkpoints that build on each other: what is read, kept, refused and advised; and prune() and
// begin() killed at every step.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>

#include <gtest/gtest.h>

#include "flux/base/hash.h"
#include "flux/checkpoint/store.h"
#include "flux/checkpoint/test_increments.h"
#include "flux/storage/atomic_file.h"

namespace flux {
namespace {

using test::PlainShard;

// Real files of a process that dies in the middle of its n-th change; a folder is removed one file
// after the other, and one may be the last.
class DyingFiles final : public Files {
 public:
  int64_t left = 1LL << 60;  // changes until death

  Status write_atomic(const std::string& path, std::string_view content) override {
    if (!step()) {
      if (left == -1) (void)real_files().write_synced(path + ".tmp", content.substr(0, 3));
      return dead();
    }
    return real_files().write_atomic(path, content);
  }
  Status write_synced(const std::string& path, std::string_view content) override {
    if (!step()) {
      if (left == -1) (void)real_files().write_synced(path, content.substr(0, content.size() / 2));
      return dead();
    }
    return real_files().write_synced(path, content);
  }
  Status create_exclusive(const std::string& path, std::string_view content) override {
    return step() ? real_files().create_exclusive(path, content) : dead();
  }
  Status append_synced(const std::string& path, std::string_view content) override {
    return step() ? real_files().append_synced(path, content) : dead();
  }
  Result<std::string> read(const std::string& path, uint64_t bytes_max) override {
    return real_files().read(path, bytes_max);
  }
  Status make_folders(const std::string& path) override {
    return step() ? real_files().make_folders(path) : dead();
  }
  Status sync_folder(const std::string& path) override {
    return step() ? real_files().sync_folder(path) : dead();
  }
  bool exists(const std::string& path) override { return real_files().exists(path); }
  Result<std::vector<std::string>> list(const std::string& folder) override {
    return real_files().list(folder);
  }
  Status remove_all(const std::string& path) override {
    for (const std::string& name : list_folder(path))
      if (!step() || !real_files().remove_all(join_path(path, name)).is_ok()) return dead();
    return step() ? real_files().remove_all(path) : dead();
  }

 private:
  bool step() { return left >= 0 && --left >= 0; }
  static Status dead() { return error(Code::kIo, "the process died"); }
};

class ChainStore : public testing::Test {
 protected:
  ChainStore() {
    std::string name = testing::TempDir() + "flux_chain_XXXXXX";
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    root_ = name;
    use("main");
    for (ShardId s = 0; s < 3; ++s) shards_.emplace_back(s, s + 1);
  }
  ~ChainStore() override { std::filesystem::remove_all(root_); }

  void use(const std::string& name) {
    folder_ = root_ + "/" + name;
    store_.emplace(folder_, &files_);
  }
  // A checkpoint of all shards; shard s is written whole if its bit is set, else behind `last_`.
  Result<Manifest> write(uint32_t whole) {
    Manifest m;
    FLUX_ASSIGN_OR_RETURN(m.number, store_->begin());
    for (size_t s = 0; s < shards_.size(); ++s) {
      PlainShard& shard = shards_[s];
      shard.change(20, true);
      const bool is_whole = !last_ || ((whole >> s) & 1U) != 0;
      const std::string name = fmt::format("shard-{:05}{}", s, is_whole ? "" : ".changes");
      const std::string bytes =
          is_whole ? encode_shard(shard.image()) : encode_increment(shard.increment());
      ShardEntry entry;
      FLUX_ASSIGN_OR_RETURN(entry.file, store_->add(m.number, name, bytes));
      entry.op = shard.replica().op();
      entry.stream_hash = shard.replica().stream_hash();
      if (!is_whole) {
        const ShardEntry& before = last_->shards[s];
        entry.chain = before.chain;
        entry.chain.push_back({last_->number, before.file, before.op, before.stream_hash});
      }
      m.shards.push_back(entry);
      shard.mark();
    }
    FLUX_ASSIGN_OR_RETURN(const FileInfo file, store_->add(m.number, "geometry.json", "{}"));
    m.files.push_back(file);
    FLUX_RETURN_IF_ERROR(store_->commit(m));
    last_ = m;
    images_[m.number].clear();
    for (const PlainShard& shard : shards_) images_[m.number].push_back(shard.image());
    return m;
  }
  // Every committed checkpoint is whole, and is what it was when it was written.
  void expect_all_good() {
    const std::vector<uint64_t> numbers = store_->committed().value();
    for (const uint64_t number : numbers) {
      const auto m = store_->load(number);
      ASSERT_TRUE(m.is_ok()) << m.status().message();
      for (size_t s = 0; s < m.value().shards.size(); ++s) {
        const auto image = store_->read_shard(m.value(), s);
        ASSERT_TRUE(image.is_ok()) << image.status().message();
        test::expect_same_shard(image.value(), images_.at(number)[s]);
        const auto state = store_->read_state(m.value(), s);
        ASSERT_TRUE(state.is_ok()) << state.status().message();
        EXPECT_EQ(state.value().ledger(), image.value().replica.ledger());
      }
      EXPECT_TRUE(store_->read(m.value(), m.value().files[0]).is_ok());
    }
  }
  std::vector<std::string> names(uint64_t number) { return list_folder(store_->path_of(number)); }
  void put(const std::string& path, const std::string& content) const {
    std::ofstream(path, std::ios::binary) << content;
  }

  std::string root_, folder_;
  DyingFiles files_;
  std::optional<CheckpointStore> store_;
  std::vector<PlainShard> shards_;
  std::optional<Manifest> last_;
  std::map<uint64_t, std::vector<ShardImage>> images_;
};

using Names = std::vector<std::string>;

TEST_F(ChainStore, ReadsWhatWasWritten) {
  for (const uint32_t whole : {0b111U, 0b000U, 0b010U, 0b000U, 0b001U, 0b000U})
    ASSERT_TRUE(write(whole).is_ok());
  expect_all_good();
  EXPECT_EQ(last_->shards[0].chain.size(), 1U);
  EXPECT_EQ(last_->shards[1].chain.size(), 3U);
  EXPECT_EQ(last_->shards[2].chain.size(), 5U);
}

TEST_F(ChainStore, PruneKeepsWhatIsNeeded) {
  for (const uint32_t whole : {0b111U, 0b000U, 0b010U, 0b000U, 0b001U, 0b000U})
    ASSERT_TRUE(write(whole).is_ok());
  ASSERT_TRUE(store_->prune(1).is_ok());
  EXPECT_EQ(store_->committed().value(), std::vector<uint64_t>{6});
  expect_all_good();
  EXPECT_EQ(names(1), (Names{"base.json", "shard-00002"}));
  EXPECT_EQ(names(2), (Names{"base.json", "shard-00002.changes"}));
  EXPECT_EQ(names(3), (Names{"base.json", "shard-00001", "shard-00002.changes"}));
  EXPECT_EQ(names(4), (Names{"base.json", "shard-00001.changes", "shard-00002.changes"}));
  EXPECT_EQ(names(5),
            (Names{"base.json", "shard-00000", "shard-00001.changes", "shard-00002.changes"}));
  ASSERT_TRUE(store_->remove_leftovers().is_ok());
  expect_all_good();
  EXPECT_EQ(names(1).size(), 2U) << "a base is no leftover";
  ASSERT_TRUE(write(0b111).is_ok());
  ASSERT_TRUE(store_->prune(1).is_ok());
  EXPECT_EQ(list_folder(folder_), (Names{".claims", "000007"}));
  expect_all_good();
  ASSERT_TRUE(store_->prune(0).is_ok());
  EXPECT_EQ(list_folder(folder_), (Names{".claims"}));
}

// Each life of the process dies one change later than the life before it; the next one clears up,
// looks at everything, prunes to the end, and everything is as if nobody had died.
TEST_F(ChainStore, PruneMayDieAnywhere) {
  for (const uint32_t whole : {0b111U, 0b000U, 0b010U, 0b000U, 0b101U, 0b000U})
    ASSERT_TRUE(write(whole).is_ok());
  const std::string original = folder_;
  use("undisturbed");
  std::filesystem::copy(original, folder_, std::filesystem::copy_options::recursive);
  ASSERT_TRUE(store_->prune(2).is_ok());
  std::map<std::string, Names> expected;
  for (const std::string& name : list_folder(folder_))
    expected[name] = list_folder(folder_ + "/" + name);
  int deaths = 0;
  for (int64_t changes = 0;; ++changes) {
    use(fmt::format("run{}", changes));
    std::filesystem::copy(original, folder_, std::filesystem::copy_options::recursive);
    files_.left = changes;
    const bool finished = store_->prune(2).is_ok();
    files_.left = 1LL << 60;
    const auto check = [&] {
      expect_all_good();
      const auto newest = store_->load_newest();
      ASSERT_TRUE(newest.is_ok()) << newest.status().message();
      EXPECT_EQ(newest.value().number, 6U);
      EXPECT_TRUE(store_->is_committed(5));
    };
    check();
    ASSERT_TRUE(store_->remove_leftovers().is_ok());
    check();
    ASSERT_TRUE(store_->prune(2).is_ok());
    for (const auto& [name, files] : expected)
      EXPECT_EQ(list_folder(folder_ + "/" + name), files) << name << ", died after " << changes;
    EXPECT_EQ(list_folder(folder_).size(), expected.size());
    std::filesystem::remove_all(folder_);
    if (finished || HasFailure()) break;
    ++deaths;
  }
  EXPECT_GT(deaths, 15);
}

// The same for a whole checkpoint: begin, files, commit, prune.
TEST_F(ChainStore, WritingMayDieAnywhere) {
  for (const uint32_t whole : {0b111U, 0b000U}) ASSERT_TRUE(write(whole).is_ok());
  const std::string original = folder_;
  const auto shards = shards_;
  const auto last = last_;
  for (int64_t changes = 0;; ++changes) {
    use(fmt::format("run{}", changes));
    std::filesystem::copy(original, folder_, std::filesystem::copy_options::recursive);
    shards_ = shards;
    last_ = last;
    files_.left = changes;
    const auto written = write(0b100);
    const bool finished = written.is_ok() && store_->prune(1).is_ok();
    files_.left = 1LL << 60;
    // The manifest may have appeared although its writer died before it knew.
    if (!written.is_ok() && store_->is_committed(3))
      for (const PlainShard& shard : shards_) images_[3].push_back(shard.image());
    expect_all_good();
    ASSERT_TRUE(store_->remove_leftovers().is_ok());
    expect_all_good();
    ASSERT_TRUE(store_->load_newest().is_ok());
    EXPECT_GE(store_->load_newest().value().number, written.is_ok() ? 3U : 2U);
    EXPECT_GE(store_->begin().value(), 3U);
    images_.erase(3);
    std::filesystem::remove_all(folder_);
    if (finished || HasFailure()) break;
    ASSERT_LT(changes, 1000);
  }
}

TEST_F(ChainStore, NothingIsPrunedWhileAFileIsMissing) {
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(write(0).is_ok());
  ASSERT_TRUE(files_.remove_all(store_->path_of(2) + "/shard-00001.changes").is_ok());
  const Status status = store_->prune(1);
  EXPECT_EQ(status.code(), Code::kCorrupt);
  EXPECT_NE(status.message().find("000002/shard-00001.changes"), std::string::npos);
  EXPECT_EQ(store_->committed().value().size(), 4U);
}

// Every byte of every file of a chain, wherever it lies.
TEST_F(ChainStore, EveryDamagedByteIsNamed) {
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(write(0).is_ok());
  const Manifest m = *last_;
  const ShardEntry& entry = m.shards[1];
  std::vector<std::pair<uint64_t, std::string>> files;
  for (const ChainLink& link : entry.chain) files.emplace_back(link.number, link.file.name);
  files.emplace_back(m.number, entry.file.name);
  ASSERT_EQ(files.size(), 3U);
  for (const auto& [number, name] : files) {
    const std::string path = join_path(store_->path_of(number), name);
    const std::string good = read_whole_file(path, 1 << 20).value();
    for (size_t at = 0; at < good.size(); ++at) {
      std::string bad = good;
      bad[at] ^= static_cast<char>(1U << (at % 8));
      put(path, bad);
      const auto image = store_->read_shard(m, 1);
      ASSERT_FALSE(image.is_ok()) << path << " byte " << at;
      EXPECT_EQ(image.status().code(), Code::kCorrupt);
      EXPECT_EQ(image.status().message().find(path + ":"), 0U) << image.status().message();
    }
    put(path, good.substr(0, good.size() - 1));
    EXPECT_EQ(store_->read_shard(m, 1).status().message().find(path + ":"), 0U);
    put(path, good);
    ASSERT_TRUE(store_->read_shard(m, 1).is_ok());
  }
}

TEST_F(ChainStore, ABadFileRulesOutAllThatUseIt) {
  ASSERT_TRUE(write(0b111).is_ok());  // 1
  ASSERT_TRUE(write(0b000).is_ok());  // 2
  ASSERT_TRUE(write(0b000).is_ok());  // 3, builds on 2
  put(store_->path_of(2) + "/shard-00000.changes", "bad");
  const std::string advice = store_->read_shard(*last_, 0).status().message();
  EXPECT_NE(advice.find(fmt::format("move {} and {} away to go on from {};", store_->path_of(2),
                                    store_->path_of(3), store_->path_of(1))),
            std::string::npos)
      << advice;
}

// Files that are each good, but not of one history.
TEST_F(ChainStore, AFileOfAnotherHistoryIsRefused) {
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(write(0).is_ok());
  Manifest m = *last_;
  ShardEntry skipped = m.shards[0];
  skipped.chain.pop_back();
  const auto broken = store_->read_shard(m.number, skipped);
  ASSERT_FALSE(broken.is_ok());
  EXPECT_NE(broken.status().message().find("does not continue the file before it"),
            std::string::npos)
      << broken.status().message();
  ShardEntry other = m.shards[0];
  other.chain[1] = {2, m.shards[1].chain[1].file, m.shards[1].chain[1].op,
                    m.shards[1].chain[1].stream_hash};
  EXPECT_EQ(store_->read_shard(m.number, other).status().code(), Code::kCorrupt);
  ShardEntry alone = m.shards[0];
  alone.chain.clear();
  EXPECT_EQ(store_->read_shard(m.number, alone).status().code(), Code::kCorrupt)
      << "an increment is no whole file";
  ShardEntry whole = m.shards[0];
  whole.chain.push_back(whole.chain[0]);
  EXPECT_EQ(store_->read_shard(m.number, whole).status().code(), Code::kCorrupt);
}

}  // namespace
}  // namespace flux
