#include "flux/storage/read_file.h"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <unistd.h>

namespace flux {
namespace {

std::string scratch(const std::string& name) {
  return (std::filesystem::temp_directory_path() /
          fmt::format("flux_read_file_{}_{}", ::getpid(), name))
      .string();
}

TEST(ReadFile, ReadsAnyRange) {
  const std::string path = scratch("range");
  std::ofstream(path) << "0123456789";
  auto file = ReadFile::open(path);
  ASSERT_TRUE(file.is_ok()) << file.status().message();
  EXPECT_EQ(file.value().size(), 10U);
  char out[4] = {};
  ASSERT_TRUE(file.value().read_at(3, out, 4).is_ok());
  EXPECT_EQ(std::string(out, 4), "3456");
  const Status past = file.value().read_at(8, out, 4);
  EXPECT_EQ(past.code(), Code::kIo);
  EXPECT_NE(past.message().find(path + ": ends at byte 10"), std::string::npos) << past.message();
  std::filesystem::remove(path);
}

TEST(ReadFile, MovesItsDescriptor) {
  const std::string path = scratch("move");
  std::ofstream(path) << "ab";
  ReadFile a = ReadFile::open(path).value();
  ReadFile b = std::move(a);
  char out[2] = {};
  EXPECT_TRUE(b.read_at(0, out, 2).is_ok());
  std::filesystem::remove(path);
}

TEST(ReadFile, RefusesWhatIsNoFile) {
  const std::string absent = scratch("absent");
  EXPECT_EQ(ReadFile::open(absent).status().code(), Code::kNotFound);
  EXPECT_EQ(ReadFile::open(absent).status().message().rfind(absent, 0), 0U);
  const auto directory = ReadFile::open(std::filesystem::temp_directory_path().string());
  EXPECT_EQ(directory.status().code(), Code::kInvalid);
  EXPECT_NE(directory.status().message().find("is a directory"), std::string::npos);
  EXPECT_EQ(ReadFile::open("/dev/null").status().code(), Code::kInvalid);
}

}  // namespace
}  // namespace flux
