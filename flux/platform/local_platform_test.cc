#include "flux/platform/local_platform.h"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace flux {
namespace {

class LocalPlatformTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "flux_platform.XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string in_folder(const char* name) const { return folder_ + "/" + name; }
  static std::string content(const std::string& path) {
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }
  // Ends come by themselves; the test's own time-out is the deadline.
  static ProcessEnd wait_for_end(LocalPlatform* platform) {
    for (;;) {
      const auto ends = platform->ended();
      if (!ends.empty()) return ends[0];
      ::poll(nullptr, 0, 1);
    }
  }
  std::string folder_;
};

ProcessSpec shell(const std::string& script, const std::string& log) {
  return {"child", {"/bin/sh", "-c", script}, log};
}

TEST_F(LocalPlatformTest, OutputGoesToTheLogAndExitCodesComeBack) {
  LocalPlatform platform;
  const std::string log = in_folder("log");
  const auto id = platform.start(shell("echo out; echo err >&2; exit 7", log));
  ASSERT_TRUE(id.is_ok()) << id.status().message();
  const ProcessEnd end = wait_for_end(&platform);
  EXPECT_EQ(end.id, id.value());
  EXPECT_EQ(end.name, "child");
  EXPECT_EQ(end.code, 7);
  EXPECT_EQ(end.signal, 0);
  EXPECT_EQ(end.text(), "exit code 7");
  EXPECT_EQ(content(log), "out\nerr\n");
  EXPECT_TRUE(platform.running().empty());
  ASSERT_TRUE(platform.start(shell("echo more", log)).is_ok());
  wait_for_end(&platform);
  EXPECT_EQ(content(log), "out\nerr\nmore\n");
}

TEST_F(LocalPlatformTest, WhatRunsIsKnownByTheNumberThatStartGave) {
  LocalPlatform platform;
  const auto first = platform.start(shell("exec sleep 1000", ""));
  const auto second = platform.start(shell("exec sleep 1000", ""));
  ASSERT_TRUE(first.is_ok() && second.is_ok());
  ASSERT_EQ(platform.running().size(), 2U);
  EXPECT_EQ(platform.running()[0].id, first.value());
  EXPECT_EQ(platform.running()[1].id, second.value());
  platform.kill(platform.running()[1].id);
  EXPECT_EQ(wait_for_end(&platform).id, second.value());
}

TEST_F(LocalPlatformTest, ArgumentsNeverPassThroughAShell) {
  LocalPlatform platform;
  const std::string log = in_folder("log");
  ASSERT_TRUE(platform.start({"echo", {"/bin/echo", "$HOME; exit 3", "a  b"}, log}).is_ok());
  EXPECT_EQ(wait_for_end(&platform).code, 0);
  EXPECT_EQ(content(log), "$HOME; exit 3 a  b\n");
}

TEST_F(LocalPlatformTest, AProgramThatIsNotThereIsNamed) {
  LocalPlatform platform;
  const auto id = platform.start({"ghost", {in_folder("ghost")}, ""});
  ASSERT_FALSE(id.is_ok());
  EXPECT_NE(id.status().message().find(in_folder("ghost")), std::string::npos);
  EXPECT_TRUE(platform.running().empty());
  EXPECT_FALSE(platform.start({"nothing", {}, ""}).is_ok());
  EXPECT_FALSE(platform.start(shell("true", in_folder("no/such/folder/log"))).is_ok());
}

TEST_F(LocalPlatformTest, StopAsksAndKillDoesNot) {
  LocalPlatform platform;
  const std::string log = in_folder("log");
  const char* stubborn = "trap 'echo asked' TERM; echo ready; while :; do sleep 1 & wait $!; done";
  const auto id = platform.start(shell(stubborn, log));
  ASSERT_TRUE(id.is_ok());
  while (content(log).find("ready") == std::string::npos) ::poll(nullptr, 0, 1);
  ASSERT_EQ(platform.running().size(), 1U);
  EXPECT_EQ(platform.running()[0].id, id.value());
  platform.ask_to_stop(id.value());
  while (content(log).find("asked") == std::string::npos) ::poll(nullptr, 0, 1);
  EXPECT_TRUE(platform.ended().empty());
  platform.kill(id.value());
  const ProcessEnd end = wait_for_end(&platform);
  EXPECT_EQ(end.signal, SIGKILL);
  EXPECT_NE(end.text().find("signal 9"), std::string::npos);
  platform.kill(id.value());  // gone: harmless
}

// The child leads its own group, so a signal to the group of this test would not reach it.
TEST_F(LocalPlatformTest, ChildrenLeadTheirOwnGroup) {
  LocalPlatform platform;
  const auto id = platform.start({"cat", {"/bin/sleep", "1000"}, in_folder("log")});
  ASSERT_TRUE(id.is_ok());
  const auto pid = static_cast<pid_t>(platform.running()[0].pid);
  EXPECT_EQ(::getpgid(pid), pid);
  EXPECT_NE(::getpgid(pid), ::getpgrp());
}

TEST_F(LocalPlatformTest, TheDestructorLeavesNobody) {
  pid_t pid = 0;
  {
    LocalPlatform platform;
    ASSERT_TRUE(platform.start({"sleep", {"/bin/sleep", "1000"}, ""}).is_ok());
    pid = static_cast<pid_t>(platform.running()[0].pid);
  }
  EXPECT_EQ(::kill(pid, 0), -1);
  EXPECT_EQ(errno, ESRCH);
}

// A supervisor that is killed takes its children with it: the child holds the writing end of a
// pipe, which is closed only when it is gone.
TEST_F(LocalPlatformTest, ChildrenDieWithTheirParent) {
  const std::string fifo = in_folder("fifo");
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  const pid_t parent = ::fork();
  if (parent == 0) {
    LocalPlatform platform;
    const auto id =
        platform.start(shell("exec 3>" + fifo + "; echo ready >&3; exec sleep 1000", ""));
    if (!id.is_ok()) _exit(1);
    ::pause();
    _exit(0);
  }
  std::ifstream reader(fifo);
  std::string line;
  ASSERT_TRUE(std::getline(reader, line));
  EXPECT_EQ(line, "ready");
  ::kill(parent, SIGKILL);
  ::waitpid(parent, nullptr, 0);
  EXPECT_FALSE(std::getline(reader, line));  // returns only when nobody holds the other end
}

}  // namespace
}  // namespace flux
