// The supervisor over real processes: a script plays the roles, and does to each what a test says.
#include <map>

#include "flux/main/host_list.h"
#include "flux/main/restarts.h"
#include "flux/main/supervision_fixture.h"

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

TEST(Restarts, MemoryIsCountedApartAndByRate) {
  Restarts restarts;
  const TimeNs minute = 60 * kSecond;
  // Two an hour, for ever.
  TimeNs now = 100 * minute;
  for (int i = 0; i < 100; ++i, now += 31 * minute) ASSERT_TRUE(restarts.out_of_memory(now)) << i;
  now += 60 * minute;
  EXPECT_TRUE(restarts.out_of_memory(now));
  EXPECT_TRUE(restarts.out_of_memory(now + 20 * minute));
  EXPECT_FALSE(restarts.out_of_memory(now + 40 * minute)) << "slowly, but again and again";
  EXPECT_EQ(restarts.died(now), now) << "not counted as deaths of another kind";
}

TEST(Restarts, AWorkersShareEndsAtTheLeast) {
  std::string all;
  WorkerShare share{9, 5};
  for (; !share.is_least(); share = share.half())
    all += fmt::format("{}x{} ", share.in_flight, share.threads);
  EXPECT_EQ(all, "9x5 4x5 2x5 1x5 1x2 ");
  EXPECT_TRUE(share.half().is_least());
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

TEST_F(SupervisionTest, WhoLeavesIsNotCountedAndNobodyElseHasToGo) {
  write("do/worker-0", "trap 'while [ ! -e go ]; do sleep 0.02; done; exit 0' TERM\n");
  options_.run.workers = 3;
  start();
  for (const char* name : {"worker-0", "worker-1", "worker-2"}) wait_for_starts(name, 1);
  const pid_t leaving = pid("worker-0"), last = pid("worker-2");
  leaving_["worker-0"] = static_cast<uint32_t>(leaving);
  ::kill(leaving, SIGTERM);
  want(2, 2);
  wait_for_starts("server-1", 1);  // the order is seen
  kill("worker-1");
  EXPECT_EQ(::kill(leaving, 0), 0);
  EXPECT_EQ(::kill(last, 0), 0);
  want(3, 2);
  wait_for_starts("worker-3", 1);
  EXPECT_EQ(pid("worker-2"), last);
  write("go", "");
  end(0);
  EXPECT_EQ(code_, 0) << said_;
  EXPECT_EQ(starts("worker-0").size() + starts("worker-2").size(), 2U);
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

}  // namespace
}  // namespace flux
