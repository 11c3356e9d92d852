// Ends for want of memory: known by what the kernel or the program says, and what the supervisor
// does about them.
#include <unistd.h>

#include "flux/main/memory_watch.h"
#include "flux/main/supervision_fixture.h"
#include "flux/platform/ssh_platform.h"

namespace flux {
namespace {

constexpr uint64_t kMiB = 1 << 20;

// Folders and files as the kernel shows them.
class MemoryWatchTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "flux_mem.XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    places_ = {folder_ + "/groups", folder_ + "/own", folder_ + "/vmstat"};
    write("vmstat", "nr_free_pages 5\noom_kill 7\npgfault 9\n");
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  void write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(folder_ + "/" + name).parent_path());
    std::ofstream(folder_ + "/" + name) << text;
  }
  void new_group(const std::string& path, int kills, const std::string& bound) const {
    write("groups" + path + "/memory.events",
          fmt::format("low 0\nmax 12\noom 1\noom_kill {}\n", kills));
    write("groups" + path + "/memory.max", bound + "\n");
  }
  void old_group(const std::string& path, int kills, const std::string& bound) const {
    write("groups/memory" + path + "/memory.oom_control",
          fmt::format("oom_kill_disable 0\nunder_oom 0\noom_kill {}\n", kills));
    write("groups/memory" + path + "/memory.limit_in_bytes", bound + "\n");
  }
  static ProcessEnd killed() {
    ProcessEnd end;
    end.signal = SIGKILL;
    return end;
  }
  std::string folder_;
  MemoryPlaces places_;
};

TEST_F(MemoryWatchTest, TheKernelsCounterTellsWhoWasKilledForMemory) {
  write("own", "0::/job\n");
  new_group("/job", 1, "1048576");
  MemoryWatch watch(places_);
  EXPECT_EQ(watch.limit_bytes(), kMiB);
  EXPECT_FALSE(watch.ran_out(killed(), "", true)) << "killed by somebody else";
  new_group("/job", 2, "1048576");
  EXPECT_FALSE(watch.ran_out(killed(), "", false)) << "on another machine";
  EXPECT_TRUE(watch.ran_out(killed(), std::string(kKernelKilled) + "\n", false));
  EXPECT_TRUE(watch.ran_out(killed(), "", true));
  EXPECT_FALSE(watch.ran_out(killed(), "", true)) << "once";
  new_group("/job", 4, "1048576");
  EXPECT_TRUE(watch.ran_out(killed(), "", true));
  EXPECT_TRUE(watch.ran_out(killed(), "", true)) << "two at a time";
}

TEST_F(MemoryWatchTest, AnOldKillIsNotAboutALaterEnd) {
  write("own", "0::/job\n");
  new_group("/job", 0, "max");
  MemoryWatch watch(places_);
  watch.look(0);
  new_group("/job", 1, "max");  // of somebody else in the group
  watch.look(MemoryWatch::kFresh);
  new_group("/job", 2, "max");
  watch.look(2 * MemoryWatch::kFresh);
  EXPECT_TRUE(watch.ran_out(killed(), "", true));
  EXPECT_FALSE(watch.ran_out(killed(), "", true));
}

TEST_F(MemoryWatchTest, VersionOne) {
  write("own", "9:name=systemd:/\n4:cpu,memory:/jobs/one\n3:cpuset:/\n");
  old_group("", 50, "9223372036854771712");
  old_group("/jobs", 40, "3145728");
  old_group("/jobs/one", 3, "9223372036854771712");
  MemoryWatch watch(places_);
  EXPECT_EQ(watch.limit_bytes(), 3 * kMiB) << "of the group above";
  old_group("/jobs", 41, "3145728");
  EXPECT_FALSE(watch.ran_out(killed(), "", true)) << "somebody of another group";
  old_group("/jobs/one", 4, "9223372036854771712");
  EXPECT_TRUE(watch.ran_out(killed(), "", true));
}

TEST_F(MemoryWatchTest, BothVersionsAtOnceAndMemoryIsInTheFirst) {
  write("own", "5:memory:/job\n0::/job\n");
  std::filesystem::create_directories(folder_ + "/groups/unified/job");
  old_group("/job", 1, "2097152");
  MemoryWatch watch(places_);
  EXPECT_EQ(watch.limit_bytes(), 2 * kMiB);
  old_group("/job", 2, "2097152");
  EXPECT_TRUE(watch.ran_out(killed(), "", true));
}

TEST_F(MemoryWatchTest, GroupsInGroups) {
  write("own", "0::/a/b:c/d\n");
  new_group("/a", 0, "4194304");
  new_group("/a/b:c", 0, "2097152");
  std::filesystem::create_directory(folder_ + "/groups/a/b:c/d");  // memory is not counted there
  MemoryWatch watch(places_);
  EXPECT_EQ(watch.limit_bytes(), 2 * kMiB);
  new_group("/a/b:c", 1, "2097152");
  EXPECT_TRUE(watch.ran_out(killed(), "", true));
}

TEST_F(MemoryWatchTest, InAContainerThePathMayBeTheOneOutside) {
  write("own", "0::/pods/pod-1/container-1/inner\n");
  new_group("", 0, "8388608");  // what is mounted is the container's
  MemoryWatch outer(places_);
  EXPECT_EQ(outer.limit_bytes(), 8 * kMiB);
  new_group("/inner", 0, "max");
  MemoryWatch inner(places_);
  EXPECT_EQ(inner.limit_bytes(), 8 * kMiB);
  new_group("", 1, "8388608");
  EXPECT_TRUE(outer.ran_out(killed(), "", true));
  EXPECT_FALSE(inner.ran_out(killed(), "", true));

  write("own", "4:memory:/docker/0123\n");
  old_group("", 0, "1048576");
  MemoryWatch old(places_);
  EXPECT_EQ(old.limit_bytes(), kMiB);
  old_group("", 1, "1048576");
  EXPECT_TRUE(old.ran_out(killed(), "", true));
}

TEST_F(MemoryWatchTest, WithoutAGroupTheMachinesCounter) {
  const uint64_t machine = static_cast<uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
                           static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  write("groups/memory/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\n");  // old kernels
  for (const char* own : {"", "0::/\n", "4:memory:/\n"}) {
    write("own", own);
    write("vmstat", "oom_kill 7\n");
    MemoryWatch watch(places_);
    EXPECT_EQ(watch.limit_bytes(), machine);
    EXPECT_FALSE(watch.ran_out(killed(), "", true)) << own;
    write("vmstat", "nr_free_pages 5\noom_kill 8\n");
    EXPECT_TRUE(watch.ran_out(killed(), "", true)) << own;
  }
}

TEST_F(MemoryWatchTest, WhatAProgramSaysItselfCountsOnEveryHost) {
  MemoryWatch watch(places_);
  for (const bool here : {true, false}) {
    ProcessEnd end;
    end.signal = SIGABRT;
    EXPECT_TRUE(watch.ran_out(end, "check failed: out of memory: 64 bytes", here));
    EXPECT_FALSE(watch.ran_out(end, "check failed: something else", here));
    end.signal = 0;
    EXPECT_FALSE(watch.ran_out(end, "out of memory", here));
    end.code = kOutOfMemoryCode;
    EXPECT_TRUE(watch.ran_out(end, "", here));
  }
}

class OutOfMemoryTest : public SupervisionTest {
 protected:
  void SetUp() override {
    SupervisionTest::SetUp();
    job_.push_in_flight = 1;
    job_.threads = 1;
  }
  void always(const std::string& name) const {
    write("do/" + name, fmt::format("exit {}\n", kOutOfMemoryCode));
  }
  void expect_in(const std::string& text, const std::vector<std::string>& parts) const {
    for (const std::string& part : parts)
      EXPECT_NE(text.find(part), std::string::npos) << part << " in\n" << text;
  }
};

TEST_F(OutOfMemoryTest, AWorkerIsTriedWithLessUpToTheLeast) {
  job_.push_in_flight = 4;
  job_.threads = 2;
  always("worker-0");
  start();
  thread_.join();
  EXPECT_NE(code_, 0);
  const auto all = starts("worker-0");
  ASSERT_EQ(all.size(), 6U);
  expect_in(all[0], {"--threads 2"});
  EXPECT_EQ(all[0].find("--in-flight"), std::string::npos) << all[0];
  expect_in(all[1], {"--threads 2 --in-flight 2"});
  expect_in(all[2], {"--threads 2 --in-flight 1"});
  for (size_t i = 3; i < 6; ++i) expect_in(all[i], {"--threads 1 --in-flight 1"});
  expect_in(told_, {"worker-0 ended: exit code 71: out of memory: it used",
                    "started again with at most 2 in flight and 2 thread(s)"});
  expect_in(said_, {"no worker is left", "worker-0", "out of memory", "MiB",
                    "3 times within 60 minutes", "more memory", "data.batch"});
}

TEST_F(OutOfMemoryTest, AWorkerThatIsGivenUpLeavesTheOthers) {
  options_.run.workers = 2;
  write("do/worker-0", fmt::format("echo $$ >> dead; exit {}\n", kOutOfMemoryCode));
  start();
  wait_for_starts("worker-1", 1);
  const auto dead = [&] { return split(read("dead"), '\n'); };  // and an empty one
  wait_until([&] { return dead().size() == 4 && ::kill(std::stoi(dead()[2]), 0) != 0; });
  kill("worker-1");  // whose comeback shows that the end of worker-0 was seen
  end(0);
  EXPECT_EQ(code_, 0) << said_;
  EXPECT_EQ(starts("worker-0").size(), 3U);
  EXPECT_EQ(starts("worker-2").size(), 0U);
  expect_in(told_, {"a smaller data.batch; not started again"});
}

TEST_F(OutOfMemoryTest, AServerThatGoesOnDyingIsTheEndOfTheJob) {
  options_.run.servers = 2;
  always("server-1");
  start();
  thread_.join();
  EXPECT_NE(code_, 0);
  EXPECT_EQ(starts("server-1").size(), 3U);
  expect_in(told_, {"server-1 ended: exit code 71: out of memory: it used", "--servers 3"});
  expect_in(said_, {"server-1", "out of memory", "MiB", "its rows need more memory", "--servers 3",
                    "flux scale", "3 times within 60 minutes"});
}

TEST_F(OutOfMemoryTest, ACoordinatorIsNamedAndBounded) {
  start();
  wait_for_starts("worker-0", 1);
  end(kOutOfMemoryCode);
  EXPECT_NE(code_, 0);
  EXPECT_EQ(starts("coordinator").size(), 3U);
  const std::string what = "the coordinator ended: exit code 71: out of memory: it used";
  expect_in(told_, {what, "started again"});
  expect_in(said_, {what, "give the job more memory"});
}

TEST_F(OutOfMemoryTest, ADrillIsNotCounted) {
  options_.run.drillable = true;
  write("do/worker-0", fmt::format("if [ $(grep -c '^worker-0 ' starts) -lt 5 ]; then\n"
                                   "  echo oom $$ > out/cluster/faults.txt; exit {}\n"
                                   "fi\n",
                                   kOutOfMemoryCode));
  start();
  wait_for_starts("worker-0", 5);
  end(0);
  EXPECT_EQ(code_, 0) << said_;
  expect_in(told_, {"worker-0 ended: exit code 71: out of memory"});
}

TEST_F(OutOfMemoryTest, ItIsKnownOnOtherHosts) {
  write("ssh", "#!/bin/sh\nfor last; do :; done\nread token\nexec /bin/sh -c \"$last\"\n", true);
  write("hosts.txt", "node-1\n");
  options_.run.hosts = path("hosts.txt");
  options_.run.ssh = path("ssh");
  options_.run.listen = "tcp:127.0.0.1:0";
  always("worker-0");
  start();
  thread_.join();
  EXPECT_NE(code_, 0);
  EXPECT_EQ(starts("worker-0").size(), 3U);
  expect_in(said_, {"worker-0 ended: exit code 71: out of memory of host node-1"});
}

}  // namespace
}  // namespace flux
