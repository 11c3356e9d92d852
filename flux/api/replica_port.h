// ReplicaPort: what a server does for another one that is the primary of a shard it follows.
//
// replicate() carries one operation for several shards, install() a copy of one shard in parts.
// Memory as in api/server.h: what a request points at stays untouched until `done`; lists only
// until the method returns. Threads: any; `done` is called once, perhaps inside the call, perhaps
// on another thread. Failure: kUnavailable (not known whether it arrived: send it again, everything
// here may come twice), kStale (another incarnation, no such job), else refused for good.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "flux/api/server.h"
#include "flux/base/status.h"
#include "flux/protocol/shard_replica.h"

namespace flux {

// One operation of a primary's log, for each of `push.shards`.
struct ReplicateRequest {
  OpKind kind = OpKind::kPush;
  // kPush: all of it (a verdict other than applied has no rows). Else claim.incarnation, shards and
  // epochs only. Epochs are those of the primary when the message is sent.
  PushRequest push;
  std::span<const uint64_t> ops;     // of each shard: the number of this operation there
  std::span<const uint64_t> hashes;  // of each shard: its stream hash after it
  uint32_t pass = 0;                 // kOpenPass, kClosePass (passes below it are closed)
  uint64_t geometry = 0;             // kOpenPass
  ServerId from = kNoServer;         // whose shards they are
  uint64_t content = 0;              // kCompare, of one shard: hash of its rows after `ops`
};

// A shard that did not take its part.
struct FollowRefusal {
  ShardId shard = 0;
  FollowAnswer why = FollowAnswer::kNotFollower;
  ShardEpoch epoch;  // of the replica there
};

// Answered when every shard has applied its part (or had it before) or has refused it.
struct ReplicateReply {
  Status status;  // not ok: nothing is known about any shard
  std::vector<FollowRefusal> refused;
};

// A part of an encoded ShardImage (checkpoint/shard_file.h), taken by the primary at op `op`.
struct InstallRequest {
  uint64_t incarnation = 0;
  ShardId shard = 0;
  ShardEpoch epoch;   // of the primary
  uint64_t copy = 0;  // number of this copy, random: parts of two copies are never mixed
  uint64_t op = 0;
  uint32_t part = 0, parts = 1;
  std::span<const std::byte> bytes;
};

class ReplicaPort {
 public:
  virtual ~ReplicaPort() = default;
  virtual void replicate(const ReplicateRequest& request,
                         std::function<void(const ReplicateReply&)> done) = 0;
  // The last part makes the replica a complete learner under that epoch.
  virtual void install(const InstallRequest& request, std::function<void(Status)> done) = 0;
};

// How a server reaches another one; null if the address is no good. Called on any thread; the port
// may be used from any thread.
using ReachReplica = std::function<std::shared_ptr<ReplicaPort>(const std::string& address)>;

}  // namespace flux
