// DecisionLog: there and back, a torn end, damage, and what is kept at a start.
#include "flux/coordinator/decision_log.h"

#include <cstdlib>
#include <filesystem>

#include <gtest/gtest.h>

namespace flux {
namespace {

class DecisionLogTest : public testing::Test {
 protected:
  DecisionLogTest() {
    std::string folder = (std::filesystem::temp_directory_path() / "flux_log_XXXXXX").string();
    folder_ = mkdtemp(folder.data());
  }
  ~DecisionLogTest() override { std::filesystem::remove_all(folder_); }
  static Decision member(const char* kind, const char* name, uint64_t boot, uint32_t id = 0) {
    Decision d;
    d.kind = kind;
    d.member = name;
    d.boot = boot;
    d.id = id;
    return d;
  }
  static Decision verdict(uint32_t pass, uint8_t batch) {
    Decision d;
    d.kind = "verdict";
    d.pass = pass;
    d.geometry = 77;
    d.batch = {{pass, 0, 1, 3}, batch, 8};
    d.verdict = Verdict::kSkipped;
    d.why = "tested";
    return d;
  }
  std::string folder_;
};

TEST_F(DecisionLogTest, ComesBackAsItWasWithoutATornEnd) {
  DecisionLog log(&real_files(), folder_ + "/log");
  ASSERT_TRUE(log.append(verdict(2, 5)).is_ok());
  ASSERT_TRUE(log.append(member("server", "server-1", 0xFFFFFFFFFFFFFFFF, 4)).is_ok());
  ASSERT_TRUE(real_files().append_synced(log.path(), "0123456789abcdef {\"kind").is_ok());
  const auto read = log.read();
  ASSERT_TRUE(read.is_ok());
  ASSERT_EQ(read.value().size(), 2U);
  EXPECT_EQ(read.value()[0].batch, verdict(2, 5).batch);
  EXPECT_EQ(read.value()[0].why, "tested");
  EXPECT_EQ(read.value()[1].member, "server-1");
  EXPECT_EQ(read.value()[1].boot, 0xFFFFFFFFFFFFFFFF);
  EXPECT_EQ(read.value()[1].id, 4U);
  ASSERT_TRUE(log.rewrite({verdict(1, 1)}).is_ok());
  EXPECT_EQ(log.read().value().size(), 1U);
}

TEST_F(DecisionLogTest, OnlyWhatTheNextLifeNeedsIsKept) {
  const std::vector<Decision> all = {
      member("server", "server-0", 1, 0),
      member("server", "server-1", 2, 1),
      member("worker", "worker-0", 3),
      verdict(0, 1),
      member("drain", "server-1", 2),
      member("move", "server-0", 0, 7),
      member("server_gone", "server-0", 1),
      member("server", "server-0", 9, 2),
      member("worker_gone", "worker-0", 3),
      member("move", "server-1", 0, 7),
      verdict(1, 2),
      verdict(2, 3),
      member("server_gone", "server-0", 1),  // late: of the one before
  };
  std::string kept;
  for (const Decision& d : compact(all, 2))
    kept += d.kind + " " + (d.member.empty() ? std::to_string(d.pass) : d.member) + ";";
  EXPECT_EQ(kept,
            "server server-1;drain server-1;server server-0;move server-1;verdict 1;verdict 2;");
  std::vector<Decision> over = all;
  over.push_back(member("end", "", 0));
  for (const Decision& d : compact(over, 2)) EXPECT_EQ(d.kind, "verdict");
}

// It lost sight of all servers because they obey another one: that says nothing about them.
TEST_F(DecisionLogTest, AReplacedCoordinatorHasNoSayAboutMembers) {
  const auto of_term = [](uint64_t term, Decision d) {
    d.term = term;
    return d;
  };
  Decision begun;
  begun.kind = "term";
  const std::vector<Decision> all = {
      of_term(1, member("server", "server-0", 1, 0)),
      of_term(1, member("server", "server-1", 2, 1)),
      of_term(2, begun),
      of_term(1, member("server_gone", "server-0", 1)),
      of_term(1, member("end", "", 0)),
      of_term(2, member("server", "server-1", 5, 2)),
      of_term(1, member("server_gone", "server-1", 5)),
  };
  std::string kept;
  for (const Decision& d : compact(all, 0)) kept += fmt::format("{} {};", d.member, d.boot);
  EXPECT_EQ(kept, "server-0 1;server-1 5;");
}

TEST_F(DecisionLogTest, OfTheLearningRateTheLastWordCountsUntilTheEnd) {
  Decision first, last, end;
  first.kind = last.kind = "lr";
  first.lr = {2, 3, 1.25, 50};
  last.lr = {2, 4, 0.1, 7};
  end.kind = "end";
  DecisionLog log(&real_files(), folder_ + "/log");
  ASSERT_TRUE(log.append(first).is_ok());
  ASSERT_TRUE(log.append(last).is_ok());
  const auto kept = compact(log.read().value(), 0);
  ASSERT_EQ(kept.size(), 1U);
  EXPECT_EQ(kept[0].lr, last.lr);
  EXPECT_TRUE(compact({first, last, end}, 0).empty());
}

// The next life hears of a stop, the one after it no more; looks stay for ever.
TEST(DecisionLog, AStopIsToldOnceAndLooksStay) {
  Decision term, look, stop, end;
  term.kind = "term";
  look.kind = "tested";
  look.value = 0.75;
  look.checkpoint = 3;
  stop.kind = "stop";
  stop.why = "stop.examples";
  end.kind = "end";
  const std::vector<Decision> next = compact({term, look, stop, end}, 9);
  ASSERT_EQ(next.size(), 2U);
  EXPECT_EQ(next[0].value, 0.75);
  EXPECT_EQ(next[1].why, "stop.examples");
  std::vector<Decision> later = next;
  later.push_back(term);
  later = compact(later, 9);
  ASSERT_EQ(later.size(), 1U);
  EXPECT_EQ(later[0].checkpoint, 3U);
}

}  // namespace
}  // namespace flux
