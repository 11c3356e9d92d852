// ServerJobs: which jobs a server process holds, and to which of them a request goes.
#include "flux/server/job_namespace.h"

namespace flux {

ServerJobs::ServerJobs(ServerFactory factory, Files* files)
    : factory_(std::move(factory)), files_(files) {}

Result<std::shared_ptr<JobNamespace>> ServerJobs::predecessor(const OpenJob& job) const {
  for (const auto& [incarnation, open] : jobs_) {
    if (open->job().name != job.name) continue;
    if (open->job().epoch.term > job.epoch.term)
      return error(Code::kStale, "job '{}' is open under term {}, this is term {}", job.name,
                   open->job().epoch.term, job.epoch.term);
    if (open->job().epoch.term == job.epoch.term)
      return error(Code::kStale,
                   "job '{}' is open as another incarnation under term {}; close it first",
                   job.name, job.epoch.term);
    return open;
  }
  return std::shared_ptr<JobNamespace>();
}

Status ServerJobs::open(const OpenJob& job) {
  const std::lock_guard opening(opening_);
  std::shared_ptr<JobNamespace> old;
  {
    const std::lock_guard lock(mutex_);
    const auto same = jobs_.find(job.incarnation);
    if (same != jobs_.end()) {
      const OpenJob& known = same->second->job();
      if (known.name == job.name && known.epoch == job.epoch && known.shards == job.shards)
        return Status::ok();
      return error(Code::kStale, "this incarnation of job '{}' is open already, otherwise",
                   known.name);
    }
    FLUX_ASSIGN_OR_RETURN(old, predecessor(job));
  }
  if (old) close(old->job().incarnation);  // first, so that there is memory for the new one
  FLUX_ASSIGN_OR_RETURN(std::unique_ptr<Server> server, factory_(job));
  auto opened = std::make_shared<JobNamespace>(job, std::move(server), files_);
  const std::lock_guard lock(mutex_);
  jobs_[job.incarnation] = std::move(opened);
  return Status::ok();
}

Result<std::shared_ptr<JobNamespace>> ServerJobs::find(uint64_t incarnation) const {
  const std::lock_guard lock(mutex_);
  const auto at = jobs_.find(incarnation);
  if (at == jobs_.end())
    return error(Code::kStale,
                 "this server has no job of that incarnation (it was closed or "
                 "replaced, or the server was started anew)");
  return at->second;
}

void ServerJobs::close(uint64_t incarnation) {
  std::shared_ptr<JobNamespace> job;
  {
    const std::lock_guard lock(mutex_);
    auto node = jobs_.extract(incarnation);
    if (!node) return;
    job = std::move(node.mapped());
  }
  job->close();
}

std::vector<std::shared_ptr<JobNamespace>> ServerJobs::all() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<JobNamespace>> jobs;
  for (const auto& [incarnation, job] : jobs_) jobs.push_back(job);
  return jobs;
}

void ServerJobs::pull(const PullRequest& request, std::function<void(const PullReply&)> done) {
  const auto job = find(request.incarnation);
  if (job.is_ok()) return job.value()->server()->pull(request, std::move(done));
  done(PullReply{job.status()});
}

void ServerJobs::push(const PushRequest& request, std::function<void(const PushReply&)> done) {
  const auto job = find(request.claim.incarnation);
  if (job.is_ok()) return job.value()->server()->push(request, std::move(done));
  PushReply reply;
  for (const ShardId shard : request.shards)
    reply.answers.push_back({shard, Answer::kStaleIncarnation, 0, {}});
  done(reply);
}

}  // namespace flux
