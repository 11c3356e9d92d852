// PeerServers: how a server process reaches the others: one thread with one loop, a channel to each
// server that something is forwarded to, opened on first use and closed when nobody needs it.
//
// All forwards leave from this thread, in the order of the calls, so that a push costs one hop; the
// loop also gives the process's servers their time and turns.
// Threads: any. Ownership: outlives the ports and everything that they were given; `shape_of` may
// be called until then. Failure: reach() is null for an address that is none.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "flux/client/remote_replica.h"
#include "flux/main/role_process.h"
#include "flux/rpc/io_loop.h"

namespace flux {

class PeerServers {
 public:
  PeerServers(Caller caller, RemoteReplica::FindShape shape_of);
  ~PeerServers();  // what is posted and has not run is dropped

  Executor* executor() { return &loop_; }
  // Whoever asks for the same address while another one uses it gets the same port.
  std::shared_ptr<ReplicaPort> reach(const std::string& address);

 private:
  const Caller caller_;
  const RemoteReplica::FindShape shape_of_;
  IoLoop loop_;
  std::mutex mutex_;
  std::map<std::string, std::weak_ptr<ReplicaPort>> ports_;  // guarded by mutex_, as is opened_
  uint64_t opened_ = 0;
  std::thread thread_;
};

}  // namespace flux
