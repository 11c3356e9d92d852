// Embedded: all roles of a job in this process: graph, server and coordinator, new or restored.
//
// The training code does not know that it runs embedded: it talks through the same ports and the
// same state machines as it would over a network. Shared by run, eval, predict and inspect.
// Failure: kInvalid lists what differs when a checkpoint belongs to another model; kCorrupt names
// the bad file. Nothing ever starts fresh by itself while a checkpoint exists.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "flux/base/status.h"
#include "flux/checkpoint/manifest.h"
#include "flux/checkpoint/store.h"
#include "flux/coordinator/coordinator.h"
#include "flux/job/job.h"
#include "flux/nn/net.h"
#include "flux/server/server.h"

namespace flux {

struct Embedded {
  Job job;
  std::shared_ptr<const Graph> graph;
  Precision precision = Precision::kFp32;
  uint32_t threads = 1;
  uint64_t incarnation = 0;
  ShardEpoch epoch;
  std::string checkpoint_folder;
  std::map<std::string, std::string> model;  // as Manifest::model
  std::unique_ptr<Server> server;
  std::unique_ptr<Coordinator> coordinator;
  std::optional<Manifest> restored;  // what was found, if anything
  double restore_s = 0;

  CheckpointStore store() const { return CheckpointStore(checkpoint_folder); }
  uint64_t rows() const { return server->totals().rows; }
};

// Checks the job against this machine and builds it; restores the newest checkpoint if there is
// one, as `mode` says.
enum class LoadMode : uint8_t {
  kIfThere,    // start fresh if there is none
  kMustExist,  // kInvalid with advice if there is none
  kIgnore,     // start fresh
};
Result<std::unique_ptr<Embedded>> open_embedded(const Job& job, LoadMode mode);

}  // namespace flux
