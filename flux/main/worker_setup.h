// What a worker builds from the job that its coordinator sent, wherever its servers are.
//
// The caller adds the ports to the servers; in one process and over a network everything else is
// the same. Starts the threads of the team; pure else, but for the CPU's features. Failure:
// kInvalid.
#pragma once

#include <cstdint>
#include <string>

#include "flux/api/job_port.h"
#include "flux/api/model_shape.h"
#include "flux/api/wire_data.h"
#include "flux/base/status.h"
#include "flux/main/job_roles.h"
#include "flux/worker/agent.h"

namespace flux {

// "fp32", "fp16" or "bf16" of a job file.
Result<WireValue> wire_value(const std::string& name);
// All but the executor, the ways to servers, and the cost.
Result<WorkerSetup> make_worker_setup(const RoleJob& role, const JoinReply& reply,
                                      uint32_t threads);

}  // namespace flux
