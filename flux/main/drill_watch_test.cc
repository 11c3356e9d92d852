// What a drill makes of samples, and the forms of its report.
#include "flux/main/drill_watch.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "flux/main/drill_report.h"
#include "flux/main/timeline_svg.h"

namespace flux {
namespace {

// A job that applies 100 examples in each sample of 0.1 s, unless it is told not to.
struct WatchTest : ::testing::Test {
  void SetUp() override {
    t = 0;
    watch = DrillWatch();
    status = JobStatus();
    status.state = "training";
    status.job = "counted";
    for (uint32_t i = 0; i < 2; ++i) {
      WorkerStatus worker;
      worker.name = fmt::format("worker-{}", i);
      worker.pid = 100 + i;
      status.workers.push_back(worker);
      ServerStatus server;
      server.name = fmt::format("server-{}", i);
      server.pid = 200 + i;
      status.servers.push_back(server);
    }
    record.pid = 300;
  }
  void samples(int count, bool moves = true, bool answers = true) {
    for (int i = 0; i < count; ++i) {
      t += 0.1;
      if (moves) status.examples_applied += 100;
      if (moves) status.examples_run += 100;
      watch.add_sample(t, answers ? std::optional(status) : std::nullopt, record);
    }
  }
  DrillFault fault(const std::string& role, const std::string& name, int64_t pid,
                   FaultKind kind = FaultKind::kKill) {
    DrillFault out;
    out.number = static_cast<uint32_t>(watch.faults().size()) + 1;
    out.kind = kind;
    out.label = "kill " + role;
    out.victims = {{role, name, "here", "", pid}};
    out.t = t;
    return out;
  }
  JobStatus status;
  CoordinatorRecord record;
  DrillWatch watch;
  double t = 0;
};

TEST_F(WatchTest, AKilledWorkerIsNoticedReplacedAndTrainingGoesOn) {
  samples(20);
  watch.add_fault(fault("worker", "worker-1", 101));
  samples(3);
  EXPECT_FALSE(watch.faults()[0].noticed_s);
  status.workers.pop_back();
  samples(1, false);
  samples(4);
  WorkerStatus again;
  again.name = "worker-1";
  again.pid = 111;
  status.workers.push_back(again);
  samples(20);
  const DrillFault& f = watch.faults()[0];
  EXPECT_NEAR(*f.noticed_s, 0.4, 1e-6);
  EXPECT_NEAR(*f.trains_s, 0.5, 1e-6);
  EXPECT_NEAR(*f.recovered_s, 0.5, 1e-6);
  EXPECT_NEAR(*f.back_s, 0.9, 1e-6);
  EXPECT_TRUE(f.speed_s);
  EXPECT_TRUE(f.over());
  EXPECT_EQ(watch.workers_restarted(), 1U);
  EXPECT_EQ(watch.workers_restarted_unasked(), 0U);
  EXPECT_NEAR(watch.worst_stall_s(), 0.2, 1e-6);
  EXPECT_NEAR(watch.rate_before(), 1000, 1);
}

TEST_F(WatchTest, AStallLastsUntilSomethingIsApplied) {
  samples(10);
  EXPECT_NEAR(watch.stall_before_s(), 0.1, 1e-6);
  watch.add_fault(fault("server", "server-0", 200));
  samples(7, false);
  EXPECT_NEAR(watch.worst_stall_s(), 0.7, 1e-6);  // while it lasts
  status.servers[0].pid = 210;
  samples(1, false);
  samples(10);
  EXPECT_NEAR(watch.worst_stall_s(), 0.9, 1e-6);
  EXPECT_NEAR(*watch.faults()[0].recovered_s, 0.9, 1e-6);
  EXPECT_NEAR(watch.stall_before_s(), 0.1, 1e-6);
}

// As recorded of `--kill all` and of `--kill server:0+server:1`: the job goes back to a checkpoint.
TEST_F(WatchTest, RepeatsAreTrainingButNothingNew) {
  for (const FaultKind kind : {FaultKind::kKillAll, FaultKind::kKill}) {
    SetUp();
    samples(20);
    DrillFault lost = fault("server", "server-0", 200, kind);
    lost.victims.push_back({"server", "server-1", "here", "", 201});
    if (kind == FaultKind::kKillAll)
      lost.victims.push_back({"coordinator", "coordinator", "here", "", 300});
    watch.add_fault(lost);
    const uint64_t best = status.examples_applied;
    samples(2, false, kind == FaultKind::kKill);
    status.servers[0].pid = 210;
    status.servers[1].pid = 211;
    if (kind == FaultKind::kKillAll) {
      record.pid = 310;
      status.examples_run = 0;
    }
    status.examples_applied = best - 500;
    samples(1, false);  // noticed at 0.3
    samples(5);         // repeated: up to what was there before
    EXPECT_EQ(status.examples_applied, best);
    EXPECT_FALSE(watch.faults().back().new_s);
    EXPECT_EQ(watch.applied(), best);
    samples(20);
    const DrillFault& f = watch.faults().back();
    EXPECT_NEAR(*f.noticed_s, 0.3, 1e-6);
    EXPECT_NEAR(*f.trains_s, 0.4, 1e-6);
    EXPECT_NEAR(*f.recovered_s, 0.4, 1e-6);
    EXPECT_NEAR(*f.new_s, 0.9, 1e-6);
    EXPECT_GE(*f.speed_s, *f.new_s);
    EXPECT_TRUE(f.over());
    EXPECT_NEAR(watch.worst_stall_s(), 0.85, 0.06);  // what was done unseen is taken off
  }
}

TEST_F(WatchTest, WorkersThatOnlyRepeatHaveNotRecoveredFromTheLossOfOneServer) {
  samples(20);
  watch.add_fault(fault("server", "server-0", 200));
  status.servers[0].pid = 210;
  samples(1, false);
  status.examples_run += 300;
  samples(1, false);
  EXPECT_NEAR(*watch.faults()[0].trains_s, 0.2, 1e-6);
  EXPECT_FALSE(watch.faults()[0].recovered_s);
  samples(1);
  EXPECT_NEAR(*watch.faults()[0].recovered_s, 0.3, 1e-6);
}

// As recorded: a pause that was over before anybody noticed, and later an --oom of the same worker.
TEST_F(WatchTest, AFaultDoesNotTakeTheEventsOfALaterOne) {
  samples(20);
  watch.add_fault(fault("worker", "worker-0", 100, FaultKind::kPause));
  samples(5, false);
  watch.heal(1, t);
  samples(1, false);  // not back yet: nothing is applied
  watch.add_fault(fault("worker", "worker-0", 100, FaultKind::kOom));
  status.workers[0].pid = 110;
  samples(20);
  EXPECT_FALSE(watch.faults()[0].noticed_s);
  EXPECT_FALSE(watch.faults()[0].recovered_s);
  EXPECT_TRUE(watch.faults()[0].over());
  EXPECT_NEAR(*watch.faults()[1].noticed_s, 0.1, 1e-6);
}

TEST_F(WatchTest, WhoeverIsBackFromAPauseIsNoticedNoMore) {
  samples(20);
  watch.add_fault(fault("worker", "worker-0", 100, FaultKind::kPause));
  samples(5);
  watch.heal(1, t);
  samples(1);
  status.workers[0].pid = 110;  // restarted for a reason of its own
  samples(20, false);
  EXPECT_NEAR(*watch.faults()[0].back_s, 0.1, 1e-6);
  EXPECT_FALSE(watch.faults()[0].noticed_s);
}

TEST_F(WatchTest, WhoIsMissingAfterANewCoordinatorOrAtTheEndWasNotNoticed) {
  samples(20);
  watch.add_fault(fault("worker", "worker-0", 100, FaultKind::kPause));
  watch.add_fault(fault("worker", "worker-1", 101, FaultKind::kPause));
  watch.add_fault(fault("coordinator", "coordinator", 300));
  samples(2, false, false);
  record.pid = 301;
  const auto workers = status.workers;
  status.workers.clear();
  samples(3, false);
  status.workers = workers;
  samples(5);
  EXPECT_FALSE(watch.faults()[0].noticed_s);
  watch.add_fault(fault("server", "server-0", 200, FaultKind::kPause));
  status.state = "complete";
  status.servers.clear();
  samples(3, false);
  EXPECT_FALSE(watch.faults()[3].noticed_s);
}

TEST_F(WatchTest, AChangeOfNumbersIsOverWhenTheyAreThere) {
  const auto scale = [&](const std::string& what, uint32_t size) {
    DrillFault out;
    out.number = static_cast<uint32_t>(watch.faults().size()) + 1;
    out.kind = FaultKind::kScale;
    out.label = "scale " + what;
    out.scale = what;
    out.size = size;
    out.t = t;
    watch.add_fault(out);
  };
  samples(20);
  scale("workers", 3);
  samples(2);
  EXPECT_FALSE(watch.faults()[0].noticed_s);
  status.wanted_workers = 3;
  samples(3);
  EXPECT_NEAR(*watch.faults()[0].noticed_s, 0.3, 1e-6);
  EXPECT_FALSE(watch.faults()[0].recovered_s);
  status.workers.push_back(status.workers[0]);
  status.workers[2].name = "worker-2";
  samples(3);
  EXPECT_NEAR(*watch.faults()[0].recovered_s, 0.6, 1e-6);
  scale("servers", 1);
  status.wanted_servers = 1;
  samples(4);
  EXPECT_FALSE(watch.faults()[1].recovered_s);
  status.servers.pop_back();
  samples(1);
  EXPECT_NEAR(*watch.faults()[1].recovered_s, 0.5, 1e-6);
}

// Another coordinator counts what is trained from 0 on.
TEST_F(WatchTest, CountersThatBeginAnewAreNoTraining) {
  samples(20);
  watch.add_fault(fault("coordinator", "coordinator", 300));
  samples(3, false, false);
  record.pid = 301;
  status.examples_run = 40;
  samples(2, false);
  EXPECT_FALSE(watch.faults()[0].trains_s);
  EXPECT_NEAR(*watch.faults()[0].recovered_s, 0.4, 1e-6);
  status.examples_run = 50;
  samples(1, false);
  EXPECT_NEAR(*watch.faults()[0].trains_s, 0.6, 1e-6);
  EXPECT_FALSE(watch.faults()[0].new_s);
}

TEST_F(WatchTest, WorkDoneWhileTheCoordinatorIsAwayIsNoStall) {
  samples(20);
  watch.add_fault(fault("coordinator", "coordinator", 300));
  samples(15, true, false);  // workers go on; nobody tells
  record.pid = 301;
  samples(10);
  const DrillFault& f = watch.faults()[0];
  EXPECT_NEAR(*f.noticed_s, 0.1, 1e-6);
  EXPECT_NEAR(*f.recovered_s, 1.6, 1e-6);
  EXPECT_LT(watch.worst_stall_s(), 0.3);
}

TEST_F(WatchTest, AnIdleTimeWhileTheCoordinatorIsAwayIsOne) {
  samples(20);
  watch.add_fault(fault("coordinator", "coordinator", 300));
  samples(15, false, false);
  record.pid = 301;
  samples(10);
  EXPECT_GT(watch.worst_stall_s(), 1.4);
}

TEST_F(WatchTest, SavingIsNoStall) {
  samples(10);
  watch.add_fault(fault("worker", "worker-1", 101));
  status.state = "saving";
  samples(30, false);
  status.state = "training";
  samples(5);
  EXPECT_LT(watch.worst_stall_s(), 0.3);
}

TEST_F(WatchTest, APauseCountsFromItsEnd) {
  samples(20);
  watch.add_fault(fault("worker", "worker-0", 100, FaultKind::kPause));
  status.workers[0].seen_s_ago = 3;
  samples(30);
  EXPECT_FALSE(watch.faults()[0].recovered_s);
  watch.heal(1, t);
  samples(2);
  status.workers[0].seen_s_ago = 0.1;
  samples(20);
  const DrillFault& f = watch.faults()[0];
  EXPECT_NEAR(*f.recovered_s, 0.3, 1e-6);
  EXPECT_NEAR(*f.new_s, 0.1, 1e-6);
  EXPECT_FALSE(f.noticed_s);  // it was a member all the time
  EXPECT_EQ(watch.workers_restarted(), 0U);
}

TEST_F(WatchTest, AWorkerThatWasNotTouchedAndIsAnotherOneIsCounted) {
  samples(5);
  watch.add_fault(fault("server", "server-0", 200));
  status.workers[0].pid = 777;
  samples(5);
  EXPECT_EQ(watch.workers_restarted_unasked(), 1U);
}

TEST(Spread, IsByNearestRank) {
  std::vector<double> values;
  for (int i = 100; i >= 1; --i) values.push_back(i);
  const Spread s = spread_of(values);
  EXPECT_EQ(s.count, 100U);
  EXPECT_EQ(s.p50, 50);
  EXPECT_EQ(s.p99, 99);
  EXPECT_EQ(s.max, 100);
  EXPECT_EQ(spread_of({}).count, 0U);
  EXPECT_EQ(spread_of({7}).p99, 7);
}

TEST_F(WatchTest, ReportInItsForms) {
  samples(20);
  watch.add_fault(fault("worker", "worker-1", 101));
  status.workers[1].pid = 111;
  samples(20);
  DrillReport report;
  report.job = "counted <&>";
  report.plan = "kill worker every 2s";
  report.end = "running";
  report.examples_total = 45'840'617;
  report.watch = &watch;
  EXPECT_NE(drill_line(report).find("faults 1 · samples 4,000/45,840,617 so far"),
            std::string::npos)
      << drill_line(report);
  DrilledSummary summary;
  summary.state = "complete";
  summary.expected = 45'840'617;
  summary.applied_once = 45'840'617;
  summary.auc = 0.75;
  summary.text = "{\"state\": \"complete\"}";
  report.summary = summary;
  const std::string line = drill_line(report);
  EXPECT_TRUE(
      line.starts_with("faults 1 · samples 45,840,617/45,840,617 applied once · lost 0 · "
                       "double 0 · worst stall 0."))
      << line;
  EXPECT_TRUE(line.ends_with("· AUC 0.75000")) << line;
  report.baseline = summary;
  report.baseline->auc = 0.75004;
  report.baseline->examples_per_s = 2000;
  EXPECT_TRUE(drill_line(report).ends_with("goodput 50 % · AUC -0.00004")) << drill_line(report);
  const auto json = nlohmann::json::parse(drill_json(report));
  EXPECT_EQ(json["faults"].size(), 1U);
  EXPECT_EQ(json["samples"].size(), 40U);
  EXPECT_EQ(json["samples"][0].size(), json["sample_columns"].size());
  EXPECT_EQ(json["recovery"]["kill worker"]["recovered"]["count"], 1);
  EXPECT_EQ(json["summary"]["state"], "complete");
  EXPECT_NEAR(json["faults"][0]["new_s"].get<double>(), 0.2, 1e-6);
  EXPECT_NE(recovery_table(report).find("kill worker"), std::string::npos);
}

TEST_F(WatchTest, WhatWasNeverSeenHasNoFigure) {
  samples(20);
  watch.add_fault(fault("worker", "worker-1", 101));
  samples(5);
  DrillReport report;
  report.watch = &watch;
  const std::string table = recovery_table(report);
  EXPECT_NE(table.find("recovered          0       -       -       -\n"), std::string::npos)
      << table;
  EXPECT_EQ(table.find("0.00"), std::string::npos) << table;
  const auto json = nlohmann::json::parse(drill_json(report));
  EXPECT_EQ(json["recovery"]["kill worker"]["noticed"]["count"], 0);
  EXPECT_TRUE(json["recovery"]["kill worker"]["noticed"]["p50"].is_null());
  EXPECT_TRUE(json["faults"][0]["recovered_s"].is_null());
}

TEST_F(WatchTest, ThePictureHasEveryFaultAndNoScript) {
  samples(20);
  for (int i = 0; i < 3; ++i) {
    watch.add_fault(fault("worker", "worker-1", 101));
    samples(5, true, i != 1);
  }
  const std::string svg =
      timeline_svg({"a <b> & c", "note", 1000, 0.97}, watch.samples(), watch.faults());
  EXPECT_TRUE(svg.starts_with("<svg "));
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
  EXPECT_EQ(svg.find("<b>"), std::string::npos);
  EXPECT_EQ(svg.find("<script"), std::string::npos);
  EXPECT_NE(svg.find("kill worker (3)"), std::string::npos);
  EXPECT_NE(svg.find("goodput 97 %"), std::string::npos);
  EXPECT_NE(svg.find("#e4e4e4"), std::string::npos);  // the coordinator was away once
  size_t marks = 0;
  for (size_t at = svg.find("l4 8"); at != std::string::npos; at = svg.find("l4 8", at + 1))
    ++marks;
  EXPECT_EQ(marks, 3U);
  EXPECT_TRUE(timeline_svg({}, {}, {}).ends_with("</svg>\n"));
}

}  // namespace
}  // namespace flux
