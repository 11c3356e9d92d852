// ServerService: the verbs of a server process for whoever reaches it through a Channel.
//
// Decodes, calls the job that the request names (server/job_namespace.h), encodes. A pull, push or
// forward is served from the received bytes where they lie; rows are written once, into the memory
// that is sent. Verbs that answer when something is replicated (confirm, open_pass, close_below,
// mark, marked) answer later from another thread. Slow verbs run on threads apart, one for each
// kind (open and load and totals, save, copy, install), so that they hold up neither connections
// nor each other. A coordinator repeats what was not answered in time: a repeated slow request
// joins the one under way (the latest gets the answer), and a save that was done before is answered
// from memory, so that a request that was delayed in the network can never write into a committed
// checkpoint or open a closed job. Threads: handle() from any; answers come from the caller's, a
// slow thread or one that brought another request. Ownership: `jobs` outlives the service, the
// service outlives its connections. Failure: the caller gets a Status; kStale: no job of that
// incarnation, an older term. Nothing in a request breaks the process.
#pragma once

#include <functional>
#include <memory>

#include "flux/api/model_shape.h"
#include "flux/rpc/service.h"
#include "flux/server/job_namespace.h"

namespace flux {

struct ServerServiceOptions {
  // Runs a task later, one at a time, in order; false: too many wait. Empty: threads of its own.
  std::function<bool(std::function<void()>)> slow;
  // Where pulls, pushes and confirms go instead of straight to the job that they name; for a
  // simulator that watches them. Outlives the service.
  ServerPort* data = nullptr;
};

class ServerService final : public Service {
 public:
  explicit ServerService(ServerJobs* jobs, ServerServiceOptions options = {});
  ~ServerService() override;

  bool allows(PeerRole role, Verb verb) const override;
  void handle(RpcRequest request, Responder respond) override;

  // After the last request: slow work under way is finished, what waits is dropped. The destructor
  // does it too.
  void stop();
  // Jobs are opened only for this boot (ServerJoin); 0, as at first: for any. Before it listens.
  void set_boot(uint64_t boot);
  // This server is no member any more: every job is closed and forgotten, as if it began anew.
  void forget_all();
  // The shape of an open job, for whoever forwards its operations; null: no such job.
  std::shared_ptr<const ModelShape> shape_of(uint64_t incarnation) const;

 private:
  class State;
  std::shared_ptr<State> state_;
};

}  // namespace flux
