// The plan of a drill, whom it is about, and what it reads.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include <gtest/gtest.h>
#include <unistd.h>

#include "flux/main/drill_plan.h"
#include "flux/main/drill_report.h"
#include "flux/main/role_process.h"

namespace flux {
namespace {

std::vector<std::string> plan_of(const DrillPlanOptions& options, int most = 100) {
  DrillPlan plan(options);
  std::vector<std::string> out;
  while (static_cast<int>(out.size()) < most) {
    const auto fault = plan.next();
    if (!fault) break;
    out.push_back(fmt::format("{} {} {} {} {}:{} {}", fault->number, fault->at_ns,
                              fault->spec.text(), fault->draw, kill_point_name(fault->order.point),
                              fault->order.pass, fault->size));
  }
  return out;
}

DrillPlanOptions three_kinds() {
  DrillPlanOptions options;
  options.specs = {parse_kill("worker").value(), parse_scale("workers=1..8").value(),
                   parse_at("seal,promote").value()};
  options.every_ns = 10 * kSecond;
  options.jitter = 0.3;
  return options;
}

TEST(DrillPlan, TheSameSeedGivesTheSamePlan) {
  DrillPlanOptions options = three_kinds();
  const auto one = plan_of(options);
  EXPECT_EQ(one.size(), 100U);
  EXPECT_EQ(plan_of(options), one);
  options.seed = 2;
  EXPECT_NE(plan_of(options), one);
}

TEST(DrillPlan, KindsTakeTurnsAndMomentsStayNearTheirPlace) {
  DrillPlan plan(three_kinds());
  const FaultKind turns[] = {FaultKind::kKill, FaultKind::kScale, FaultKind::kKillPoint};
  std::set<uint32_t> sizes;
  for (int i = 0; i < 300; ++i) {
    const PlannedFault fault = *plan.next();
    EXPECT_EQ(fault.spec.kind, turns[i % 3]);
    EXPECT_NEAR(static_cast<double>(fault.at_ns), 1e10 * (i + 1), 3e9 + 1);
    if (i % 3 == 1) sizes.insert(fault.size);
    if (i % 3 == 2) {
      EXPECT_EQ(fault.order.point, i % 2 == 0 ? KillPoint::kSeal : KillPoint::kPromote);
      EXPECT_GE(fault.order.pass, 1U);
      EXPECT_LE(fault.order.pass, 20U);
    }
  }
  EXPECT_EQ(sizes, (std::set<uint32_t>{1, 2, 3, 4, 5, 6, 7, 8}));
}

TEST(DrillPlan, EveryDrawnSizeIsAChange) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    DrillPlanOptions options;
    options.specs = {parse_scale("workers=1..3").value(), parse_scale("workers=1..3").value(),
                     parse_scale("servers=4,3,2").value()};
    options.workers = 2;
    options.servers = 2;
    options.seed = seed;
    DrillPlan plan(options);
    uint32_t workers = 2;
    std::vector<uint32_t> servers;
    for (int i = 0; i < 60; ++i) {
      const PlannedFault fault = *plan.next();
      if (fault.spec.scale == "servers") {
        servers.push_back(fault.size);
        continue;
      }
      EXPECT_NE(fault.size, workers) << "seed " << seed << ", fault " << fault.number;
      workers = fault.size;
    }
    EXPECT_EQ(std::vector<uint32_t>(servers.begin(), servers.begin() + 4),
              (std::vector<uint32_t>{4, 3, 2, 4}));
  }
  DrillPlanOptions one;
  one.specs = {parse_scale("workers=2..2").value()};
  one.workers = 2;
  EXPECT_EQ(DrillPlan(one).next()->size, 2U) << "there is no other";
}

TEST(DrillPlan, EndsAfterItsTimesOrItsTime) {
  DrillPlanOptions options = three_kinds();
  options.jitter = 0;
  options.times = 7;
  EXPECT_EQ(plan_of(options).size(), 7U);
  options.for_ns = 45 * kSecond;
  EXPECT_EQ(plan_of(options).size(), 4U);
}

// As recorded: fault 2 waited ten seconds for its victim, and 3 and 4 were long due then.
TEST(DrillPlan, FaultsStayApartAfterOneThatCameLate) {
  DrillPlanOptions options = three_kinds();
  options.jitter = 0;
  DrillPlan plan(options);
  FaultClock clock;
  const PlannedFault one = *plan.next(), two = *plan.next(), three = *plan.next(),
                     four = *plan.next(), five = *plan.next();
  EXPECT_EQ(clock.due(one), 10 * kSecond);
  clock.passed(one, 10 * kSecond + kMillisecond);
  EXPECT_EQ(clock.due(two), 20 * kSecond);  // a little late does not move the plan
  clock.passed(two, 32 * kSecond);
  EXPECT_GE(clock.due(three), 41 * kSecond);
  EXPECT_LE(clock.due(three), 42 * kSecond);
  clock.passed(three, 42 * kSecond);
  EXPECT_GE(clock.due(four), 51 * kSecond);
  clock.passed(four, 51 * kSecond);
  EXPECT_GE(clock.due(five), 60 * kSecond);
}

TEST(DrillPlan, WordsAndBack) {
  EXPECT_EQ(parse_kill("server:0+server:1").value().text(), "kill server:0+server:1");
  EXPECT_EQ(parse_kill("server:0+server:1").value().label(), "kill server+server");
  EXPECT_EQ(parse_kill("all").value().text(), "kill all");
  EXPECT_TRUE(parse_kill("coordinator~log").value().lose_log);
  EXPECT_EQ(parse_partition("worker:0-server:1").value().text(), "partition worker:0-server:1");
  EXPECT_FALSE(parse_partition("worker>server").value().both_ways);
  EXPECT_TRUE(parse_partition("worker:0-worker:1").is_ok());
  EXPECT_TRUE(parse_partition("worker-worker").is_ok()) << "two of them";
  for (const char* text : {"worker:0-worker:0", "server:1>server:1", "coordinator-coordinator"})
    EXPECT_NE(parse_partition(text).status().message().find("cut off from itself"),
              std::string::npos)
        << text;
  EXPECT_EQ(parse_scale("servers=2,4,3").value().sizes, (std::vector<uint32_t>{2, 4, 3}));
  EXPECT_EQ(parse_at("all").value().points.size(), kill_point_names().size());
  EXPECT_EQ(parse_duration("200ms").value(), 200 * kMillisecond);
  EXPECT_EQ(parse_duration("1.5m").value(), 90 * kSecond);
  EXPECT_EQ(parse_duration("3").value(), 3 * kSecond);
}

TEST(DrillPlan, RefusesInPlainWords) {
  const auto refused = [](const auto& result) {
    EXPECT_FALSE(result.is_ok());
    return result.is_ok() ? "" : result.status().message();
  };
  EXPECT_NE(refused(parse_kill("wroker")).find("did you mean 'worker'"), std::string::npos);
  for (const char* text : {"", "worker:", "worker:x", "coordinator:1", "any:0", "worker+"})
    refused(parse_kill(text));
  for (const char* text : {"worker", "a-b", "worker-server-worker", "worker>"})
    refused(parse_partition(text));
  for (const char* text : {"workers", "workers=", "rows=1", "workers=0", "workers=3..1"})
    refused(parse_scale(text));
  for (const char* text : {"", "s", "5d", "-1s", "0s", "1e9h", "nan", "5 s"})
    refused(parse_duration(text));
  const auto says = [&](const auto& result, std::initializer_list<const char*> words) {
    const std::string text = refused(result);
    for (const char* word : words) EXPECT_NE(text.find(word), std::string::npos) << text;
  };
  says(parse_kill("nobody"),
       {"--kill nobody", "worker:1", "any", "all", "coordinator~log", "server:0+server:1"});
  says(parse_scale("workers=8..1"), {"--scale workers=8..1", "say workers=1..8"});
  says(parse_scale("workers=x"), {"--scale workers=x", "'x'"});
  says(parse_duration("--every", "soon"), {"--every", "'soon'", "200ms"});
  refused(parse_drain("coordinator"));
  refused(parse_at("nowhere"));
}

TEST(DrillProcesses, ChoosesByNumberAndByDraw) {
  JobStatus status;
  for (const uint32_t i : {2U, 0U, 1U}) {
    WorkerStatus worker;
    worker.name = fmt::format("worker-{}", i);
    worker.pid = 100 + i;
    status.workers.push_back(worker);
  }
  const auto all = processes_of(status, nullptr);
  EXPECT_EQ(choose(all, {"worker", 1}, 5).value().pid, 101);
  EXPECT_EQ(choose(all, {"worker", std::nullopt}, 5).value().pid, 102);
  EXPECT_EQ(choose(all, {"any", std::nullopt}, 3).value().pid, 100);
  EXPECT_EQ(choose(all, {"worker", 3}, 0).status().code(), Code::kNotFound);
  EXPECT_EQ(choose(all, {"coordinator", std::nullopt}, 0).status().code(), Code::kNotFound);
}

TEST(DrillProcesses, TouchesNobodyWhoIsNotOfTheJob) {
  // This test itself: its number is right, but it is no worker.
  RoleProcess process{"worker", "worker-0", host_name(), "", ::getpid()};
  EXPECT_EQ(signal_process(process, SIGKILL).code(), Code::kNotFound);
  EXPECT_EQ(take_memory(process).status().code(), Code::kNotFound);
  process.host = "elsewhere";
  EXPECT_EQ(signal_process(process, SIGKILL).code(), Code::kInvalid);
}

TEST(DrillReport, SaysWhyThereWasNoFault) {
  DrillWatch watch;
  NoFault facts;
  facts.complete = true;
  facts.every = "30s";
  EXPECT_NE(no_fault_text(facts, watch).find("--fresh"), std::string::npos);
  facts.trained = true;
  facts.trained_s = 12.34;
  const std::string early = no_fault_text(facts, watch);
  EXPECT_NE(early.find("12.3 s"), std::string::npos) << early;
  EXPECT_NE(early.find("shorter --every"), std::string::npos) << early;
  facts.waited_for = "worker:99 is not there now";
  EXPECT_NE(no_fault_text(facts, watch).find("worker:99"), std::string::npos);
  watch.leave_out(3, 1, "server-0 asked for no memory");
  const std::string left = no_fault_text(facts, watch);
  EXPECT_NE(left.find("1 left out, the last: server-0 asked"), std::string::npos) << left;
  EXPECT_EQ(left.find("--every"), std::string::npos);
}

TEST(DrilledSummary, OddFilesAreRefused) {
  const std::string path = fmt::format("{}/summary.{}.json", ::testing::TempDir(), ::getpid());
  for (const char* text : {"", "[]", "{}", "{\"state\": 7}", "{\"state\": \"complete\""}) {
    std::ofstream(path) << text;
    EXPECT_EQ(read_summary(path).status().code(), Code::kCorrupt) << text;
  }
  std::filesystem::remove(path);
  EXPECT_EQ(read_summary(path).status().code(), Code::kNotFound);
}

}  // namespace
}  // namespace flux
