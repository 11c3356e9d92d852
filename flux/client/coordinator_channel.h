// CoordinatorChannel: one Channel over several, of which one reaches the coordinator that acts.
//
// Calls go over the channel that answered last. A call that ends with kUnavailable (it does not
// answer, or says that it stands by) ends so for its caller too; after two in a row the next call
// goes over the next channel, in turn: whoever repeats calls (client/retry_caller.h) finds the one
// that acts. Two, because one that acts says kUnavailable too, of a lease that was asked for again.
// With one channel it does nothing. Threads: as Channel. Ownership: it owns the channels. Failure:
// that of the channel used.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "flux/base/status.h"
#include "flux/rpc/channel.h"

namespace flux {

class CoordinatorChannel final : public Channel {
 public:
  // At least one.
  explicit CoordinatorChannel(std::vector<std::unique_ptr<Channel>> channels);
  ~CoordinatorChannel() override;
  uint64_t call(RpcCall call) override;
  void cancel(uint64_t id) override;
  std::string peer() const override;  // the one in use

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// "a,b,c": the addresses of a coordinator and its standbys. kInvalid: none, or one twice.
Result<std::vector<std::string>> split_addresses(std::string_view list);

}  // namespace flux
