// Forward: one operation on its way to one follower server; Peer: that server, as a primary sees
// it; Outbox: the forwards of one request while it goes through the shards.
//
// A Forward's mutex is held by its maker from its birth until it is sent, so who looks at a forward
// sees all of it. Order of locks: Forward, then shard, then Peer, then receipts; nobody takes a
// Forward's mutex with a shard's lock held. While a message is under way its request is not
// touched.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "flux/api/replica_port.h"
#include "flux/base/executor.h"
#include "flux/protocol/shard_replica.h"
#include "flux/server/receipts.h"

namespace flux {

struct Forward;

struct Peer {
  ServerId id = kNoServer;
  std::string address;
  std::shared_ptr<ReplicaPort> port;  // null: there is no way to it
  std::mutex mutex;
  uint64_t last = 0;                                  // number given out; guarded, as is the rest
  std::map<uint64_t, std::shared_ptr<Forward>> open;  // not acknowledged, by number
  std::set<uint64_t> waiting;                         // of those: to be sent again
  bool failing = false;                               // the last message was not answered
  TimeNs timer_ns = 0;  // when somebody will look at `waiting`; 0: nobody
  TimeNs pause_ns = 0;  // before the next look; grows with refusals
};
using PeerPtr = std::shared_ptr<Peer>;

// A server that follows a shard. `link` is new whenever another server, or the same one anew,
// begins to follow: what was earned from one link says nothing about another.
struct Follower {
  PeerPtr peer;
  uint32_t link = 0;
  uint64_t last = 0;  // number of the last forward to it; 0: none
};

struct Forward {
  std::mutex mutex;
  PeerPtr peer;
  uint64_t number = 0;
  TimeNs begun_ns = 0;
  std::atomic<bool> to_backup{false};  // else to learners, whose word does not count
  bool finished = false;
  bool under_way = false;
  bool again = false;  // it was sent more than once
  uint64_t bytes = 0;
  std::vector<ReceiptPtr> receipts;

  // Of each shard that has not acknowledged yet.
  std::vector<ShardId> shards;
  std::vector<ShardEpoch> epochs;
  std::vector<uint64_t> ops, hashes;
  std::vector<uint32_t> links;
  std::vector<uint8_t> as_backup;  // not a learner, when it was sent

  ReplicateRequest request;  // lists point at the ones above
  std::vector<const float*> tables, dense_parts;

  // Lets go of everything but its name.
  void release();
  // Points the request at the lists.
  void bind();
  // Keeps only the shards for which keep(i) says so.
  template <typename Keep>
  void filter(const Keep& keep) {
    size_t n = 0;
    for (size_t i = 0; i < shards.size(); ++i) {
      if (!keep(i)) continue;
      shards[n] = shards[i];
      epochs[n] = epochs[i];
      ops[n] = ops[i];
      hashes[n] = hashes[i];
      links[n] = links[i];
      as_backup[n] = as_backup[i];
      ++n;
    }
    shards.resize(n);
    epochs.resize(n);
    ops.resize(n);
    hashes.resize(n);
    links.resize(n);
    as_backup.resize(n);
  }
};
using ForwardPtr = std::shared_ptr<Forward>;

class Replicator;

class Outbox {
 public:
  explicit Outbox(Replicator* replicator) : replicator_(replicator) {}
  Outbox(const Outbox&) = delete;
  Outbox& operator=(const Outbox&) = delete;

  // With the shard's lock held: the shard's operation goes to this follower. Shards rise.
  void add(Follower* to, bool is_backup, ShardId shard, ShardEpoch epoch, uint64_t op,
           uint64_t hash, uint64_t bytes);
  // With the shard's lock held: the answer is about the head of its log as it is now.
  void wait_for_head(const Follower& backup, ShardId shard);
  bool has_forwards() const { return !items_.empty(); }

 private:
  friend class Replicator;
  struct Item {
    ForwardPtr forward;
    std::unique_lock<std::mutex> lock;
  };
  Replicator* replicator_;
  std::vector<Item> items_;
  std::vector<std::pair<PeerPtr, uint64_t>> waits_;  // forwards of others, by number
  std::vector<std::pair<ShardId, uint32_t>> heads_;  // shards and links that those are about
};

}  // namespace flux
