#include "flux/client/remote_registry.h"

#include <utility>

namespace flux {

void RemoteRegistry::join(ServerJoin request, std::function<void(Result<ServerJoinReply>)> done) {
  caller_.call<ServerJoinReply>(ApiVerb::kServerJoin, request, options_, std::move(done));
}

void RemoteRegistry::report(ServerReport report, std::function<void(Result<bool>)> done) {
  caller_.call<ServerReportReply>(ApiVerb::kServerReport, report, options_,
                                  [done = std::move(done)](Result<ServerReportReply> r) {
                                    if (r.is_ok())
                                      done(r.value().over);
                                    else
                                      done(r.status());
                                  });
}

}  // namespace flux
