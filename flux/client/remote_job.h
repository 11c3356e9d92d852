// RemoteJob: the JobPort of a worker over a Channel to its coordinator.
//
// Every call is asked again until it is answered or its deadline is over (client/retry_caller.h). A
// repeated lease has the same `seq`, so the coordinator gives the same block; a leave that
// finds the worker gone has been done. The coordinator may hold a lease back:
// `lease.try_timeout_ns` is the longest that it does, and some more. Threads, ownership,
// destruction: as RetryCaller.
#pragma once

#include "flux/api/job_port.h"
#include "flux/client/retry_caller.h"

namespace flux {

struct RemoteJobOptions {
  RetryOptions plain;  // join, report, map, geometry, leave
  RetryOptions lease{.try_timeout_ns = 3 * kSecond, .deadline_ns = 60 * kSecond};
};

class RemoteJob final : public JobPort {
 public:
  RemoteJob(Channel* channel, Executor* executor, uint64_t seed, RemoteJobOptions options = {})
      : options_(options), caller_(channel, executor, seed) {}

  void join(JoinRequest request, std::function<void(Result<JoinReply>)> done) override;
  void lease(LeaseRequest request, std::function<void(Result<LeaseAnswer>)> done) override;
  void report(WorkerId worker, WorkerReport report,
              std::function<void(Result<ReportAnswer>)> done) override;
  void map(std::function<void(Result<ClusterMap>)> done) override;
  void geometry(uint64_t hash, std::function<void(Result<std::string>)> done) override;
  void leave(LeaseRequest last, WorkerReport report, Status why,
             std::function<void(Status)> done) override;

 private:
  RemoteJobOptions options_;
  RetryCaller caller_;
};

}  // namespace flux
