// The processes of a simulated cluster: production roles on a SimNode each, over the simulated
// network and disk. CoordinatorProcess holds a JobMaster, ServerProcess a server with its jobs,
// WorkerProcess a WorkerAgent with its trainer; stubs and services between them are those of a real
// cluster.
//
// A process is killed by kill(): nothing of it runs any more, and it may be destroyed at once, but
// not from inside its own callbacks. over() says that it ended by itself. Not thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "flux/client/remote_job.h"
#include "flux/client/remote_registry.h"
#include "flux/coordinator/coordinator_service.h"
#include "flux/coordinator/job_master.h"
#include "flux/nn/net.h"
#include "flux/server/job_namespace.h"
#include "flux/server/server_member.h"
#include "flux/server/server_service.h"
#include "flux/testing/bent_coordinator.h"
#include "flux/testing/buggy_server.h"
#include "flux/testing/cluster_plan.h"
#include "flux/testing/mem_files.h"
#include "flux/testing/shard_audit.h"
#include "flux/testing/sim_channel.h"
#include "flux/testing/sim_node.h"
#include "flux/testing/sim_offload.h"
#include "flux/testing/watched_server.h"
#include "flux/worker/agent.h"

namespace flux {

// What all processes of a run share.
struct ClusterContext {
  ClusterContext(uint64_t seed, ClusterBug planted, SimWorld::Tell tell);
  ~ClusterContext() { world.executor().clear(); }
  uint32_t all_shards() const { return plan.shards + plan.schedule.phases; }
  ModelShape shape() const;
  DiskFaults disk_faults() const { return healed ? DiskFaults{} : plan.disk; }

  // Nodes of dead processes: tasks that are still to come may hold something of theirs.
  std::vector<std::unique_ptr<SimNode>> graves;
  ClusterBug bug;
  SimWorld world;
  ClusterPlan plan;
  SimNet net;
  MemDisk disk;
  MemFiles eye;  // sees the disk as it is
  ShardAudit audit;
  ClusterFacts facts;
  std::shared_ptr<const Graph> graph;
  bool healed = false;
};

constexpr const char* kCoordinatorAddress = "sim:coordinator";
constexpr const char* kSimOutput = "out";
constexpr const char* kDecisionLog = "out/coordinator.log";
std::string server_address(uint32_t index);

class SimProcess {
 public:
  SimProcess(ClusterContext* context, const std::string& name);
  virtual ~SimProcess() {
    node_->kill();
    context_->graves.push_back(std::move(node_));
  }
  SimNode* node() { return node_.get(); }
  const std::string& name() const { return node_->name(); }
  bool over() const { return over_; }
  const Status& status() const { return status_; }
  void kill();
  // From now on disk and machine are perfect.
  void heal();

 protected:
  void end(const Status& status);
  uint64_t draw_seed() { return context_->world.random().next(); }

  ClusterContext* context_;
  std::unique_ptr<SimNode> node_;
  MemFiles files_;
  SimOffload offload_;

 private:
  bool over_ = false;
  Status status_;
};

class CoordinatorProcess final : public SimProcess, public JobEvents {
 public:
  // `finished` is called when the job ends; the process goes on answering until it is killed.
  CoordinatorProcess(ClusterContext* context, uint64_t life, uint64_t incarnation,
                     std::function<void(const JobOutcome&)> finished);
  ~CoordinatorProcess() override;
  JobMaster* master() { return master_.get(); }
  // Nobody lies any more, either.
  void heal() {
    SimProcess::heal();
    bent_.lies = 0;
    bent_.rumours = false;
  }
  // Of the job, which may be older than this coordinator.
  uint64_t incarnation() const { return master_->status().incarnation; }

 private:
  void say(const std::string& line) override;
  void finished(const JobOutcome& outcome) override;
  JobPlan make_plan() const;
  JobMasterOptions make_options() const;
  std::shared_ptr<ServerAdminPort> reach(const std::string& address);

  uint64_t incarnation_;
  std::function<void(const JobOutcome&)> finished_;
  Bent bent_;
  ShadowFiles shadow_;
  std::unique_ptr<JobMaster> master_;
  std::unique_ptr<BlindElection> blind_;  // null: the job's own
  std::unique_ptr<BentJob> bent_job_;
  std::unique_ptr<CoordinatorService> service_;
};

class ServerProcess final : public SimProcess {
 public:
  ServerProcess(ClusterContext* context, uint32_t index);
  ~ServerProcess() override;
  // The server of an incarnation, or null.
  const Server* server(uint64_t incarnation) const;
  // Senders that lag behind: a push for batch `id` under an epoch that has passed, and one that
  // belongs to a former life of the job.
  void probe(uint64_t incarnation, uint64_t geometry, const BatchId& id);

  uint32_t index() const { return index_; }
  std::string look() { return watched_->look(); }

 private:
  Result<std::shared_ptr<Server>> build(const OpenJob& job);
  std::shared_ptr<ReplicaPort> reach(const std::string& address);
  void join();
  void run_slow();
  void probe_former_life(PushRequest request);

  uint32_t index_;
  ServerJobs jobs_;
  std::unique_ptr<BuggyServer> buggy_;
  std::unique_ptr<WatchedServer> watched_;
  std::unique_ptr<ServerService> service_;
  std::unique_ptr<FencelessService> fenceless_;
  Service* listens_ = nullptr;  // one of the two
  std::unique_ptr<Channel> channel_;
  std::unique_ptr<RemoteRegistry> registry_;
  std::deque<std::function<void()>> slow_;
  std::unique_ptr<ServerMember> member_;
  uint64_t incarnation_ = 0;  // opened last
};

class WorkerProcess final : public SimProcess {
 public:
  WorkerProcess(ClusterContext* context, uint32_t index);
  ~WorkerProcess() override;
  uint32_t index() const { return index_; }
  WorkerAgent* agent() { return agent_.get(); }

 private:
  Result<WorkerSetup> set_up(const JoinReply& joined);
  Result<std::shared_ptr<const Dataset>> open_data(const Geometry& geometry);

  uint32_t index_;
  std::unique_ptr<Channel> channel_;
  std::unique_ptr<RemoteJob> job_;
  TaskTrainerDriver driver_;
  std::unique_ptr<WorkerAgent> agent_;
};

}  // namespace flux
