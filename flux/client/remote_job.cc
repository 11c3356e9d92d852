#include "flux/client/remote_job.h"

#include <utility>

namespace flux {

void RemoteJob::join(JoinRequest request, std::function<void(Result<JoinReply>)> done) {
  caller_.call<JoinReply>(ApiVerb::kJoin, request, options_.plain, std::move(done));
}

void RemoteJob::lease(LeaseRequest request, std::function<void(Result<LeaseAnswer>)> done) {
  caller_.call<LeaseAnswer>(ApiVerb::kLease, request, options_.lease, std::move(done));
}

void RemoteJob::report(WorkerId worker, WorkerReport report,
                       std::function<void(Result<ReportAnswer>)> done) {
  caller_.call<ReportAnswer>(ApiVerb::kReport, ReportRequest{worker, std::move(report)},
                             options_.plain, std::move(done));
}

void RemoteJob::map(std::function<void(Result<ClusterMap>)> done) {
  caller_.call<ClusterMap>(ApiVerb::kMap, EmptyMessage{}, options_.plain, std::move(done));
}

void RemoteJob::geometry(uint64_t hash, std::function<void(Result<std::string>)> done) {
  caller_.call<GeometryReply>(ApiVerb::kGeometry, GeometryRequest{hash}, options_.plain,
                              [done = std::move(done)](Result<GeometryReply> reply) {
                                if (reply.is_ok())
                                  done(std::move(reply).value().json);
                                else
                                  done(reply.status());
                              });
}

void RemoteJob::leave(LeaseRequest last, WorkerReport report, Status why,
                      std::function<void(Status)> done) {
  const LeaveRequest request{std::move(last), std::move(report), std::move(why)};
  caller_.call_plain(ApiVerb::kLeave, request, options_.plain,
                     [done = std::move(done)](Status status) {
                       // A copy of this request came first, or it was taken for dead: it is gone.
                       done(status.code() == Code::kStale ? Status::ok() : std::move(status));
                     });
}

}  // namespace flux
