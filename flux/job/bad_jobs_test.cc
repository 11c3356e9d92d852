// Every file of tests/bad_jobs is refused exactly as its last lines say:
//   # expect: LINE:COLUMN part of the message
// one such line per problem, in the order in which they are reported.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "flux/job/job.h"

namespace flux {
namespace {

struct Expected {
  std::string place;
  std::string part;
};

std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream out;
  out << in.rdbuf();
  return out.str();
}

std::vector<Expected> expected_of(const std::string& text) {
  std::vector<Expected> expected;
  std::istringstream in(text);
  const std::string mark = "# expect: ";
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with(mark)) continue;
    line.erase(0, mark.size());
    const size_t space = line.find(' ');
    EXPECT_NE(space, std::string::npos) << line;
    expected.push_back({line.substr(0, space), line.substr(space + 1)});
  }
  return expected;
}

// The lines of a message that begin a problem of this file.
std::vector<std::string> first_lines(const std::string& message, const std::string& path) {
  std::vector<std::string> lines;
  std::istringstream in(message);
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with(path + ":")) lines.push_back(line);
  }
  return lines;
}

void check_case(const std::filesystem::path& path) {
  SCOPED_TRACE(path.filename().string());
  const std::string text = read_file(path);
  const std::vector<Expected> expected = expected_of(text);
  ASSERT_FALSE(expected.empty()) << "the file says nothing to expect";
  const Result<Job> job = load_job(path.string(), {});
  ASSERT_FALSE(job.is_ok()) << "accepted";
  EXPECT_EQ(job.status().code(), Code::kInvalid);
  const std::string& message = job.status().message();
  const std::vector<std::string> lines = first_lines(message, path.string());
  ASSERT_EQ(lines.size(), expected.size()) << message;
  for (size_t i = 0; i < lines.size(); ++i) {
    EXPECT_TRUE(lines[i].starts_with(path.string() + ":" + expected[i].place + ": "))
        << "expected " << expected[i].place << " in\n"
        << message;
    EXPECT_NE(lines[i].find(expected[i].part), std::string::npos)
        << "expected \"" << expected[i].part << "\" in\n"
        << message;
  }
}

TEST(BadJobs, EachIsRefusedAtItsLineAndColumn) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(FLUX_SOURCE_DIR "/tests/bad_jobs")) {
    if (entry.path().extension() == ".yaml") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  EXPECT_GE(paths.size(), 100U);
  for (const auto& path : paths) check_case(path);
}

}  // namespace
}  // namespace flux
