// ServerJobs: which jobs a server process holds, and to which of them a request goes.
#include <algorithm>

#include "flux/server/job_namespace.h"

namespace flux {

ServerJobs::ServerJobs(ServerFactory factory) : factory_(std::move(factory)) {}

Status ServerJobs::check_term(const std::string& name, uint64_t term) {
  uint64_t& highest = terms_[name];
  if (term < highest)
    return error(Code::kStale, "job '{}' is under term {}, this is term {}", name, highest, term);
  highest = term;
  return Status::ok();
}

Result<std::shared_ptr<JobNamespace>> ServerJobs::predecessor(const OpenJob& job) const {
  for (const auto& [incarnation, open] : jobs_) {
    if (open->job().name != job.name) continue;
    if (open->job().term >= job.term)
      return error(Code::kStale,
                   "job '{}' is open as another incarnation under term {}; close it first",
                   job.name, open->job().term);
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
      const bool fits = job.places.shards.empty() || known.places.shards == job.places.shards;
      // A coordinator that took the job over may have had to give the number to another server.
      const bool renumbered = job.self != same->second->server()->self();
      if (known.name != job.name || (renumbered && job.term <= known.term) || !fits)
        return error(Code::kStale, "this incarnation of job '{}' is open already, otherwise",
                     known.name);
      FLUX_RETURN_IF_ERROR(check_term(job.name, job.term));
      if (renumbered) same->second->server()->set_self(job.self);
      same->second->server()->heard_coordinator();
      return Status::ok();
    }
    FLUX_RETURN_IF_ERROR(check_term(job.name, job.term));
    FLUX_ASSIGN_OR_RETURN(old, predecessor(job));
  }
  if (old) close(old->job().incarnation);  // first, so that there is memory for the new one
  FLUX_ASSIGN_OR_RETURN(std::shared_ptr<Server> server, factory_(job));
  server->set_self(job.self);
  auto opened = std::make_shared<JobNamespace>(job, std::move(server));
  const std::lock_guard lock(mutex_);
  jobs_[job.incarnation] = std::move(opened);
  return Status::ok();
}

Result<std::shared_ptr<JobNamespace>> ServerJobs::admit(const AdminCall& call) {
  FLUX_ASSIGN_OR_RETURN(auto job, find(call.incarnation));
  {
    const std::lock_guard lock(mutex_);
    FLUX_RETURN_IF_ERROR(check_term(job->job().name, call.term));
  }
  job->server()->heard_coordinator();
  return job;
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

Result<Holdings> ServerJobs::holdings(const std::string& name, uint64_t term) {
  std::shared_ptr<JobNamespace> job;
  {
    const std::lock_guard lock(mutex_);
    FLUX_RETURN_IF_ERROR(check_term(name, term));
    for (const auto& [incarnation, open] : jobs_)
      if (open->job().name == name) job = open;
  }
  Holdings out;
  if (job) {
    job->server()->heard_coordinator();
    out = job->server()->holdings();
  }
  out.term = term;
  return out;
}

Status ServerJobs::close(const AdminCall& call) {
  const auto job = find(call.incarnation);
  if (!job.is_ok()) return Status::ok();
  {
    const std::lock_guard lock(mutex_);
    FLUX_RETURN_IF_ERROR(check_term(job.value()->job().name, call.term));
  }
  close(call.incarnation);
  return Status::ok();
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

void ServerJobs::forget_all() {
  for (const auto& job : all()) close(job->job().incarnation);
}

std::vector<std::shared_ptr<JobNamespace>> ServerJobs::all() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<JobNamespace>> jobs;
  for (const auto& [incarnation, job] : jobs_) jobs.push_back(job);
  return jobs;
}

std::vector<ServerId> ServerJobs::of_all(
    const std::function<std::vector<ServerId>(Server*)>& list) const {
  std::vector<ServerId> found;
  for (const auto& job : all()) {
    const std::vector<ServerId> some = list(job->server());
    found.insert(found.end(), some.begin(), some.end());
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

std::vector<ServerId> ServerJobs::suspects() const {
  return of_all([](Server* server) { return server->suspects(); });
}

std::vector<ServerId> ServerJobs::silent() const {
  return of_all([](Server* server) { return server->silent(); });
}

uint64_t ServerJobs::differed() const {
  uint64_t sum = 0;
  for (const auto& job : all()) sum += job->server()->diverged();
  return sum;
}

std::vector<ShardWork> ServerJobs::work() const {
  std::shared_ptr<JobNamespace> newest;
  for (const auto& job : all())
    if (!newest || job->job().term > newest->job().term) newest = job;
  return newest ? newest->server()->work() : std::vector<ShardWork>();
}

void ServerJobs::heard_coordinator() const {
  for (const auto& job : all()) job->server()->heard_coordinator();
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

void ServerJobs::confirm(uint64_t incarnation, uint64_t receipt, std::function<void(Status)> done) {
  const auto job = find(incarnation);
  if (job.is_ok()) return job.value()->server()->confirm(incarnation, receipt, std::move(done));
  done(job.status());
}

void ServerJobs::replicate(const ReplicateRequest& request,
                           std::function<void(const ReplicateReply&)> done) {
  const auto job = find(request.push.claim.incarnation);
  if (job.is_ok()) return job.value()->server()->replicate(request, std::move(done));
  done(ReplicateReply{job.status(), {}});
}

void ServerJobs::install(const InstallRequest& request, std::function<void(Status)> done) {
  const auto job = find(request.incarnation);
  if (job.is_ok()) return job.value()->server()->install(request, std::move(done));
  done(job.status());
}

}  // namespace flux
