// JobPlan: everything about a job that its coordinator has to know, made from the job file in main.
// Plain values, and functions for the slow work that needs data (called through an Offload, never
// on the coordinator's own thread).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "flux/api/job_port.h"
#include "flux/base/status.h"
#include "flux/checkpoint/manifest.h"
#include "flux/cluster/lr_policy.h"
#include "flux/cluster/schedule.h"
#include "flux/cluster/stop_rule.h"
#include "flux/data/geometry.h"

namespace flux {

struct JobPlan {
  JobSpec spec;
  std::string name;
  std::string output;                        // folder
  std::map<std::string, std::string> model;  // as Manifest::model
  uint32_t sparse_shards = 0;
  uint32_t all_shards = 0;          // dense ones included
  uint32_t replicas = 1;            // of each shard, 1 or 2
  bool rebalance = true;            // shards move away from hot servers by themselves
  std::vector<std::string> passes;  // names
  Schedule schedule;
  std::vector<std::string> phases;  // names of the schedule's; may be empty
  std::string mode = "async";       // async | half_async | sync
  bool deterministic = false;       // checkpoints only between blocks
  double checkpoint_every_s = 60;   // 0: only at the end of a pass
  uint32_t checkpoint_keep = 2;
  bool key_per_example = false;
  double skip_limit = 0.001;  // share of a pass's batches that may be skipped
  LrPolicyOptions lr;         // what a change of the number of workers does
  StopOptions stop;           // when it ends before its data does
  uint32_t slots = 0;
  uint32_t counted_phases = 1;  // that the rows of the first table count
  uint32_t slice_values = 16;   // metrics/slices.h
  bool has_test = false;

  // Whether the passes that a checkpoint has closed are still those of the job, and the data of the
  // others and of the test is there; may be empty.
  std::function<Status(const std::vector<ClosedPass>& closed)> check_inputs;
  // What to say before a scan ("pass a: reading 3 files"); may be empty.
  std::function<std::string(uint32_t pass)> reading;
  // Cuts the data of a pass anew; kCancelled soon after *stop turns true.
  std::function<Result<Geometry>(uint32_t pass, const std::atomic<bool>* stop)> scan;
  // A pass that a checkpoint has open: is its cut still what the job file says and the disk has?
  // Returns notes for people ("2 new files match, ...").
  std::function<Result<std::string>(uint32_t pass, const Geometry& frozen)> check_frozen;
  std::function<Result<Geometry>(const std::atomic<bool>* stop)> scan_test;
};

}  // namespace flux
