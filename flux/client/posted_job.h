// PostedJob: a JobPort in the same process, across two executors.
//
// Requests run on the executor of the job's owner, answers on the caller's; neither ever runs
// inside the other's call. With both on one executor it still keeps calls from nesting.
// Threads: calls from the caller's executor. Ownership: all three outlive what is under way.
#pragma once

#include <memory>
#include <utility>

#include "flux/api/job_port.h"
#include "flux/base/executor.h"

namespace flux {

class PostedJob final : public JobPort {
 public:
  PostedJob(JobPort* job, Executor* owner, Executor* caller)
      : job_(job), owner_(owner), caller_(caller) {}

  void join(JoinRequest request, std::function<void(Result<JoinReply>)> done) override {
    post([this, request = std::move(request), done = back(std::move(done))]() mutable {
      job_->join(std::move(request), std::move(done));
    });
  }
  void lease(LeaseRequest request, std::function<void(Result<LeaseAnswer>)> done) override {
    post([this, request = std::move(request), done = back(std::move(done))]() mutable {
      job_->lease(std::move(request), std::move(done));
    });
  }
  void report(WorkerId worker, WorkerReport report,
              std::function<void(Result<ReportAnswer>)> done) override {
    post([this, worker, report = std::move(report), done = back(std::move(done))]() mutable {
      job_->report(worker, std::move(report), std::move(done));
    });
  }
  void map(std::function<void(Result<ClusterMap>)> done) override {
    post([this, done = back(std::move(done))]() mutable { job_->map(std::move(done)); });
  }
  void geometry(uint64_t hash, std::function<void(Result<std::string>)> done) override {
    post([this, hash, done = back(std::move(done))]() mutable {
      job_->geometry(hash, std::move(done));
    });
  }
  void leave(LeaseRequest last, WorkerReport report, Status why,
             std::function<void(Status)> done) override {
    post([this, last = std::move(last), report = std::move(report), why = std::move(why),
          done = back(std::move(done))]() mutable {
      job_->leave(std::move(last), std::move(report), std::move(why), std::move(done));
    });
  }

 private:
  template <typename Task>
  void post(Task task) {
    owner_->post(0, std::move(task));
  }
  template <typename T>
  std::function<void(T)> back(std::function<void(T)> done) {
    return [caller = caller_, done = std::move(done)](T value) {
      caller->post(
          0, [done, value = std::make_shared<T>(std::move(value))] { done(std::move(*value)); });
    };
  }

  JobPort* job_;
  Executor* owner_;
  Executor* caller_;
};

}  // namespace flux
