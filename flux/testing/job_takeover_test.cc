// A coordinator that comes while servers hold the job: for whom it waits, and how long.
#include <filesystem>

#include "flux/testing/job_master_fixture.h"

namespace flux {
namespace {

class JobTakeoverTest : public JobMasterTest {
 protected:
  JobTakeoverTest() { plan_.replicas = 2; }

  // Two servers hold all of the job.
  void begin_training() {
    begin();
    ASSERT_EQ(master_->status().state, "training") << said_;
    ASSERT_EQ(master_->status().shards_without_backup, 0U) << said_;
  }
  // `name` gets the primaries of all shards, the other server their backups.
  void move_all_to(const std::string& name) {
    for (ShardId s = 0; s < kTestShards; ++s) ASSERT_TRUE(master_->move(s, name).is_ok());
    pass_time(2 * kSecond);
    for (const ServerStatus& s : master_->status().servers) {
      ASSERT_EQ(s.shards, s.name == name ? kTestShards : 0U) << s.name << "\n" << said_;
      ASSERT_EQ(s.backups, s.name == name ? 0U : kTestShards) << s.name << "\n" << said_;
    }
  }
  // Another coordinator, without the log of the one before.
  void start_without_log() {
    ASSERT_TRUE(std::filesystem::remove(plan_.output + "/coordinator.log"));
    start_master();
  }
  void join_one(const std::string& name) { join_server(servers_.find(name)); }
  bool took_over(int servers) const {
    return said_.find(fmt::format("from {} server(s)", servers)) != std::string::npos;
  }
  bool took_over() const { return said_.find("took over") != std::string::npos; }
};

TEST_F(JobTakeoverTest, AfterFreshItWaitsForAllThatJoinedBeforeThePassWasRead) {
  options_.fresh = true;
  begin_training();
  options_.fresh = false;
  start_master();
  join_one("server-0");
  pass_time(options_.takeover_ns / 2);
  EXPECT_FALSE(took_over()) << said_;
  join_one("server-1");
  EXPECT_TRUE(took_over(2)) << said_;
}

TEST_F(JobTakeoverTest, WithoutALogItWaitsForNobodyWhenEverythingIsHeld) {
  begin_training();
  start_without_log();
  join_one("server-0");
  EXPECT_FALSE(took_over()) << said_;
  join_one("server-1");
  EXPECT_TRUE(took_over(2)) << said_;
}

// It may have been made primary while this one was cut off.
TEST_F(JobTakeoverTest, WithoutALogItWaitsForABackupThatAPrimaryNames) {
  begin_training();
  move_all_to("server-0");
  options_.servers = 1;  // so many would do: what is missing is the backup
  start_without_log();
  join_one("server-0");
  pass_time(options_.last_replica_ns - 200 * kMillisecond);
  EXPECT_FALSE(took_over()) << said_;
  pass_time(400 * kMillisecond);
  EXPECT_TRUE(took_over(1)) << said_;
}

TEST_F(JobTakeoverTest, WithoutALogPrimariesThatNameNobodyAreNotHeldUp) {
  begin_training();
  move_all_to("server-0");
  kill("server-1");
  pass_time(kSecond);
  start_without_log();
  join_one("server-0");
  pass_time(options_.takeover_lost_ns - 200 * kMillisecond);
  EXPECT_FALSE(took_over()) << said_;  // two servers are wanted: another may come
  pass_time(400 * kMillisecond);
  EXPECT_TRUE(took_over(1)) << said_;
}

// The one that is here was dropped while it was cut off, and the primary, which went on without it,
// is late: what it told as replicated would be dropped.
TEST_F(JobTakeoverTest, WithoutALogABackupAloneIsNotBelievedAtOnce) {
  begin_training();
  move_all_to("server-0");
  TestServer* cut_off = servers_.find("server-1");
  master_->server_gone("server-1", cut_off->boot, "its connection is closed");
  pass_time(kSecond);
  const auto answer = lease(join("w"));
  ASSERT_TRUE(answer.is_ok());
  const std::vector<BatchId> trained = train(answer.value());
  ASSERT_FALSE(trained.empty());
  start_without_log();
  join_one("server-1");
  pass_time(5 * kSecond);
  EXPECT_FALSE(took_over()) << said_;
  join_one("server-0");
  EXPECT_TRUE(took_over(2)) << said_;
  for (const ServerStatus& s : master_->status().servers)
    EXPECT_EQ(s.shards, s.name == "server-0" ? kTestShards : 0U) << s.name << "\n" << said_;
  EXPECT_EQ(train_all(join("w", 2)) + trained.size(), blocks_ * 2) << said_;
}

TEST_F(JobTakeoverTest, WithoutALogABackupThatComesEndsTheWait) {
  begin_training();
  move_all_to("server-0");
  options_.servers = 1;
  start_without_log();
  join_one("server-0");
  EXPECT_FALSE(took_over()) << said_;
  join_one("server-1");
  EXPECT_TRUE(took_over(2)) << said_;
}

// It was to drain a pass of which nothing was left, and close it: both saved.
TEST_F(JobTakeoverTest, ACompletePassIsClosedAlthoughItIsToldToStop) {
  blocks_ = 1;
  begin_training();
  const auto answer = lease(join("w"));
  ASSERT_TRUE(answer.is_ok());
  train(answer.value());  // the coordinator does not hear of it
  start_master();
  join_one("server-0");
  TestServer* last = servers_.find("server-1");
  master_->join(last->info(), [last](const Result<ServerJoinReply>& r) {
    if (r.is_ok()) last->id = r.value().server;
  });
  for (int i = 0; i < 10000 && master_->status().state != "reading"; ++i)
    clock_.advance(kMillisecond / 10);
  ASSERT_EQ(master_->status().state, "reading") << said_;
  master_->stop("asked to");
  pass_time(options_.leave_deadline_ns + kSecond);
  ASSERT_TRUE(outcome_) << said_;
  EXPECT_TRUE(outcome_->status.is_ok()) << outcome_->status.message();
  EXPECT_TRUE(outcome_->complete) << said_;
  EXPECT_TRUE(std::filesystem::exists(plan_.output + "/checkpoints/000001"));
  EXPECT_FALSE(std::filesystem::exists(plan_.output + "/checkpoints/000002"));
}

// Else a job whose coordinators die sooner than a checkpoint is due would never be saved.
TEST_F(JobTakeoverTest, ItSavesSoonWhateverTheTimeBetweenCheckpoints) {
  plan_.checkpoint_every_s = 600;
  begin_training();
  pass_time(5 * kSecond);
  EXPECT_FALSE(std::filesystem::exists(plan_.output + "/checkpoints/000001"));
  start_master();
  join_all();
  pass_time(2 * kSecond);
  EXPECT_TRUE(std::filesystem::exists(plan_.output + "/checkpoints/000001/manifest.json")) << said_;
  pass_time(20 * kSecond);
  EXPECT_FALSE(std::filesystem::exists(plan_.output + "/checkpoints/000002")) << said_;
  start_master();
  join_all();
  EXPECT_NE(master_->status().last_checkpoint.find("000001"), std::string::npos);
}

// Two processes were given one name: the one that came first is told to end, and does not come
// back.
TEST_F(JobTakeoverTest, AServerWhoseNameAnotherHasIsToldToEnd) {
  begin_training();
  TestServer* first = servers_.find("server-0");
  ServerReport late;
  late.server = first->id;
  late.boot = first->boot;
  ServerJoin join = first->info();
  TestServer* second = servers_.start("server-0");
  join_server(second);
  pass_time(kSecond);
  Status told;
  master_->report(late, [&](const Result<bool>& go) { told = go.status(); });
  EXPECT_EQ(told.code(), Code::kInvalid) << told.message();
  master_->join(join, [&](const Result<ServerJoinReply>& r) { told = r.status(); });
  pass_time(kSecond);
  EXPECT_EQ(told.code(), Code::kInvalid) << told.message();
  EXPECT_EQ(master_->status().servers.size(), 2U);
}

}  // namespace
}  // namespace flux
