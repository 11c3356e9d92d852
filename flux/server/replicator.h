// Replicator: the primary's side of replication: forwards, their answers, receipts.
//
// A forward goes out once it is complete, and again (with the epochs of that moment; 100 ms later
// if the follower does not answer; soon, then later and later, if it does not know the epoch yet or
// misses what comes before); shards whose follower is another one by now are left out, and receipts
// that waited for them are void. It has no thread: `executor` gives time and turns, ports answer on
// any thread. The book is the server; it is asked with a Forward's mutex held at most. Threads:
// any. Ownership: it is a part of the book, which is held by a weak pointer from whatever is under
// way. Bounded: bytes in flight (full() says so), else by the requests that are served.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "flux/api/replica_port.h"
#include "flux/base/executor.h"
#include "flux/base/object_pool.h"
#include "flux/server/forward.h"
#include "flux/server/receipts.h"

namespace flux {

// What a Replicator asks its server about shards.
class FollowerBook {
 public:
  virtual ~FollowerBook() = default;
  // Whether this link still follows the shard; its epoch if so.
  virtual bool is_live(ShardId shard, uint32_t link, ShardEpoch* epoch) = 0;
  // The follower has everything up to `op`. False: it is not the shard's backup (any more).
  virtual bool acknowledge(ShardId shard, uint32_t link, uint64_t op, TimeNs now) = 0;
  // The follower knows a later epoch: this primary belongs to the past.
  virtual void superseded(ShardId shard, uint32_t link, ShardEpoch later) = 0;
};

struct ReplicatorOptions {
  Executor* executor = nullptr;  // null: nothing is sent twice
  ReachReplica reach;            // empty: no follower can be reached
  uint64_t bytes_max = 256ULL << 20;
  TimeNs resend_ns = 100 * kMillisecond;
  TimeNs refused_ns = 2 * kMillisecond;  // doubles up to resend_ns
  TimeNs suspect_ns = 500 * kMillisecond;
  uint64_t seed = 0;
};

class Replicator {
 public:
  explicit Replicator(const ReplicatorOptions& options);
  ~Replicator();
  Replicator(const Replicator&) = delete;
  Replicator& operator=(const Replicator&) = delete;

  // Before anything else.
  void set_book(std::weak_ptr<FollowerBook> book) { book_ = std::move(book); }
  Receipts& receipts() { return receipts_; }
  // The number of this server, which forwards name; a coordinator that takes over may change it.
  ServerId self() const { return self_.load(std::memory_order_relaxed); }
  void set_self(ServerId self) { self_.store(self, std::memory_order_relaxed); }
  TimeNs now_ns() const { return options_.executor ? options_.executor->now_ns() : 0; }
  uint32_t new_link();
  // The same server at the same address is the same peer.
  PeerPtr peer(ServerId id, const std::string& address);

  // Sends what is in the outbox; `source` is the operation, for all of the shards in it. The
  // receipt is for everything that is not acknowledged by the time this returns; null: nothing.
  ReceiptPtr send(Outbox* outbox, const ReplicateRequest& source);
  // Receipts that wait for these links of these shards are void.
  struct Cut {
    PeerPtr peer;
    ShardId shard = 0;
    uint32_t link = 0;
  };
  void cut(const std::vector<Cut>& cuts);
  bool full() const { return bytes_.load(std::memory_order_relaxed) > options_.bytes_max; }
  uint64_t bytes_in_flight() const { return bytes_.load(std::memory_order_relaxed); }
  // Whether the last forward to this follower is not acknowledged.
  static bool is_open(const Follower& follower);
  // Backups whose oldest forward is not acknowledged for suspect_ns.
  std::vector<ServerId> suspects();
  // Servers that owe an answer for longer than this.
  std::vector<PeerPtr> silent_for(TimeNs time);
  // Forwards that are not acknowledged.
  size_t open() const;

 private:
  friend class Outbox;
  ForwardPtr begin(const PeerPtr& peer);
  // With the forward's mutex held by `lock`, which is released.
  void transmit(const ForwardPtr& forward, std::unique_lock<std::mutex> lock);
  void on_reply(const ForwardPtr& forward, const ReplicateReply& reply);
  void take_reply(FollowerBook* book, const ForwardPtr& forward, const ReplicateReply& reply);
  void resend(FollowerBook* book, const ForwardPtr& forward);
  void resend_later(const ForwardPtr& forward, bool failed);
  // With the peer's mutex held.
  void arm(const PeerPtr& peer, TimeNs delay_ns);
  void on_timer(FollowerBook* book, const PeerPtr& peer);
  void peer_answered(const PeerPtr& peer);
  // With the forward's mutex held: it is over.
  void finish(Forward* forward);
  std::vector<PeerPtr> all_peers() const;
  // Waits for forwards of others.
  void join(const ReceiptPtr& receipt, const Outbox& outbox);

  const ReplicatorOptions options_;
  std::weak_ptr<FollowerBook> book_;
  Receipts receipts_;
  ObjectPool<Forward> pool_;
  std::atomic<ServerId> self_{kNoServer};
  std::atomic<uint32_t> links_{0};
  std::atomic<uint64_t> bytes_{0};
  mutable std::mutex mutex_;
  std::vector<PeerPtr> peers_;  // guarded by mutex_; the latest of a server is the last one
};

}  // namespace flux
