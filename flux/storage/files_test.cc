// The disk behind the interface: what only Files offers, and that the rest reaches the real disk.
#include "flux/storage/files.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <gtest/gtest.h>

#include "flux/storage/atomic_file.h"

namespace flux {
namespace {

class RealFilesTest : public testing::Test {
 protected:
  RealFilesTest() {
    std::string name = testing::TempDir() + "flux_files_XXXXXX";
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  ~RealFilesTest() override { std::filesystem::remove_all(folder_); }
  std::string at(const std::string& name) const { return join_path(folder_, name); }
  static std::string content(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  std::string folder_;
  Files& files_ = real_files();
};

TEST_F(RealFilesTest, OnlyTheFirstCreates) {
  ASSERT_TRUE(files_.create_exclusive(at("term-1"), "first").is_ok());
  const Status second = files_.create_exclusive(at("term-1"), "second");
  EXPECT_EQ(second.code(), Code::kStale);
  EXPECT_NE(second.message().find(at("term-1")), std::string::npos);
  EXPECT_EQ(content(at("term-1")), "first");
  EXPECT_EQ(files_.create_exclusive(at("absent/x"), "").code(), Code::kNotFound);
  std::filesystem::create_symlink(at("nowhere"), at("link"));
  EXPECT_EQ(files_.create_exclusive(at("link"), "x").code(), Code::kStale);
}

TEST_F(RealFilesTest, AppendsToTheEnd) {
  std::string whole;
  for (const std::string& line : {std::string("a\n"), std::string(), std::string(70000, 'b')}) {
    ASSERT_TRUE(files_.append_synced(at("log"), line).is_ok());
    whole += line;
    EXPECT_EQ(content(at("log")), whole);
  }
  EXPECT_EQ(files_.append_synced(at("absent/log"), "x").code(), Code::kNotFound);
  EXPECT_FALSE(files_.append_synced(folder_, "x").is_ok());
}

TEST_F(RealFilesTest, IsTheMachinesDisk) {
  ASSERT_TRUE(files_.make_folders(at("a/b")).is_ok());
  ASSERT_TRUE(files_.write_synced(at("a/b/one"), "1").is_ok());
  ASSERT_TRUE(files_.write_atomic(at("a/b/two"), "22").is_ok());
  ASSERT_TRUE(files_.sync_folder(at("a/b")).is_ok());
  EXPECT_EQ(content(at("a/b/one")), "1");
  EXPECT_EQ(files_.read(at("a/b/two"), 10).value(), "22");
  EXPECT_EQ(files_.read(at("a/b/two"), 1).status().code(), Code::kInvalid);
  EXPECT_EQ(files_.list(at("a/b")).value(), (std::vector<std::string>{"one", "two"}));
  EXPECT_TRUE(files_.exists(at("a/b/one")));
  ASSERT_TRUE(files_.remove_all(at("a")).is_ok());
  EXPECT_FALSE(std::filesystem::exists(at("a")));
  EXPECT_FALSE(files_.exists(at("a")));
  EXPECT_TRUE(files_.list(at("a")).value().empty());
}

// A link to itself cannot be followed: nobody can say what is behind it.
TEST_F(RealFilesTest, WhatCannotBeLookedAtIsNotTakenForAbsent) {
  std::filesystem::create_symlink(at("loop"), at("loop"));
  EXPECT_TRUE(files_.exists(at("loop")));
  EXPECT_TRUE(files_.exists(at("loop/x")));
  const auto names = files_.list(at("loop"));
  ASSERT_FALSE(names.is_ok());
  EXPECT_NE(names.status().message().find(at("loop")), std::string::npos);
  ASSERT_TRUE(files_.write_synced(at("file"), "1").is_ok());
  EXPECT_FALSE(files_.list(at("file")).is_ok()) << "a file is no empty folder";
  EXPECT_FALSE(files_.exists(at("file/x")));
}

}  // namespace
}  // namespace flux
