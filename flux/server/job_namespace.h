// JobNamespace: one job on a server, and the verbs of its coordinator, done at once.
//
// LocalAdmin and the server's rpc service are thin shells around this class: they choose the
// thread, it does the work. Everything that a coordinator may repeat after a lost answer may be
// repeated. ServerJobs: the namespaces of one server process, by incarnation; it is the ServerPort
// that pulls and pushes go to, each to the job that it names. Threads: any, but load() may not run
// beside pulls and pushes of the same job. Verbs that touch files or every row (load, save, totals)
// are slow: not for an event loop. Ownership: a namespace is shared, so that a job that is closed
// lives on until its last call ends. Failure: kStale (an incarnation that is not here, an older
// term), else what the server says.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "flux/api/server.h"
#include "flux/api/server_admin.h"
#include "flux/base/status.h"
#include "flux/server/server.h"

namespace flux {

// Builds the server of a job from its JobSpec: options by the model, incarnation, epoch, owned
// shards, files; dense parameters initialised.
using ServerFactory = std::function<Result<std::unique_ptr<Server>>(const OpenJob&)>;

class JobNamespace {
 public:
  // `files` must outlive it and be the ones that the server saves to.
  JobNamespace(OpenJob job, std::unique_ptr<Server> server, Files* files);

  const OpenJob& job() const { return job_; }
  Server* server() const { return server_.get(); }

  // Reads every owned shard of a checkpoint. Repeating the same load is fine; after a failed one
  // the job must be opened anew.
  Status load(const LoadJob& load);
  Status open_pass(uint32_t pass, uint64_t geometry);
  Status close_below(uint32_t pass);
  Result<std::vector<uint32_t>> marked(const BlockId& section, uint32_t blocks, bool any) const;
  Status mark(uint64_t geometry, std::span<const BatchId> ids, Verdict verdict);
  Status void_member(uint64_t round, const BlockId& block);
  Result<std::vector<SavedShard>> save(const std::string& folder, uint64_t number);
  // bytes_in and bytes_out stay 0: the caller knows them.
  Result<JobTotals> totals(bool rows, std::span<const ExpectedCount> expected) const;
  // Refuses pushes from now on and answers those that wait.
  void close();

 private:
  Status load_shards(const LoadJob& load);

  const OpenJob job_;
  const std::unique_ptr<Server> server_;
  Files* const files_;
  std::mutex load_mutex_;
  std::optional<LoadJob> loaded_;  // guarded by load_mutex_, as is load_status_
  Status load_status_;
};

// Totals of a server as the coordinator wants them. `rows`: see ServerAdminPort::totals().
JobTotals job_totals(const Server& server, bool rows, std::span<const ExpectedCount> expected);

class ServerJobs final : public ServerPort {
 public:
  ServerJobs(ServerFactory factory, Files* files);

  // Opens a job. The same once more is fine. A job of the same name under an older term is closed
  // and replaced; under a newer one: kStale.
  Status open(const OpenJob& job);
  // kStale if no job of this incarnation is open here.
  Result<std::shared_ptr<JobNamespace>> find(uint64_t incarnation) const;
  // Closes a job; one that is not here is closed already.
  void close(uint64_t incarnation);
  std::vector<std::shared_ptr<JobNamespace>> all() const;

  // By PullRequest::incarnation and PushClaim::incarnation.
  void pull(const PullRequest& request, std::function<void(const PullReply&)> done) override;
  void push(const PushRequest& request, std::function<void(const PushReply&)> done) override;

 private:
  // The one that must give way for `job`, if any; kStale if it may not. The lock is held.
  Result<std::shared_ptr<JobNamespace>> predecessor(const OpenJob& job) const;

  const ServerFactory factory_;
  Files* const files_;
  std::mutex opening_;  // one open() at a time
  mutable std::mutex mutex_;
  std::map<uint64_t, std::shared_ptr<JobNamespace>> jobs_;  // guarded by mutex_
};

}  // namespace flux
