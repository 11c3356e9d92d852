// SupervisionTest: a supervisor over real processes; a script plays the roles, and does to each
// what a test says.
//
// For tests only. Every start is a line in the file `starts`; the supervisor runs in a thread of
// its own, and what it says is known when it has ended. Threads: the test's and that one.
#pragma once

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>

#include "flux/base/text.h"
#include "flux/main/cluster_folder.h"
#include "flux/main/supervisor.h"

namespace flux {

class SupervisionTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "flux_sup.XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    for (const char* name : {"do", "pids"}) std::filesystem::create_directory(path(name));
    write("role", script(), true);
    options_.program = path("role");
    options_.stop = &stop_;
    options_.run.job.job = "job.yaml";
    options_.run.servers = 1;
    options_.run.workers = 1;
    job_.output = path("out");
  }
  void TearDown() override {
    if (thread_.joinable()) end(0);
    if (HasFailure()) fmt::print(stderr, "{}", told_);  // with what the test said meanwhile
    std::filesystem::remove_all(folder_);
  }
  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  void write(const std::string& name, const std::string& text, bool program = false) const {
    std::ofstream(path(name) + ".new") << text;
    ASSERT_EQ(::chmod((path(name) + ".new").c_str(), program ? 0755 : 0644), 0);
    std::filesystem::rename(path(name) + ".new", path(name));
  }
  std::string read(const std::string& name) const {
    std::ifstream file(path(name));
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }
  // Every start is a line "ROLE ARGUMENTS"; the script do/NAME says what a role does, else it
  // waits to be asked to stop. The coordinator ends with the code in the file `end`. A role ends
  // with its parent, as a real one does on its leash: behind `ssh` nothing else would end it.
  std::string script() const {
    return "#!/bin/sh\n"
           "role=$1; shift; all=\"$*\"; name=$role; listen=\n"
           "while [ $# -gt 0 ]; do case $1 in --name) name=$2;; --listen) listen=$2;; esac; shift;"
           " done\n"
           "cd " +
           folder_ +
           " || exit 1\n"
           "echo \"$name $all\" >> starts\n"
           "trap 'exit 0' TERM\n"
           "if [ -e do/$name ]; then . ./do/$name; fi\n"
           "echo $$ > pids/$name.new; mv pids/$name.new pids/$name\n"
           "if [ $role = coordinator ]; then\n"
           "  case $listen in *:0) listen=${listen%:0}:4711;; esac\n"
           "  echo '{\"pid\":'$$',\"listen\":\"'$listen'\",\"http\":\"http://127.0.0.1:4321\"}' >"
           " record\n"
           "  mv record out/cluster/coordinator.json\n"
           "fi\n"
           "while [ ! -e end ]; do kill -0 $PPID 2>/dev/null || exit 1; sleep 0.02; done\n"
           "if [ $role = coordinator ]; then exit $(cat end); fi\n"
           "exit 0\n";
  }
  void start() {
    thread_ = std::thread([this] {
      testing::internal::CaptureStderr();
      testing::internal::CaptureStdout();
      code_ = supervise(job_, options_);
      told_ = testing::internal::GetCapturedStdout();
      said_ = testing::internal::GetCapturedStderr();
      ended_ = true;
    });
  }
  void end(int code) {
    write("end", std::to_string(code));
    thread_.join();
  }
  std::vector<std::string> starts(const std::string& name) const {
    std::vector<std::string> found;
    for (const std::string& line : split(read("starts"), '\n'))
      if (line.starts_with(name + " ")) found.push_back(line);
    return found;
  }
  // The test's own time-out is the deadline; a supervisor that has ended waits for nothing.
  void wait_until(const std::function<bool()>& done) const {
    while (!done() && !ended_) ::poll(nullptr, 0, 2);
    ASSERT_FALSE(ended_) << said_;
  }
  void wait_for_starts(const std::string& name, size_t times) const {
    wait_until([&] { return starts(name).size() >= times && !read("pids/" + name).empty(); });
  }
  pid_t pid(const std::string& name) const { return std::stoi(read("pids/" + name)); }
  void kill(const std::string& name) const {
    const std::string before = read("pids/" + name);
    const size_t started = starts(name).size();
    ::kill(std::stoi(before), SIGKILL);
    wait_until([&] { return starts(name).size() > started && read("pids/" + name) != before; });
  }

  // What a coordinator says, each time a new order.
  void want(std::optional<uint32_t> workers, std::optional<uint32_t> servers, bool ending = false) {
    WantedRoles wanted;
    wanted.workers = workers;
    wanted.servers = servers;
    wanted.orders = ++orders_;
    wanted.ending = ending;
    wanted.leaving = leaving_;
    ASSERT_TRUE(ClusterFolder(job_.output).write_wanted(wanted).is_ok());
  }
  void ask_to_stop(const std::string& name) const {
    const pid_t before = pid(name);
    ::kill(before, SIGTERM);
    wait_until([&] { return ::kill(before, 0) != 0; });
  }

  std::string folder_;
  uint64_t orders_ = 0;
  std::map<std::string, uint32_t> leaving_;
  Job job_;
  SupervisorOptions options_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
  std::atomic<bool> ended_{false};
  int code_ = -1;
  std::string told_, said_;  // on standard output and error
};

}  // namespace flux
