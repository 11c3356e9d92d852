// Scripts with golden output, for tests of state machines; included by *_test.cc only.
//
// tests/scripts/<what>_<name>.txt holds the events fed to a machine, and below each of them, in
// lines that begin with "> ", what it did; "#" begins a comment. A test gives the part that runs
// one line. A script that no longer holds fails and shows what came out; `<test> --rewrite` puts
// that into the file, to be read in the diff.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace flux {

// Names of the scripts that begin with `what`, sorted; an empty name when there is none, so that a
// wrong folder fails instead of testing nothing.
inline std::vector<std::string> script_names(const std::string& source_dir, std::string_view what) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const auto& entry :
       std::filesystem::directory_iterator(source_dir + "/tests/scripts", ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(what)) names.push_back(name.substr(0, name.find('.')));
  }
  std::sort(names.begin(), names.end());
  if (names.empty()) names.emplace_back();
  return names;
}

inline bool rewrites_scripts() {
  const std::vector<std::string> args = testing::internal::GetArgvs();
  return std::find(args.begin(), args.end(), "--rewrite") != args.end();
}

// `run_line` gets each event and returns what came of it, lines that begin with "> ".
inline void run_script(const std::string& source_dir, const std::string& name,
                       const std::function<std::string(const std::string&)>& run_line) {
  const std::string path = source_dir + "/tests/scripts/" + name + ".txt";
  std::ifstream file(path);
  ASSERT_TRUE(file.good()) << "no script " << path;
  std::string expected, found;
  for (std::string line; std::getline(file, line);) {
    expected += line + "\n";
    if (line.starts_with('>')) continue;
    found += line + "\n";
    if (!line.empty() && line[0] != '#') found += run_line(line);
  }
  file.close();
  if (found == expected) return;
  if (rewrites_scripts()) std::ofstream(path) << found;
  ADD_FAILURE() << path << ": expected\n" << expected << "and this came out:\n" << found;
}

}  // namespace flux

// A test per script: FLUX_SCRIPT_TEST(Suite, "what_", Machine), where Machine can be made without
// arguments and has std::string run_line(const std::string&).
#define FLUX_SCRIPT_TEST(suite, what, machine)                                             \
  class suite : public testing::TestWithParam<std::string> {};                             \
  TEST_P(suite, DoesWhatItSays) {                                                          \
    machine script;                                                                        \
    ::flux::run_script(FLUX_SOURCE_DIR, GetParam(),                                        \
                       [&](const std::string& line) { return script.run_line(line); });    \
  }                                                                                        \
  INSTANTIATE_TEST_SUITE_P(All, suite,                                                     \
                           testing::ValuesIn(::flux::script_names(FLUX_SOURCE_DIR, what)), \
                           [](const auto& info) { return info.param; })
