// Whole or absent files in a scratch folder.
#include "flux/storage/atomic_file.h"

#include <cstdlib>
#include <filesystem>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

namespace flux {
namespace {

namespace fs = std::filesystem;

class AtomicFile : public testing::Test {
 protected:
  AtomicFile() {
    std::string name = testing::TempDir() + "flux_storage_XXXXXX";
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  ~AtomicFile() override { fs::remove_all(folder_); }
  std::string at(const std::string& name) const { return join_path(folder_, name); }
  std::string folder_;
};

TEST_F(AtomicFile, ReplacesTheWholeContent) {
  std::string big(300000, 'x');
  big[1000] = '\0';
  for (const std::string& content : {std::string("old"), big, std::string(), std::string("new")}) {
    ASSERT_TRUE(write_file_atomic(at("f"), content).is_ok());
    EXPECT_EQ(read_whole_file(at("f"), 1 << 20).value(), content);
    EXPECT_EQ(list_folder(folder_), std::vector<std::string>{"f"}) << "no temporary file stays";
  }
  ASSERT_TRUE(write_file_synced(at("g"), "first, longer").is_ok());
  ASSERT_TRUE(write_file_synced(at("g"), "second").is_ok());
  EXPECT_EQ(read_whole_file(at("g"), 100).value(), "second");
}

// A reader that opened the old file keeps the old content: it was not written over.
TEST_F(AtomicFile, WritesAside) {
  ASSERT_TRUE(write_file_atomic(at("f"), "old").is_ok());
  ASSERT_EQ(::link(at("f").c_str(), at("kept").c_str()), 0);
  ASSERT_TRUE(write_file_atomic(at("f"), "new").is_ok());
  EXPECT_EQ(read_whole_file(at("kept"), 10).value(), "old");
}

TEST_F(AtomicFile, AFailedWriteLeavesNothingBehind) {
  const Status absent = write_file_atomic(at("no/such/folder/f"), "x");
  EXPECT_EQ(absent.code(), Code::kNotFound);
  EXPECT_NE(absent.message().find(at("no/such/folder/f")), std::string::npos) << absent.message();
  fs::create_directories(at("taken/inside"));
  EXPECT_FALSE(write_file_atomic(at("taken"), "x").is_ok()) << "a folder is in the way";
  EXPECT_TRUE(path_exists(at("taken/inside")));
  EXPECT_EQ(list_folder(folder_), std::vector<std::string>{"taken"});
}

TEST_F(AtomicFile, LinksStayLinksAndPipesStayPipes) {
  fs::create_symlink("target", at("link"));
  for (const char* content : {"into nowhere yet", "into the target"}) {
    ASSERT_TRUE(write_file_atomic(at("link"), content).is_ok());
    EXPECT_TRUE(fs::is_symlink(at("link")));
    EXPECT_EQ(read_whole_file(at("target"), 100).value(), content);
  }
  ASSERT_EQ(::mkfifo(at("pipe").c_str(), 0600), 0);
  const int reader = ::open(at("pipe").c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_TRUE(write_file_atomic(at("pipe"), "through").is_ok());
  char text[16] = {};
  EXPECT_EQ(::read(reader, text, sizeof text), 7);
  EXPECT_STREQ(text, "through");
  ::close(reader);
  EXPECT_TRUE(is_special_file(at("pipe")));
  EXPECT_FALSE(is_special_file(at("target")));
}

TEST_F(AtomicFile, ReadsWithinBoundsOnly) {
  ASSERT_TRUE(write_file_synced(at("f"), "12345").is_ok());
  EXPECT_EQ(read_whole_file(at("f"), 5).value(), "12345");
  EXPECT_EQ(read_whole_file(at("f"), 4).status().code(), Code::kInvalid);
  EXPECT_EQ(read_whole_file(at("none"), 4).status().code(), Code::kNotFound);
  EXPECT_EQ(read_whole_file(folder_, 4).status().code(), Code::kInvalid);
}

TEST_F(AtomicFile, Folders) {
  EXPECT_TRUE(make_folders(at("a/b/c")).is_ok());
  EXPECT_TRUE(make_folders(at("a/b/c")).is_ok());
  EXPECT_TRUE(is_folder(at("a/b")));
  ASSERT_TRUE(write_file_synced(at("a/z"), "").is_ok());
  ASSERT_TRUE(write_file_synced(at("a/k"), "").is_ok());
  EXPECT_FALSE(is_folder(at("a/z")));
  EXPECT_EQ(list_folder(at("a")), (std::vector<std::string>{"b", "k", "z"}));
  EXPECT_TRUE(list_folder(at("none")).empty());
  EXPECT_FALSE(make_folders(at("a/z/under_a_file")).is_ok());
  EXPECT_TRUE(sync_folder(at("a")).is_ok());
  EXPECT_EQ(sync_folder(at("none")).code(), Code::kNotFound);
}

TEST_F(AtomicFile, RemovesTreesButNotWhatLinksPointTo) {
  ASSERT_TRUE(make_folders(at("keep")).is_ok());
  ASSERT_TRUE(write_file_synced(at("keep/f"), "x").is_ok());
  ASSERT_TRUE(make_folders(at("gone/deep")).is_ok());
  ASSERT_EQ(::symlink(at("keep").c_str(), at("gone/link").c_str()), 0);
  EXPECT_TRUE(remove_all(at("gone")).is_ok());
  EXPECT_FALSE(path_exists(at("gone")));
  EXPECT_TRUE(path_exists(at("keep/f")));
  EXPECT_TRUE(remove_all(at("gone")).is_ok()) << "not existing is fine";
  EXPECT_TRUE(remove_all(at("keep/f")).is_ok());
  EXPECT_FALSE(path_exists(at("keep/f")));
}

TEST(Paths, JoinAndParent) {
  EXPECT_EQ(join_path("a", "b"), "a/b");
  EXPECT_EQ(join_path("a/", "b"), "a/b");
  EXPECT_EQ(parent_folder("a/b"), "a");
  EXPECT_EQ(parent_folder("b"), ".");
  EXPECT_EQ(parent_folder("/b"), "/");
}

}  // namespace
}  // namespace flux
