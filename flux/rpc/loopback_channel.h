// LoopbackChannel: a Channel straight to a Service of the same process, for tests and simulations.
//
// The request is copied once into aligned memory (as a socket would), handled in a task of the
// executor, and answered in another, so nothing runs inside call(). Time-outs, cancel and roles are
// those of a real connection.
// Threads: the executor's; a Responder may be used elsewhere only if the executor takes post() from
// any thread. Ownership: executor and service outlive the channel; its end calls closed().
#pragma once

#include <memory>
#include <string>

#include "flux/base/executor.h"
#include "flux/rpc/channel.h"
#include "flux/rpc/service.h"

namespace flux {

struct LoopbackOptions {
  PeerRole role = PeerRole::kWorker;
  std::string name = "loopback";  // what peer() says at both ends
  uint64_t connection = 1;        // RpcRequest::connection of all its requests
};

class LoopbackChannel final : public Channel {
 public:
  LoopbackChannel(Executor& executor, Service& service, LoopbackOptions options = {});
  ~LoopbackChannel() override;
  uint64_t call(RpcCall call) override;
  void cancel(uint64_t id) override;
  std::string peer() const override;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace flux
