// BuggyServer and FencelessService: bugs (cluster_bug.h) that the cluster simulator plants beneath
// the watch of a server (watched_server.h), and before its service.
//
// Both pass everything on unchanged when nothing is planted. Not thread-safe: one world is one
// thread.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "flux/api/server.h"
#include "flux/rpc/service.h"
#include "flux/testing/cluster_bug.h"
#include "flux/testing/sim_node.h"
#include "flux/testing/watched_server.h"

namespace flux {

class BuggyServer final : public ServerPort {
 public:
  BuggyServer(ServerPort* inner, ClusterBug bug, SimNode* node, FindServer find,
              ClusterFacts* facts)
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
  void push_again(const PushRequest& request, const std::function<bool(size_t)>& keep,
                  const PushReply& reply, const PushDone& done);
  void push_unkeyed(const PushRequest& request, const PushDone& done);
  void push_former(const PushRequest& request, const PushDone& done);
  // Whether a shard has other batches of the step already.
  bool has_others(const PushRequest& request) const;

  ServerPort* inner_;
  ClusterBug bug_;
  SimNode* node_;
  FindServer find_;
  ClusterFacts* facts_;
  // Pushes of sync steps that are not answered yet: incarnation, round, batch.
  std::multiset<std::tuple<uint64_t, uint64_t, BatchId>> waiting_;
  std::vector<PushDone> held_;  // pushes that wait for something that never comes
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
