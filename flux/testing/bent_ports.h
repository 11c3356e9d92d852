// BentPort and BentReplica: what the cluster simulator puts around a worker's port to a server and
// a server's port to another one, to plant bugs (cluster_bug.h) there.
//
// Both pass everything on unchanged when nothing is planted. Not thread-safe: one world is one
// thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "flux/api/replica_port.h"
#include "flux/api/server.h"
#include "flux/testing/cluster_bug.h"
#include "flux/testing/sim_node.h"

namespace flux {

// What the ports of one worker share: the epoch under which a shard said that it has a batch.
struct BentAnswers {
  std::map<std::pair<ShardId, BatchId>, ShardEpoch> earned;
};

class BentPort final : public ServerPort {
 public:
  BentPort(std::shared_ptr<ServerPort> inner, ClusterBug bug, SimNode* node,
           std::shared_ptr<BentAnswers> answers)
      : inner_(std::move(inner)), bug_(bug), node_(node), answers_(std::move(answers)) {}
  void pull(const PullRequest& request, std::function<void(const PullReply&)> done) override {
    inner_->pull(request, std::move(done));
  }
  void push(const PushRequest& request, std::function<void(const PushReply&)> done) override;
  void confirm(uint64_t incarnation, uint64_t receipt, std::function<void(Status)> done) override {
    inner_->confirm(incarnation, receipt, std::move(done));
  }

 private:
  void push_remembering(const PushRequest& request,
                        const std::function<void(const PushReply&)>& done);

  std::shared_ptr<ServerPort> inner_;
  ClusterBug bug_;
  SimNode* node_;
  std::shared_ptr<BentAnswers> answers_;
};

class BentReplica final : public ReplicaPort {
 public:
  BentReplica(std::shared_ptr<ReplicaPort> inner, ClusterBug bug, uint32_t passes)
      : inner_(std::move(inner)), bug_(bug), passes_(passes) {}
  void replicate(const ReplicateRequest& request,
                 std::function<void(const ReplicateReply&)> done) override {
    inner_->replicate(request, std::move(done));
  }
  void install(const InstallRequest& request, std::function<void(Status)> done) override;

 private:
  std::shared_ptr<ReplicaPort> inner_;
  ClusterBug bug_;
  uint32_t passes_;  // of the job
};

}  // namespace flux
