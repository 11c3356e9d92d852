// RemoteReplica: the ReplicaPort of a server over a Channel to another server. One try per call.
//
// Any thread may call: it encodes there, and the loop that owns the channel sends, in the order of
// the calls. Rows are gathered from where the request points at when they are sent; nothing is
// copied, but gradients that came as 16 bits are packed again. `done` runs on that loop's thread
// (or inside the call, if the request cannot be sent at all), so it must be quick.
// Ownership: shared; the executor outlives it. Its last owner may let go on any thread; calls under
// way end with kUnavailable then, on the executor.
// Failure: kUnavailable for every break of the connection, at once, and for time; kStale if
// `shape_of` does not know the job; else what the other server says.
#pragma once

#include <functional>
#include <memory>

#include "flux/api/model_shape.h"
#include "flux/api/replica_port.h"
#include "flux/base/executor.h"
#include "flux/rpc/channel.h"

namespace flux {

struct RemoteReplicaOptions {
  TimeNs replicate_timeout_ns = 2 * kSecond;
  TimeNs install_timeout_ns = 10 * kSecond;
};

class RemoteReplica final : public ReplicaPort {
 public:
  // Opens the channel; called once, on the executor, before the first call goes out.
  using Open = std::function<std::unique_ptr<Channel>()>;
  // The shape of a job here; null: no such job. Any thread.
  using FindShape = std::function<std::shared_ptr<const ModelShape>(uint64_t incarnation)>;

  RemoteReplica(Executor* executor, Open open, FindShape shape_of,
                RemoteReplicaOptions options = {});
  ~RemoteReplica() override;

  void replicate(const ReplicateRequest& request,
                 std::function<void(const ReplicateReply&)> done) override;
  void install(const InstallRequest& request, std::function<void(Status)> done) override;

 private:
  class State;
  std::shared_ptr<State> state_;
  const FindShape shape_of_;
  const RemoteReplicaOptions options_;
};

}  // namespace flux
