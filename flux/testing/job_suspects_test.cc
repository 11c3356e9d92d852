// What the coordinator makes of servers that others cannot reach: it looks sooner, believes nobody
// alone, and takes a server for dead that no worker reaches although it renews its lease.
#include "flux/testing/job_master_fixture.h"

namespace flux {
namespace {

class JobSuspectsTest : public JobMasterTest {
 protected:
  JobSuspectsTest() {
    plan_.replicas = 2;
    options_.servers = 3;
    options_.member_lease_ns = 60 * kSecond;
    options_.workers_deadline_ns = options_.servers_deadline_ns = 600 * kSecond;
  }
  // All servers but `silent` renew, the workers say whom they do not reach.
  void talk(TimeNs ns, const std::map<WorkerId, std::vector<ServerId>>& words,
            const std::string& silent = "") {
    for (const TimeNs end = clock_.now_ns() + ns; clock_.now_ns() < end;) {
      for (TestServer* server : servers_.live()) {
        if (server->name == silent) continue;
        const ServerReport report{server->id, server->boot, {}};
        master_->report(report, [this, server](const Result<bool>& go) {
          if (go.status().code() != Code::kStale) return server->jobs->heard_coordinator();
          *server->clock.alive = false;  // taken for dead: another process of its name
          join_server(servers_.start(server->name));
        });
      }
      for (const auto& [worker, suspects] : words) {
        WorkerReport report;
        report.suspects = suspects;
        master_->report(worker, report, [](const Result<ReportAnswer>&) {});
      }
      clock_.advance(200 * kMillisecond);
    }
  }
  ServerId id_of(const std::string& name) { return servers_.find(name)->id; }
  ClusterMap map() {
    ClusterMap now;
    master_->map([&](const Result<ClusterMap>& m) { now = m.value(); });
    return now;
  }
  size_t primaries_of(ServerId id) {
    const ShardRoute route = map().route;
    return static_cast<size_t>(std::count(route.server.begin(), route.server.end(), id));
  }
  bool lost(const std::string& name) { return said_.find("lost " + name) != std::string::npos; }
};

TEST_F(JobSuspectsTest, AServerThatIsSilentIsFoundSoonerByAWord) {
  begin();
  const WorkerId w = join("w0"), other = join("w1");
  talk(kSecond, {{w, {}}, {other, {}}});
  TestServer* server = servers_.find("server-1");
  *server->clock.alive = false;  // it hangs: nothing is closed
  talk(3 * kSecond, {{w, {}}, {other, {}}});
  EXPECT_FALSE(lost("server-1")) << "its lease is long";
  talk(kSecond, {{w, {server->id}}, {other, {}}});
  EXPECT_TRUE(lost("server-1")) << said_;
  EXPECT_EQ(master_->status().shards_unserved, 0U);
}

// It answers when it is asked: its reports were late, no more.
TEST_F(JobSuspectsTest, AServerThatAnswersStays) {
  begin();
  const WorkerId w = join("w0"), other = join("w1");
  talk(20 * kSecond, {{w, {id_of("server-1")}}, {other, {}}}, "server-1");
  EXPECT_FALSE(lost("server-1")) << said_;
}

TEST_F(JobSuspectsTest, OneWordAgainstAServerThatRenewsDoesNothing) {
  begin();
  const WorkerId w = join("w0"), other = join("w1");
  const ServerId id = id_of("server-1");
  const uint64_t version = map().version;
  talk(60 * kSecond, {{w, {id}}, {other, {}}});
  EXPECT_FALSE(lost("server")) << said_;
  EXPECT_EQ(map().version, version) << "nothing has moved";
  // Nor does it against servers that there are not, or against all of them by both.
  talk(30 * kSecond, {{w, {99, 1U << 19}}, {other, {99}}});
  talk(30 * kSecond, {{w, {0, 1, 2}}, {other, {0, 1, 2}}});
  EXPECT_FALSE(lost("server")) << said_;
  EXPECT_EQ(map().version, version);
}

TEST_F(JobSuspectsTest, AServerThatNoWorkerReachesGivesItsShardsAway) {
  begin();
  const WorkerId w = join("w0"), other = join("w1");
  const ServerId id = id_of("server-1");
  ASSERT_GT(primaries_of(id), 0U);
  talk(options_.suspicion.bound_ns - kSecond, {{w, {id}}, {other, {id}}});
  EXPECT_FALSE(lost("server-1"));
  talk(2 * kSecond, {{w, {id}}, {other, {id}}});
  ASSERT_TRUE(lost("server-1"));
  EXPECT_NE(said_.find("2 of 4 other members cannot reach it"), std::string::npos) << said_;
  EXPECT_EQ(master_->status().shards_unserved, 0U);
  EXPECT_EQ(primaries_of(id), 0U);
  // It has come back as another process, and has nothing until the pause is over.
  const ServerId again = id_of("server-1");
  ASSERT_NE(again, id);
  ASSERT_NE(again, kNoServer);
  talk(options_.suspicion.pause_ns - 3 * kSecond, {{w, {}}, {other, {}}});
  EXPECT_EQ(primaries_of(again), 0U);
  talk(30 * kSecond, {{w, {}}, {other, {}}});
  EXPECT_GT(primaries_of(again), 0U) << said_;
  EXPECT_EQ(master_->status().shards_without_backup, 0U);
}

// To take it for dead would bring back a checkpoint: it renews, so it is waited for.
TEST_F(JobSuspectsTest, WhoAloneHasAShardIsNotGivenUp) {
  plan_.replicas = 1;
  begin();
  const WorkerId w = join("w0");
  talk(60 * kSecond, {{w, {id_of("server-1")}}});
  EXPECT_FALSE(lost("server")) << said_;
}

}  // namespace
}  // namespace flux
