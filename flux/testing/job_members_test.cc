// JobMaster and its workers: whom a death accuses, and what of them survives a take-over.
#include "flux/testing/job_master_fixture.h"

namespace flux {
namespace {

class JobMembersTest : public JobMasterTest {
 protected:
  // As a worker does whom the coordinator does not know any more.
  WorkerId join_again(const std::string& name, uint64_t life) {
    JoinRequest request;
    request.name = name;
    request.boot = 1;
    request.incarnation = life;
    WorkerId id = 0;
    master_->join(request,
                  [&](const Result<JoinReply>& r) { id = r.is_ok() ? r.value().worker : 0; });
    clock_.advance(100 * kMillisecond);
    EXPECT_NE(id, 0U) << said_;
    return id;
  }
  // Another coordinator over the servers that there are.
  void take_over() {
    start_master();
    join_all();
    clock_.advance(100 * kMillisecond);
    keep_alive();
  }
};

TEST_F(JobMembersTest, ADeathAccusesOnlyWhatWasBegun) {
  begin();
  BlockId begun, ahead;
  for (uint64_t boot = 1; boot <= 2; ++boot) {
    const WorkerId w = join("w", boot);
    begun = lease(w).value().lease.id;
    ahead = lease(w).value().lease.id;
    const BlockId later = lease(w).value().lease.id;
    WorkerReport report;
    report.ahead = {ahead, later};
    master_->report(w, report, [](const Result<ReportAnswer>&) {});
    master_->worker_gone("w", boot, "killed by signal 11");
  }
  const auto alone = lease(join("a")).value().lease;
  EXPECT_EQ(alone.id, begun);
  EXPECT_EQ(batches(alone).size(), 1U) << "suspect: one batch at a time";
  const WorkerId b = join("b");
  const auto whole = lease(b).value().lease;
  EXPECT_EQ(whole.id, ahead);
  EXPECT_EQ(batches(whole).size(), 2U);
  EXPECT_EQ(batches(lease(b).value().lease).size(), 2U) << "beside another: nobody suspects it";
}

TEST_F(JobMembersTest, ABlockThatIsNoLongerAheadIsAccused) {
  begin();
  for (uint64_t boot = 1; boot <= 2; ++boot) {
    const WorkerId w = join("w", boot);
    WorkerReport report;
    report.ahead = {lease(w).value().lease.id};
    master_->report(w, report, [](const Result<ReportAnswer>&) {});
    master_->report(w, {}, [](const Result<ReportAnswer>&) {});
    master_->worker_gone("w", boot, "killed by signal 11");
  }
  EXPECT_EQ(batches(lease(join("a")).value().lease).size(), 1U);
}

TEST_F(JobMembersTest, IdsOfWorkersAreNotUsedAgainByTheNextCoordinator) {
  begin();
  const WorkerId a = join("a"), b = join("b");
  const uint64_t life = master_->status().incarnation;
  take_over();
  ASSERT_EQ(master_->status().incarnation, life) << said_;
  const WorkerId first = join_again("b", life);
  const WorkerId second = join_again("a", life);
  for (const WorkerId id : {first, second}) {
    EXPECT_NE(id, a);
    EXPECT_NE(id, b);
  }
  EXPECT_EQ(lease(a).status().code(), Code::kStale) << "not taken for another";
  EXPECT_TRUE(lease(first).is_ok());
}

TEST_F(JobMembersTest, TheLearningRateGoesOnWhereTheCoordinatorBeforeStood) {
  blocks_ = 60;
  plan_.lr = {"linear", 2, 100};
  options_.workers_wanted = 2;
  begin();
  std::vector<WorkerId> workers;
  for (const char* name : {"w0", "w1", "w2"}) workers.push_back(join(name));
  // Three workers in place of two: from 1 to 1.5 over 100 batches, two in a block.
  std::vector<BatchId> done;
  for (int i = 0; i < 10; ++i) {
    const auto answer = lease(workers[0], done);
    ASSERT_TRUE(answer.is_ok());
    EXPECT_NEAR(answer.value().lr_scale, 1 + 0.01 * i, 1e-5);
    done = train(answer.value());
  }
  for (int i = 0; i < 10; ++i) {
    for (const WorkerId w : workers) master_->report(w, {}, [](const Result<ReportAnswer>&) {});
    pass_time(200 * kMillisecond);
  }
  const uint64_t life = master_->status().incarnation;
  take_over();
  ASSERT_EQ(master_->status().incarnation, life) << said_;
  workers.clear();
  for (const char* name : {"w0", "w1", "w2"}) workers.push_back(join_again(name, life));
  for (int i = 10; i < 15; ++i) {
    const auto answer = lease(workers[1]);
    ASSERT_TRUE(answer.is_ok());
    EXPECT_NEAR(answer.value().lr_scale, 1 + 0.01 * i, 1e-5);
    train(answer.value());
  }
}

}  // namespace
}  // namespace flux
