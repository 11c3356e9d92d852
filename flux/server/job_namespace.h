// JobNamespace: one job on a server, and the verbs of its coordinator. ServerJobs: the namespaces
// of one server process, by incarnation; it is the ServerPort and the ReplicaPort that requests go
// to, each to the job that it names, and it keeps the highest term of each job: who comes with a
// lower one is refused (kStale).
//
// LocalAdmin and the server's rpc service are thin shells: they choose the thread, ask
// ServerJobs::admit(call) for the namespace, and call its verb. Everything that a coordinator may
// repeat after a lost answer may be repeated. Verbs with a `done` answer when what they changed is
// replicated: inside the call or later on any thread. Verbs that touch files or every row (load,
// save, totals, copy) are slow: not for an event loop.
// Threads: any. Ownership: a namespace is shared, so that a job that is closed lives on until its
// last call ends. Failure: kStale (an incarnation that is not here, an older term), else what the
// server says.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "flux/api/replica_port.h"
#include "flux/api/server.h"
#include "flux/api/server_admin.h"
#include "flux/base/status.h"
#include "flux/server/server.h"

namespace flux {

// Builds the server of a job from its JobSpec: options by the model, incarnation, self, places,
// files, executor and reach; dense parameters initialised.
using ServerFactory = std::function<Result<std::shared_ptr<Server>>(const OpenJob&)>;

class JobNamespace {
 public:
  using Done = Server::Done;
  using States = Server::States;
  JobNamespace(OpenJob job, std::shared_ptr<Server> server);

  const OpenJob& job() const { return job_; }
  Server* server() const { return server_.get(); }

  Result<std::vector<ShardState>> assign(const Assignments& places);
  Result<std::vector<ShardState>> seal(const AdminCall& call);
  void copy(const AdminCall& call, ServerId target, const std::string& address, States done);
  Status load(const AdminCall& call, const LoadJob& load);
  void open_pass(const AdminCall& call, uint32_t pass, uint64_t geometry, Done done);
  void close_below(const AdminCall& call, uint32_t pass, Done done);
  Result<std::vector<uint32_t>> marked(const AdminCall& call, const BlockId& section,
                                       uint32_t blocks, bool any) const;
  // The same, answered when all of it is replicated: what a coordinator may build on.
  void marked(const AdminCall& call, const BlockId& section, uint32_t blocks, bool any,
              std::function<void(Result<std::vector<uint32_t>>)> done);
  void mark(const AdminCall& call, uint64_t geometry, std::span<const BatchId> ids, Verdict verdict,
            Done done);
  Status void_member(const AdminCall& call, uint64_t round, const BlockId& block);
  Result<std::vector<SavedShard>> save(const AdminCall& call, const std::string& folder,
                                       uint64_t number, uint64_t committed);
  // bytes_in and bytes_out stay 0: the caller knows them.
  Result<JobTotals> totals(const AdminCall& call, bool rows,
                           std::span<const ExpectedCount> expected) const;
  // Refuses pushes from now on and answers those that wait.
  void close();

 private:
  const OpenJob job_;
  const std::shared_ptr<Server> server_;
};

// Totals of these shards as the coordinator wants them. `rows`: see ServerAdminPort::totals().
JobTotals job_totals(const Server& server, std::span<const ShardId> shards, bool rows,
                     std::span<const ExpectedCount> expected);
// Of every shard that is primary there.
JobTotals job_totals(const Server& server, bool rows, std::span<const ExpectedCount> expected);

class ServerJobs final : public ServerPort, public ReplicaPort {
 public:
  explicit ServerJobs(ServerFactory factory);

  // Opens a job. The same once more is fine. A job of the same name under an older term is closed
  // and replaced; under a newer one: kStale.
  Status open(const OpenJob& job);
  // The job that a coordinator's call is about; its coordinator has been heard then. kStale if no
  // job of this incarnation is open here, or the term is an older one.
  Result<std::shared_ptr<JobNamespace>> admit(const AdminCall& call);
  // For pulls, pushes and forwards, which have no term.
  Result<std::shared_ptr<JobNamespace>> find(uint64_t incarnation) const;
  // What is here of the job; older terms are refused from now on.
  Result<Holdings> holdings(const std::string& name, uint64_t term);
  // Closes a job; one that is not here is closed already. kStale: an older term.
  Status close(const AdminCall& call);
  void close(uint64_t incarnation);
  // Closes everything: this server is no member any more.
  void forget_all();
  std::vector<std::shared_ptr<JobNamespace>> all() const;

  // For the report to the coordinator: backups that do not answer, primaries that are not heard;
  // and that it was answered.
  std::vector<ServerId> suspects() const;
  std::vector<ServerId> silent() const;
  uint64_t differed() const;  // replicas dropped, by jobs that are open
  // Of the job with the highest term: a member of a job serves that one alone.
  std::vector<ShardWork> work() const;
  void heard_coordinator() const;

  // By the incarnation that a request names.
  void pull(const PullRequest& request, std::function<void(const PullReply&)> done) override;
  void push(const PushRequest& request, std::function<void(const PushReply&)> done) override;
  void confirm(uint64_t incarnation, uint64_t receipt, std::function<void(Status)> done) override;
  void replicate(const ReplicateRequest& request,
                 std::function<void(const ReplicateReply&)> done) override;
  void install(const InstallRequest& request, std::function<void(Status)> done) override;

 private:
  std::vector<ServerId> of_all(const std::function<std::vector<ServerId>(Server*)>& list) const;
  // Both with the lock held. The first: kStale, or the term is the highest now.
  Status check_term(const std::string& name, uint64_t term);
  // The one that must give way for `job`, if any; kStale if it may not.
  Result<std::shared_ptr<JobNamespace>> predecessor(const OpenJob& job) const;

  const ServerFactory factory_;
  std::mutex opening_;  // one open() at a time
  mutable std::mutex mutex_;
  std::map<uint64_t, std::shared_ptr<JobNamespace>> jobs_;  // guarded by mutex_, as is terms_
  std::map<std::string, uint64_t> terms_;                   // highest seen, by name
};

}  // namespace flux
