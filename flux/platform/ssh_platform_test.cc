// SshPlatform over a program that stands for ssh: it takes the same words and runs the command in a
// shell of this machine, as sshd would.
#include "flux/platform/ssh_platform.h"

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>

namespace flux {
namespace {

class SshPlatformTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "flux_ssh.XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    std::ofstream(folder_ + "/ssh") << "#!/bin/sh\n"
                                       "for last; do :; done\n"
                                       "while [ $# -gt 2 ]; do shift; done\n"
                                       "echo \"host $1\"\n"
                                       "if [ \"$1\" = gone ]; then exit 255; fi\n"
                                       "exec /bin/sh -c \"$last\"\n";
    ASSERT_EQ(::chmod((folder_ + "/ssh").c_str(), 0755), 0);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string log() const {
    std::ifstream file(folder_ + "/log");
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }
  ProcessSpec spec(std::vector<std::string> words, const std::string& host,
                   const std::string& input = "") const {
    ProcessSpec out;
    out.name = "child";
    out.arguments = std::move(words);
    out.log = folder_ + "/log";
    out.host = host;
    out.input = input;
    return out;
  }
  static ProcessEnd wait_for_end(SshPlatform* platform) {
    for (;;) {
      const auto ends = platform->ended();
      if (!ends.empty()) return ends[0];
      ::poll(nullptr, 0, 1);
    }
  }
  std::string folder_;
};

TEST_F(SshPlatformTest, WordsArriveAsTheyAreAndTheInputWithoutACommandLine) {
  SshPlatform platform(folder_ + "/ssh");
  const std::string script = "echo \"$0\" \"$1\"; read secret; echo \"got $secret\"";
  ASSERT_TRUE(platform
                  .start(spec({"/bin/sh", "-c", script, "it's $HOME; \"x\"", "a  b"}, "node-1",
                              "hidden words\n"))
                  .is_ok());
  const ProcessEnd end = wait_for_end(&platform);
  EXPECT_EQ(end.code, 0);
  EXPECT_FALSE(end.host_lost);
  EXPECT_EQ(log(), "host node-1\nit's $HOME; \"x\" a  b\ngot hidden words\n");
}

TEST_F(SshPlatformTest, ExitCodesSignalsAndLostHosts) {
  SshPlatform platform(folder_ + "/ssh");
  ASSERT_TRUE(platform.start(spec({"/bin/sh", "-c", "exit 7"}, "node-1")).is_ok());
  EXPECT_EQ(wait_for_end(&platform).code, 7);
  ASSERT_TRUE(platform.start(spec({"/bin/sh", "-c", "kill -9 $$"}, "node-1")).is_ok());
  const ProcessEnd killed = wait_for_end(&platform);
  EXPECT_EQ(killed.signal, SIGKILL);
  EXPECT_FALSE(killed.host_lost);
  ASSERT_TRUE(platform.start(spec({"/bin/true"}, "gone")).is_ok());
  EXPECT_TRUE(wait_for_end(&platform).host_lost);
  EXPECT_FALSE(platform.start(spec({"/bin/true"}, "-oProxyCommand=x")).is_ok());
}

TEST_F(SshPlatformTest, AKillForMemoryIsToldByTheOtherHost) {
  const std::string counters = folder_ + "/vmstat";
  SshPlatform platform(folder_ + "/ssh", counters);
  const auto run = [&](const std::string& script) {
    std::filesystem::remove(folder_ + "/log");
    std::ofstream(counters) << "nr_free 5\noom_kill 7\n";
    EXPECT_TRUE(platform.start(spec({"/bin/sh", "-c", script}, "node-1")).is_ok());
    (void)wait_for_end(&platform);
    return log().find(kKernelKilled) != std::string::npos;
  };
  EXPECT_TRUE(run("echo oom_kill 8 > " + counters + "; kill -9 $$"));
  EXPECT_FALSE(run("kill -9 $$")) << "by somebody else";
  EXPECT_FALSE(run("echo oom_kill 8 > " + counters + "; exit 7")) << "it was not killed";
}

TEST_F(SshPlatformTest, StopIsALineAndTheEndOfTheLeashIsTheEnd) {
  SshPlatform platform(folder_ + "/ssh");
  const auto id = platform.start(
      spec({"/bin/sh", "-c", "while read line; do echo \"line $line\"; done; echo closed; exit 3"},
           "node-1", "first\n"));
  ASSERT_TRUE(id.is_ok());
  while (log().find("line first") == std::string::npos) ::poll(nullptr, 0, 1);
  platform.ask_to_stop(id.value());
  while (log().find("line stop") == std::string::npos) ::poll(nullptr, 0, 1);
  EXPECT_TRUE(platform.ended().empty());
}

TEST_F(SshPlatformTest, LocalhostIsHere) {
  SshPlatform platform(folder_ + "/no-such-ssh");
  ASSERT_TRUE(platform.start(spec({"/bin/echo", "here"}, "localhost")).is_ok());
  const ProcessEnd end = wait_for_end(&platform);
  EXPECT_EQ(end.code, 0);
  EXPECT_GT(end.peak_rss_bytes, 0U);
  EXPECT_EQ(log(), "here\n");
  EXPECT_FALSE(platform.start(spec({"/bin/echo"}, "node-1")).is_ok()) << "ssh is not there";
}

}  // namespace
}  // namespace flux
