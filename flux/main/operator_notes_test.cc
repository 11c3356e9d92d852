#include "flux/main/operator_notes.h"

#include <gtest/gtest.h>

namespace flux {
namespace {

JobStatus two_servers() {
  JobStatus status;
  status.replicas = 2;
  status.servers.resize(2);
  status.servers[0].name = "server-0";
  status.servers[1].name = "server-1";
  status.workers.resize(1);
  return status;
}

TEST(OperatorNotes, ShardsWithoutABackup) {
  JobStatus status = two_servers();
  EXPECT_EQ(backup_note(status, 2), "");
  EXPECT_EQ(backup_note(status, 1),
            "warning: replicas: 2, but there will be 1 server: shards have no backup until another "
            "one joins (flux scale --servers 2)");
  EXPECT_EQ(servers_without(status, "server-1"), 1U);
  EXPECT_EQ(servers_without(status, "worker-0"), 2U);
  status.servers[0].draining = true;
  EXPECT_EQ(servers_without(status, "server-0"), 1U);
  status.replicas = 1;
  EXPECT_EQ(backup_note(status, 1), "");
}

TEST(OperatorNotes, NobodyStartsWhatIsMissing) {
  const JobStatus status = two_servers();
  EXPECT_EQ(nobody_starts_note(status, 1, 2), "");
  EXPECT_EQ(nobody_starts_note(status, -1, 1), "") << "fewer need nobody";
  EXPECT_EQ(nobody_starts_note(status, 3, 3),
            "note: this cluster was started by hand, so nobody starts what is missing; start 2 "
            "workers (flux worker) and 1 server (flux server) yourself");
}

}  // namespace
}  // namespace flux
