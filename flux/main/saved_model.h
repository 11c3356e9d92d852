// SavedModel: a checkpoint of a job in memory, for eval, predict and vectors.
//
// A server with every shard, and what is needed to run the network on it; nothing trains and
// nothing is written. A run in progress may replace a checkpoint while it is read: then its
// successor is taken.
// The job may name another data.format than the one that the model was trained from.
// Failure: kInvalid if there is none (with advice) or it belongs to another model (with the
// differences); kCorrupt names the bad file.
#pragma once

#include <memory>
#include <string>

#include "flux/base/status.h"
#include "flux/checkpoint/manifest.h"
#include "flux/job/job.h"
#include "flux/main/job_roles.h"
#include "flux/nn/net.h"
#include "flux/server/server.h"

namespace flux {

struct SavedModel {
  RoleJob role;
  Precision precision = Precision::kFp32;
  uint32_t threads = 1;
  uint64_t incarnation = 0;
  std::shared_ptr<Server> server;
  Manifest manifest;
  std::string path;  // of the checkpoint
};

// `which`: newest, best, a number or a folder (chosen_checkpoint.h); "": the newest.
Result<std::unique_ptr<SavedModel>> open_saved_model(const Job& job, const std::string& which = "");

// Whether a run would take up the newest checkpoint of the output folder; kOk if there is none.
Status check_goes_on(const RoleJob& role);

}  // namespace flux
