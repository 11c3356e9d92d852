// The supervisor over real processes: a script plays the roles, and does to each what a test says.
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>

#include "flux/base/text.h"
#include "flux/main/cluster_folder.h"
#include "flux/main/host_list.h"
#include "flux/main/memory_watch.h"
#include "flux/main/restarts.h"
#include "flux/main/supervisor.h"

namespace flux {
namespace {

TEST(Restarts, ByRateAndNotByNumber) {
  Restarts restarts;
  TimeNs now = 100 * kSecond;
  // Killed every 2 s, for ever.
  for (int i = 0; i < 300; ++i, now += 2 * kSecond + kMillisecond) {
    const auto at = restarts.died(now);
    ASSERT_TRUE(at.has_value()) << i;
    EXPECT_LT(*at - now, kSecond);
  }
  now += 60 * kSecond;
  EXPECT_EQ(restarts.died(now), now) << "the first is at once";
  // Dies at once, again and again.
  int again = 1;
  for (auto at = restarts.died(now); at; at = restarts.died(*at), ++again) EXPECT_GT(*at, now);
  EXPECT_EQ(again, 5);
}

TEST(Restarts, MemoryIsCountedApart) {
  Restarts restarts;
  EXPECT_TRUE(restarts.out_of_memory());
  EXPECT_TRUE(restarts.out_of_memory());
  EXPECT_FALSE(restarts.out_of_memory());
}

TEST(HostList, SpreadsAndLeavesLostHostsAlone) {
  auto parsed = HostList::parse("hosts.txt", "# two hosts\nnode-1\n\n  localhost  # here\n");
  ASSERT_TRUE(parsed.is_ok()) << parsed.status().message();
  HostList hosts = parsed.value();
  EXPECT_FALSE(hosts.all_here());
  EXPECT_TRUE(HostList().all_here());
  std::map<std::string, int> taken;
  for (int i = 0; i < 6; ++i) ++taken[hosts.take(1)];
  EXPECT_EQ(taken, (std::map<std::string, int>{{"localhost", 3}, {"node-1", 3}}));
  hosts.lost("node-1", 1);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(hosts.take(2), "localhost");
  EXPECT_EQ(hosts.take(2 + HostList::kLostFor), "node-1");
  hosts.lost("node-1", 10 * kSecond);
  hosts.lost("localhost", 11 * kSecond);
  EXPECT_TRUE(hosts.all_lost(12 * kSecond));
  EXPECT_FALSE(hosts.all_lost(10 * kSecond + HostList::kLostFor));
  EXPECT_EQ(hosts.take(12 * kSecond), "node-1") << "all are lost: the first of them";
  for (const char* bad : {"", "# none\n", "-oProxyCommand=x\n", "a b\n", "a\na\n"})
    EXPECT_EQ(HostList::parse("hosts.txt", bad).status().code(), Code::kInvalid) << bad;
}

TEST(HostPauses, GrowUpToAnEnd) {
  HostPauses pauses;
  const TimeNs begin = 5 * kSecond;
  EXPECT_EQ(pauses.next(begin), begin + kSecond);
  EXPECT_EQ(pauses.next(begin + kSecond / 2), begin + kSecond) << "all roles wait for one moment";
  std::vector<TimeNs> tries;
  TimeNs now = begin + kSecond;
  for (auto at = pauses.next(now); at; at = pauses.next(now)) {
    tries.push_back((*at - begin) / kSecond);
    now = *at;
  }
  EXPECT_EQ(tries, (std::vector<TimeNs>{3, 7, 15, 31, 47, 60}));
  pauses.reached();
  EXPECT_EQ(pauses.next(now), now + kSecond) << "anew";
}

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
  // waits to be asked to stop. The coordinator ends with the code in the file `end`.
  std::string script() const {
    return "#!/bin/sh\n"
           "role=$1; shift; all=\"$*\"; name=$role; listen=\n"
           "while [ $# -gt 0 ]; do case $1 in --name) name=$2;; --listen) listen=$2;; esac; shift;"
           " done\n"
           "cd " +
           folder_ +
           "\n"
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
           "while [ ! -e end ]; do sleep 0.02; done\n"
           "if [ $role = coordinator ]; then exit $(cat end); fi\n"
           "exit 0\n";
  }
  void start() {
    thread_ = std::thread([this] {
      testing::internal::CaptureStderr();
      code_ = supervise(job_, options_);
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
    ASSERT_TRUE(ClusterFolder(job_.output).write_wanted(wanted).is_ok());
  }
  void ask_to_stop(const std::string& name) const {
    const pid_t before = pid(name);
    ::kill(before, SIGTERM);
    wait_until([&] { return ::kill(before, 0) != 0; });
  }

  std::string folder_;
  uint64_t orders_ = 0;
  Job job_;
  SupervisorOptions options_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
  std::atomic<bool> ended_{false};
  int code_ = -1;
  std::string said_;
};

TEST_F(SupervisionTest, ACoordinatorThatIsKilledComesBackWhereItWas) {
  options_.run.listen = "tcp:127.0.0.1:0";
  options_.run.fresh = true;
  start();
  wait_for_starts("worker-0", 1);
  wait_for_starts("server-0", 1);
  const pid_t server = pid("server-0"), worker = pid("worker-0");
  for (int i = 0; i < 3; ++i) kill("coordinator");
  end(0);
  EXPECT_EQ(code_, 0) << said_;
  const auto all = starts("coordinator");
  ASSERT_EQ(all.size(), 4U);
  EXPECT_NE(all[0].find("--fresh"), std::string::npos);
  for (size_t i = 1; i < all.size(); ++i) {
    EXPECT_EQ(all[i].find("--fresh"), std::string::npos) << all[i];
    EXPECT_NE(all[i].find("--listen tcp:127.0.0.1:4711"), std::string::npos) << all[i];
    EXPECT_NE(all[i].find("--http 127.0.0.1:4321"), std::string::npos) << all[i];
  }
  EXPECT_EQ(pid("server-0"), server);
  EXPECT_EQ(pid("worker-0"), worker);
}

TEST_F(SupervisionTest, AJobThatFailsIsNotStartedAgain) {
  start();
  wait_for_starts("worker-0", 1);
  end(1);
  EXPECT_EQ(code_, 1);
  EXPECT_EQ(starts("coordinator").size(), 1U);
}

TEST_F(SupervisionTest, RolesThatDieComeBackAndThoseThatLeaveDoNot) {
  options_.run.servers = 2;
  start();
  for (const char* name : {"server-0", "server-1", "worker-0"}) wait_for_starts(name, 1);
  kill("worker-0");
  kill("server-1");
  want(1, 1);
  ask_to_stop("server-0");  // it is drained: ends with 0
  kill("worker-0");         // by now an end of server-0 would have been answered
  end(0);
  EXPECT_EQ(code_, 0) << said_;
  EXPECT_EQ(starts("server-0").size(), 1U);
  EXPECT_EQ(starts("server-1").size(), 2U);
  EXPECT_EQ(starts("worker-0").size(), 3U);
}

TEST_F(SupervisionTest, WhatDiesAtOnceIsGivenUpWithItsLastLine) {
  write("do/worker-0", "echo 'the disk is on fire'; exit 1\n");
  start();
  thread_.join();
  EXPECT_NE(code_, 0);
  EXPECT_EQ(starts("worker-0").size(), 6U);
  for (const char* part : {"no worker is left", "worker-0", "the disk is on fire", "6 times"})
    EXPECT_NE(said_.find(part), std::string::npos) << said_;
}

TEST_F(SupervisionTest, ARefusalIsNotTriedAgain) {
  write("do/server-0", "echo 'no such model'; exit 2\n");
  start();
  thread_.join();
  EXPECT_EQ(code_, 2);
  EXPECT_EQ(starts("server-0").size(), 1U);
  EXPECT_NE(said_.find("no such model"), std::string::npos) << said_;
}

TEST_F(SupervisionTest, OutOfMemoryIsNamedAndTriedWithLess) {
  job_.push_in_flight = 8;
  write("do/worker-0", fmt::format("exit {}\n", kOutOfMemoryCode));
  start();
  thread_.join();
  EXPECT_NE(code_, 0);
  const auto all = starts("worker-0");
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0].find("--in-flight"), std::string::npos) << all[0];
  EXPECT_NE(all[1].find("--in-flight 4"), std::string::npos) << all[1];
  EXPECT_NE(all[2].find("--in-flight 2"), std::string::npos) << all[2];
  for (const char* part : {"worker-0", "out of memory, 3 times", "MiB", "more memory"})
    EXPECT_NE(said_.find(part), std::string::npos) << said_;
}

TEST_F(SupervisionTest, ScaleStartsAndAsksToLeave) {
  start();
  wait_for_starts("worker-0", 1);
  want(3, 2);
  for (const char* name : {"worker-1", "worker-2", "server-1"}) wait_for_starts(name, 1);
  const pid_t first = pid("worker-0"), second = pid("worker-1"), third = pid("worker-2");
  want(1, std::nullopt);
  wait_until([&] { return ::kill(third, 0) != 0 && ::kill(second, 0) != 0; });
  EXPECT_EQ(::kill(first, 0), 0) << "the highest names leave";
  want(2, std::nullopt);
  wait_for_starts("worker-3", 1);
  end(0);
  EXPECT_EQ(code_, 0) << said_;
  EXPECT_EQ(starts("worker-1").size() + starts("worker-2").size(), 2U);
}

TEST_F(SupervisionTest, TheNumberIsKeptWhateverOrderThingsHappenIn) {
  // The worker that is too many takes its time to leave; meanwhile two are wanted again.
  write("do/worker-1", "trap 'while [ ! -e go ]; do sleep 0.02; done; exit 0' TERM\n");
  options_.run.workers = 2;
  start();
  wait_for_starts("worker-1", 1);
  want(1, std::nullopt);
  want(2, std::nullopt);  // perhaps before the first was seen
  write("go", "");
  ::kill(pid("worker-1"), SIGTERM);  // as the coordinator asks it, for the first order
  wait_for_starts("worker-2", 1);
  want(1, std::nullopt);
  wait_until([&] { return ::kill(pid("worker-2"), 0) != 0; });
  want(2, std::nullopt);
  wait_for_starts("worker-3", 1);
  end(0);
  EXPECT_EQ(code_, 0) << said_;
}

TEST_F(SupervisionTest, TheLastOfEachIsReplacedUnlessTheJobEnds) {
  start();
  for (const char* name : {"server-0", "worker-0"}) wait_for_starts(name, 1);
  ask_to_stop("worker-0");
  wait_for_starts("worker-1", 1);
  ask_to_stop("server-0");
  wait_for_starts("server-1", 1);
  want(std::nullopt, std::nullopt, true);
  ask_to_stop("worker-1");
  kill("server-1");  // whose comeback shows that the end of worker-1 was seen
  end(0);
  EXPECT_EQ(code_, 0) << said_;
  EXPECT_EQ(starts("worker-2").size(), 0U);
}

TEST_F(SupervisionTest, AServerThatASignalStopsComesBack) {
  write("do/server-0", "trap 'exit 130' TERM\n");
  start();
  wait_for_starts("server-0", 1);
  ask_to_stop("server-0");
  wait_for_starts("server-0", 2);
  end(0);
  EXPECT_EQ(code_, 0) << said_;
  EXPECT_EQ(starts("server-1").size(), 0U);
}

TEST_F(SupervisionTest, AStopGoesToTheCoordinator) {
  write("do/coordinator", "trap 'echo 0 > end; exit 0' TERM\n");
  start();
  wait_for_starts("worker-0", 1);
  wait_for_starts("coordinator", 1);
  stop_ = true;
  thread_.join();
  EXPECT_EQ(code_, 0) << said_;
}

// A program that stands for ssh: "gone" is a host that cannot be reached.
TEST_F(SupervisionTest, RolesOfALostHostStartOnAnother) {
  write("ssh",
        "#!/bin/sh\n"
        "for last; do :; done\n"
        "while [ $# -gt 2 ]; do shift; done\n"
        "echo \"$1\" >> " +
            path("hosts_used") +
            "\n"
            "if [ \"$1\" = gone ]; then echo 'no route to host'; exit 255; fi\n"
            "read token; echo \"$token\" > " +
            path("token_seen") +
            "\n"
            "exec /bin/sh -c \"$last\"\n",
        true);
  write("hosts.txt", "gone\nnode-1\n");
  options_.run.hosts = path("hosts.txt");
  options_.run.ssh = path("ssh");
  options_.run.listen = "tcp:127.0.0.1:0";
  options_.run.workers = 2;
  start();
  for (const char* name : {"server-0", "worker-0", "worker-1"}) wait_for_starts(name, 1);
  const std::string token = read("out/cluster/token");
  EXPECT_EQ(read("token_seen"), token);
  EXPECT_EQ(read("starts").find(token.substr(0, 16)), std::string::npos)
      << "never on a command line";
  for (const char* name : {"server-0", "worker-0", "worker-1"})
    EXPECT_NE(starts(name)[0].find("--token-stdin"), std::string::npos);
  end(0);
  EXPECT_EQ(code_, 0) << said_;
  EXPECT_NE(read("hosts_used").find("gone"), std::string::npos);
}

// Many more tries than a role that dies by itself has; then the host is there.
TEST_F(SupervisionTest, WhenNoHostIsLeftItWaits) {
  write("ssh",
        "#!/bin/sh\n"
        "for last; do :; done\n"
        "echo try >> " +
            path("tries") +
            "\n"
            "if [ ! -e " +
            path("up") +
            " ]; then echo 'no route to host'; exit 255; fi\n"
            "exec /bin/sh -c \"$last\"\n",
        true);
  write("hosts.txt", "node-1\n");
  options_.run.hosts = path("hosts.txt");
  options_.run.ssh = path("ssh");
  options_.run.listen = "tcp:127.0.0.1:0";
  start();
  wait_until([&] { return split(read("tries"), '\n').size() > 4; });  // two roles, two tries each
  write("up", "");
  for (const char* name : {"server-0", "worker-0"}) wait_for_starts(name, 1);
  end(0);
  EXPECT_EQ(code_, 0) << said_;
  EXPECT_LE(split(read("tries"), '\n').size(), 8U) << "the pauses are pauses";
}

TEST_F(SupervisionTest, HostsNeedAnAddressThatTheyReach) {
  write("hosts.txt", "node-1\n");
  options_.run.hosts = path("hosts.txt");
  start();
  thread_.join();
  EXPECT_EQ(code_, 2);
  EXPECT_NE(said_.find("--listen"), std::string::npos) << said_;
}

TEST(MemoryWatch, TheKernelsCounterTellsWhoWasKilledForMemory) {
  std::string pattern = (std::filesystem::temp_directory_path() / "flux_mem.XXXXXX").string();
  ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
  const std::string group = pattern + "/job";
  std::filesystem::create_directory(group);
  std::ofstream(pattern + "/own") << "0::/job\n";
  const auto events = [&](int kills) {
    std::ofstream(group + "/memory.events") << "low 0\nmax 12\noom 1\noom_kill " << kills << "\n";
  };
  events(1);
  std::ofstream(group + "/memory.max") << "1048576\n";
  MemoryWatch watch(pattern, pattern + "/own");
  EXPECT_EQ(watch.limit_bytes(), 1048576U);
  ProcessEnd end;
  end.signal = SIGKILL;
  EXPECT_FALSE(watch.ran_out(end, "")) << "killed by somebody else";
  events(2);
  EXPECT_TRUE(watch.ran_out(end, ""));
  EXPECT_FALSE(watch.ran_out(end, "")) << "once";
  end.signal = SIGABRT;
  EXPECT_TRUE(watch.ran_out(end, "check failed: out of memory: 64 bytes"));
  EXPECT_FALSE(watch.ran_out(end, "check failed: something else"));
  end.signal = 0;
  EXPECT_FALSE(watch.ran_out(end, ""));
  end.code = kOutOfMemoryCode;
  EXPECT_TRUE(watch.ran_out(end, ""));
  std::filesystem::remove_all(pattern);
}

}  // namespace
}  // namespace flux
