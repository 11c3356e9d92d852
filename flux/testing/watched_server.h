// WatchedServer and BuggyServer: what the cluster simulator puts between a server's service and its
// jobs. The first checks every answer against the shard's own state at that moment; the second
// plants bugs (cluster_bug.h) beneath it. Both are ServerPorts; neither changes what it passes on
// unless a bug is planted. Not thread-safe: one world is one thread.
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
#include "flux/rpc/service.h"
#include "flux/server/server.h"
#include "flux/testing/cluster_bug.h"
#include "flux/testing/replica_audit.h"
#include "flux/testing/sim_node.h"

namespace flux {

// What the audit remembers of a run, over all servers and lives.
struct ClusterFacts {
  std::function<void(const std::string&)> fail;
  bool stale = false;  // the message in hand belongs to a former life, and a planted bug hid that
  ReplicaAudit replicas;
  std::set<std::tuple<uint64_t, uint64_t, BlockId>> voided;        // incarnation, round, block
  std::map<uint64_t, std::string> terms;                           // who acts under which
  std::set<uint64_t> lives;                                        // incarnations of the job
  std::set<BatchId> decided;                                       // to be skipped, ever logged
  uint64_t pushes = 0, duplicates = 0, partials = 0, refused = 0;  // answers seen
  uint64_t poisoned = 0;                                           // workers that a record killed
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

  ServerPort* inner_;
  FindServer find_;
  ClusterFacts* facts_;
  std::map<std::pair<uint64_t, uint64_t>, Receipt> receipts_;  // by incarnation and receipt
};

class BuggyServer final : public ServerPort {
 public:
  BuggyServer(ServerPort* inner, ClusterBug bug, SimNode* node, FindServer find,
              const ClusterFacts* facts)
      : inner_(inner), bug_(bug), node_(node), find_(std::move(find)), facts_(facts) {}
  void pull(const PullRequest& request, std::function<void(const PullReply&)> done) override;
  void push(const PushRequest& request, std::function<void(const PushReply&)> done) override;
  void confirm(uint64_t incarnation, uint64_t receipt, std::function<void(Status)> done) override;

 private:
  using PushDone = std::function<void(const PushReply&)>;
  void push_later(const PushRequest& request, const PushDone& done);
  void push_fenceless(const PushRequest& request, const PushDone& done);
  void push_without_empty(const PushRequest& request, const PushDone& done);
  void push_duplicates(const PushRequest& request, const PushDone& done);
  void push_alone(const PushRequest& request, const PushDone& done);
  void push_fenced(const PushRequest& request, const PushDone& done);

  ServerPort* inner_;
  ClusterBug bug_;
  SimNode* node_;
  FindServer find_;
  const ClusterFacts* facts_;
};

// The bug that has to sit before the service, which looks up a job by the incarnation in a message.
class FencelessService final : public Service {
 public:
  FencelessService(Service* inner, ClusterFacts* facts, std::function<uint64_t()> current)
      : inner_(inner), facts_(facts), current_(std::move(current)) {}
  bool allows(PeerRole role, Verb verb) const override { return inner_->allows(role, verb); }
  void handle(RpcRequest request, Responder respond) override;
  void closed(uint64_t connection) override { inner_->closed(connection); }

 private:
  Service* inner_;
  ClusterFacts* facts_;
  std::function<uint64_t()> current_;
};

}  // namespace flux
