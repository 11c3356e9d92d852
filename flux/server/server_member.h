// ServerMember: keeps a server process a member of its job: joins, reports, joins again.
//
// Reports go out at the pace that the coordinator asks for. After anything that leaves a doubt
// (no answer, a connection that broke, "not known here") it joins again under the same boot, which
// is the same member to a coordinator that knows it and an adopted one to a coordinator that was
// started anew. "Stale" means that it was taken for dead: it forgets everything and joins as
// another server, under a new boot. It ends when the coordinator says that it may go ("cancelled",
// the job is over, says the same to one that asks again), or has been silent for `silence_ns`.
// Threads: those of the executor, one. Ownership: registry and executor outlive it; destroyed, it
// calls nobody. Failure: by the hook `end`, once.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "flux/api/server_admin.h"
#include "flux/base/executor.h"
#include "flux/base/status.h"

namespace flux {

struct ServerMemberOptions {
  ServerJoin join;                       // boot: the first one
  std::string coordinator;               // for messages
  TimeNs first_answer_ns = 8 * kSecond;  // without any answer after the start
  TimeNs silence_ns = 60 * kSecond;      // without any answer later
  TimeNs pause_ns = 50 * kMillisecond;   // before it asks again
  TimeNs work_every_ns = kSecond;        // between two reports that say what was asked of shards
};

struct ServerMemberHooks {
  std::function<uint64_t()> new_boot;
  std::function<std::vector<ServerId>()> suspects, silent;  // for the next report
  std::function<uint64_t()> rss_bytes, differed;
  std::function<std::vector<ShardWork>()> work = {};  // of shards here; may be empty
  std::function<void()> heard;                        // the coordinator has answered
  std::function<void(ServerId)> joined;  // may be called again, with the same id or another
  std::function<void()> forget;          // no member any more: nothing here counts
  std::function<void(Status)> end;       // ok: the server may go
};

class ServerMember {
 public:
  ServerMember(ServerRegistry* registry, Executor* executor, ServerMemberOptions options,
               ServerMemberHooks hooks);
  ~ServerMember();
  void start();
  // The connection broke: whoever answers next may be another one.
  void broken();

 private:
  class State;
  std::shared_ptr<State> state_;
};

}  // namespace flux
