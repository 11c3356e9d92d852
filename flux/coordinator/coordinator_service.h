// CoordinatorService: the verbs of a coordinator for whoever reaches it through a Channel.
//
// Decodes on the connection's thread, asks the JobPort and the ServerRegistry on the executor they
// live on (JobMaster), answers from there. It also watches connections: when the one that a worker
// or server was heard on last is gone and it is not heard on another within a short time, the
// callbacks say so, long before its lease runs out.
// Threads: handle() and closed() from any; ports and callbacks on the executor's thread. Ownership:
// executor and ports outlive the service; calls that are answered after its end are dropped.
// Failure: the caller gets a Status; nothing in a request breaks the process.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "flux/api/job_port.h"
#include "flux/api/server_admin.h"
#include "flux/base/executor.h"
#include "flux/base/status.h"
#include "flux/rpc/service.h"

namespace flux {

struct CoordinatorServiceOptions {
  TimeNs gone_after_ns = 100 * kMillisecond;  // time for a member to be heard on another connection
  std::function<void(const std::string& name, uint64_t boot)> on_worker_gone;
  std::function<void(const std::string& name, uint64_t boot)> on_server_gone;
  // Asked before every request, on the executor; not ok: the caller is told so and nothing is done.
  // A standby says kUnavailable, and the caller goes on to the next address. Empty: always ok.
  std::function<Status()> admit;
};

class CoordinatorService final : public Service {
 public:
  CoordinatorService(JobPort* job, ServerRegistry* registry, Executor* executor,
                     CoordinatorServiceOptions options = {});
  ~CoordinatorService() override;

  bool allows(PeerRole role, Verb verb) const override;
  void handle(RpcRequest request, Responder respond) override;
  void closed(uint64_t connection) override;

 private:
  class State;
  std::shared_ptr<State> state_;
};

}  // namespace flux
