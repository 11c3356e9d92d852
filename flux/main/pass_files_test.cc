#include "flux/main/pass_files.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

namespace flux {
namespace {

namespace fs = std::filesystem;

// A job with one closed pass, whose cut names files in a folder of the test's own.
class PassFilesTest : public testing::Test {
 protected:
  PassFilesTest() {
    std::string folder = (fs::temp_directory_path() / "flux_pass_files.XXXXXX").string();
    folder_ = mkdtemp(folder.data());
    job_.output = folder_ + "/out";
    job_.passes = {{"pass-0", {}}};
  }
  ~PassFilesTest() override { fs::remove_all(folder_); }

  std::string write(const std::string& name, const std::string& text) const {
    const fs::path path = folder_ + "/" + name;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
    return path.string();
  }
  Geometry cut_of(const std::vector<std::string>& paths) const {
    Geometry cut;
    cut.format = "criteo_tsv";
    cut.batch_size = 10;
    for (uint32_t i = 0; i < paths.size(); ++i) {
      cut.files.push_back({paths[i], fs::file_size(paths[i]), 1});
      cut.blocks.push_back({i, 0, 4, i, 1});
    }
    return cut;
  }
  void close_with(const Geometry& cut) {
    write("out/geometry/pass-00000.json", cut.to_json());
    closed_ = {{"pass-0", cut.records(), 1, cut.hash()}};
  }
  Status check(const std::vector<std::string>& train) {
    job_.passes[0].train = train;
    return check_closed_passes(job_, closed_);
  }

  std::string folder_;
  Job job_;
  std::vector<ClosedPass> closed_;
};

TEST_F(PassFilesTest, AnotherFileIsRefusedAlsoIfTheOldOneIsGone) {
  const std::string old = write("day0.tsv", "zero"), other = write("day1.tsv", "one");
  close_with(cut_of({old}));
  EXPECT_TRUE(check({old}).is_ok());
  for (const bool gone : {false, true}) {
    if (gone) fs::remove(old);
    const Status status = check({other});
    EXPECT_EQ(status.code(), Code::kInvalid);
    const std::string want =
        fmt::format("pass pass-0 was closed with {}, but the job names {} for it now", old, other);
    EXPECT_NE(status.message().find(want), std::string::npos) << status.message();
  }
  EXPECT_TRUE(check({old}).is_ok()) << "data of closed passes may be deleted";
}

TEST_F(PassFilesTest, SpellingsAndFurtherFilesAreNoMatter) {
  const std::string a = write("data/a.tsv", "a"), b = write("data/b.tsv", "bb");
  close_with(cut_of({a}));
  EXPECT_TRUE(check({folder_ + "/data/../data/./a.tsv"}).is_ok());
  EXPECT_TRUE(check({folder_ + "/data/*.tsv"}).is_ok());
  EXPECT_TRUE(check({b, a}).is_ok());
  fs::create_directory_symlink(folder_ + "/data", folder_ + "/link");
  EXPECT_TRUE(check({folder_ + "/link/a.tsv"}).is_ok());
  EXPECT_TRUE(check({folder_ + "/data/a.tsv.gz"}).is_ok());
  EXPECT_TRUE(check({folder_ + "/data/*.tsv.zst"}).is_ok());
  EXPECT_FALSE(check({folder_ + "/data/b.tsv.gz"}).is_ok());
  EXPECT_FALSE(check({folder_ + "/data/b*.tsv"}).is_ok());
}

TEST_F(PassFilesTest, DataThatMovedIsKnownByNameAndSize) {
  const std::string old = write("day0/part.tsv", "zero");
  close_with(cut_of({old}));
  EXPECT_TRUE(check({write("moved/part.tsv", "zero")}).is_ok());
  EXPECT_TRUE(check({folder_ + "/archive/part.tsv"}).is_ok()) << "nothing is there to be dropped";
  EXPECT_FALSE(check({write("day1/part.tsv", "other")}).is_ok());
  write("day2/piece.tsv", "zero");
  EXPECT_FALSE(check({folder_ + "/day2/*.tsv"}).is_ok());
}

TEST_F(PassFilesTest, SourcesOfShuffledRecordsAreMeant) {
  const std::string old = write("day0.tsv", "zero"), other = write("day1.tsv", "one");
  Geometry shuffled = cut_of({write("out/shuffled/pass-00000.blocks", "blocks")});
  shuffled.format = "blocks";
  EXPECT_TRUE(is_shuffled(shuffled));
  EXPECT_FALSE(is_shuffled(cut_of({old})));
  close_with(shuffled);
  EXPECT_TRUE(check({other}).is_ok()) << "nobody knows any more";
  write("out/shuffled/pass-00000.sources.json", cut_of({old}).to_json());
  EXPECT_TRUE(check({old}).is_ok());
  EXPECT_FALSE(check({other}).is_ok());
}

TEST_F(PassFilesTest, ACutOfAnotherLifeSaysNothing) {
  const std::string old = write("day0.tsv", "zero"), other = write("day1.tsv", "one");
  close_with(cut_of({old}));
  closed_[0].geometry += 1;
  EXPECT_TRUE(check({other}).is_ok());
  fs::remove_all(job_.output);
  EXPECT_TRUE(check({other}).is_ok());
}

}  // namespace
}  // namespace flux
