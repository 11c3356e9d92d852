// ServerService: the verbs of a server process for whoever reaches it through a Channel.
//
// Decodes, calls the job that the request names (server/job_namespace.h), encodes. A pull or push
// is served from the received bytes where they lie; rows are written once, into the memory that is
// sent. Slow verbs (open_job, load, save, totals) run on one thread apart. A coordinator repeats
// what was not answered in time: a repeated slow request joins the one under way (the latest gets
// the answer), and a save that was done before is answered from memory, so that a request that was
// delayed in the network can never write into a committed checkpoint or open a closed job. Threads:
// handle() from any; answers come from the caller's, the slow or, in sync mode, another worker's
// thread. Ownership: `jobs` outlives the service, the service outlives its connections. Failure:
// the caller gets a Status; kStale: no job of that incarnation. Nothing in a request breaks the
// process.
#pragma once

#include <functional>
#include <memory>

#include "flux/rpc/service.h"
#include "flux/server/job_namespace.h"

namespace flux {

struct ServerServiceOptions {
  // Runs a task later, one at a time, in order; false: too many wait. Empty: a thread of its own.
  std::function<bool(std::function<void()>)> slow;
  // Where pulls and pushes go instead of straight to the job that they name; for a simulator that
  // watches them. Outlives the service.
  ServerPort* data = nullptr;
};

class ServerService final : public Service {
 public:
  explicit ServerService(ServerJobs* jobs, ServerServiceOptions options = {});
  ~ServerService() override;

  bool allows(PeerRole role, Verb verb) const override;
  void handle(RpcRequest request, Responder respond) override;

 private:
  class State;
  std::shared_ptr<State> state_;
};

}  // namespace flux
