// RemoteRegistry: the ServerRegistry of a server over a Channel to its coordinator. Calls are asked
// again until they are answered or their deadline is over; (name, boot) makes a repeated join the
// same one. Threads, ownership, destruction, failure: as RetryCaller.
#pragma once

#include "flux/api/server_admin.h"
#include "flux/client/retry_caller.h"

namespace flux {

class RemoteRegistry final : public ServerRegistry {
 public:
  RemoteRegistry(Channel* channel, Executor* executor, uint64_t seed, RetryOptions options = {})
      : options_(options), caller_(channel, executor, seed) {}

  void join(ServerJoin request, std::function<void(Result<ServerJoinReply>)> done) override;
  void report(ServerReport report, std::function<void(Result<bool>)> done) override;

 private:
  RetryOptions options_;
  RetryCaller caller_;
};

}  // namespace flux
