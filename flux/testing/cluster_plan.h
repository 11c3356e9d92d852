// ClusterPlan: everything that a seed decides before a simulated run begins: how large the cluster
// is, what the job is, how bad network, disk and machines are, until when.
// Plain values; the same seed gives the same plan.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "flux/base/executor.h"
#include "flux/base/random.h"
#include "flux/cluster/schedule.h"
#include "flux/testing/mem_files.h"
#include "flux/testing/sim_channel.h"
#include "flux/testing/sim_data.h"

namespace flux {

struct ClusterPlan {
  uint32_t servers = 1;
  uint32_t workers = 1;
  uint32_t replicas = 1;
  uint32_t shards = 2;  // sparse
  std::string mode = "async";
  Schedule schedule;
  std::vector<SimPass> passes;
  double checkpoint_every_s = 0;
  uint32_t checkpoint_keep = 2;
  bool deterministic = false;
  bool has_test = false;
  NetFaults net;
  DiskFaults disk;
  TimeNs faults_end = 0;  // then everything heals
  // Weights of what the nemesis does, and how long it rests between two deeds.
  TimeNs rest_max = 0;
  uint32_t kill_worker = 0, leave_worker = 0, pause_worker = 0, isolate_worker = 0;
  uint32_t kill_server = 0, kill_coordinator = 0, stop_job = 0, lie = 0;
  uint32_t pause_server = 0, isolate_server = 0, cut = 0, power_cut = 0;
  uint32_t drain = 0, add_server = 0, move = 0;
  uint32_t jump_clock = 0, drift_clock = 0;  // of any process
  bool rebalance = false;                    // shards move for the least difference of loads
  bool rumours = false;                      // workers say of live servers that they are dead
};

ClusterPlan draw_cluster_plan(Random* random);
std::string to_string(const ClusterPlan& plan);

}  // namespace flux
