// FaultChannel: a Channel over a network that somebody can cut while it is in use (FaultFile).
//
// While messages from here to the peer are held or dropped, a request is not sent; while those from
// the peer to here are, its answer (a broken connection too) is not heard. The caller sees what a
// cut cable shows: the connection stays open, nothing comes, and the call ends with kUnavailable
// when its time is over. What was held goes on its way soon after the cut is healed, as TCP would
// send it again; what was dropped stays lost. Threads and ownership: those of the inner channel,
// which it owns; the executor outlives it.
#pragma once

#include <memory>
#include <string>

#include "flux/base/executor.h"
#include "flux/rpc/channel.h"

namespace flux {

class FaultChannel final : public Channel {
 public:
  // `self` and `peer`: role names or addresses; `file`: see FaultFile.
  FaultChannel(Executor& executor, std::unique_ptr<Channel> inner, const std::string& file,
               const std::string& self, const std::string& peer);
  ~FaultChannel() override;
  uint64_t call(RpcCall call) override;
  void cancel(uint64_t id) override;
  std::string peer() const override;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace flux
