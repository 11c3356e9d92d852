// WatchedServer: what the cluster simulator puts between a server's service and its jobs. It checks
// every answer against the shard's own state at that moment, and changes nothing.
// Not thread-safe: one world is one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "flux/api/server.h"
#include "flux/server/server.h"
#include "flux/testing/cluster_bug.h"
#include "flux/testing/replica_audit.h"

namespace flux {

// What planted bugs remember of a run, over all servers and lives.
struct PlantedFacts {
  using ShardOfLife = std::pair<uint64_t, ShardId>;           // by incarnation
  std::map<ShardOfLife, Ledger> former;                       // marks that a former life has made
  std::set<std::pair<ShardOfLife, BatchId>> redone;           // of those: made again
  std::map<std::pair<ShardId, uint64_t>, std::string> by_op;  // the first file of an operation
};

// What the audit remembers of a run, over all servers and lives.
struct ClusterFacts {
  std::function<void(const std::string&)> fail;
  bool stale = false;  // the message in hand belongs to a former life, and a planted bug hid that
  ReplicaAudit replicas;
  std::set<std::tuple<uint64_t, uint64_t, BlockId>> voided;  // incarnation, round, block
  std::map<uint64_t, std::string> terms;                     // who acts under which
  std::set<uint64_t> lives;                                  // incarnations of the job
  // Incarnation, shard, epoch: the operation at which it was sealed; no later one is of that epoch.
  std::map<std::tuple<uint64_t, ShardId, ShardEpoch>, uint64_t> sealed;
  std::set<BatchId> decided;                         // to be skipped, ever logged
  uint64_t pushes = 0, duplicates = 0, refused = 0;  // answers seen
  uint64_t rebalanced = 0;                           // shards moved for their load
  uint64_t poisoned = 0;                             // workers that a record killed
  PlantedFacts planted;
  uint64_t rumours = 0, condemned = 0;  // of servers; taken for dead by the word of others
};

// The server of an incarnation in this process, or null.
using FindServer = std::function<const Server*(uint64_t incarnation)>;

class WatchedServer final : public ServerPort {
 public:
  WatchedServer(ServerPort* inner, FindServer find, ClusterFacts* facts)
      : inner_(inner), find_(std::move(find)), facts_(facts) {}
  void pull(const PullRequest& request, std::function<void(const PullReply&)> done) override;
  void push(const PushRequest& request, std::function<void(const PushReply&)> done) override;
  void confirm(uint64_t incarnation, uint64_t receipt, std::function<void(Status)> done) override;
  // Now and then: "" unless a push of a sync step waits though nothing of the step is missing.
  std::string look();

 private:
  struct Seen;
  // What a receipt stands for.
  struct Receipt {
    struct Part {
      ShardId shard = 0;
      ShardEpoch epoch;
      uint64_t op = 0;
      bool followed = false;  // had a backup when it answered: only then two servers must have it
    };
    std::vector<Part> shards;
    std::vector<BatchId> ids;
  };
  void check(const Seen& seen, const PushReply& reply);
  // A worker is told that these are replicated.
  void told(uint64_t incarnation, const Receipt::Part& part, std::span<const BatchId> ids);
  void check_applied(const Seen& seen, const ShardAnswer& answer, const ShardReplica& replica);
  void check_step(const Seen& seen, const ShardReplica& replica);
  void check_sealed(uint64_t incarnation, const ShardAnswer& answer, ShardEpoch epoch);

  ServerPort* inner_;
  FindServer find_;
  ClusterFacts* facts_;
  // Whether each shard asked has, or has been sent, every batch of the push's step.
  bool is_whole(const Seen& push, const Server& server) const;
  bool waits(const Seen& push, ShardId shard, const BatchId& id) const;

  std::map<std::pair<uint64_t, uint64_t>, Receipt> receipts_;  // by incarnation and receipt
  std::map<uint64_t, std::shared_ptr<Seen>> waiting_;          // pushes of sync steps, by number
  uint64_t last_ = 0;
};

}  // namespace flux
