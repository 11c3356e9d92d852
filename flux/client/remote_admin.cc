#include "flux/client/remote_admin.h"

#include <utility>

namespace flux {

void RemoteAdmin::open_job(OpenJob job, Done done) {
  caller_.call_plain(ApiVerb::kOpenJob, job, options_.slow, std::move(done));
}

void RemoteAdmin::load(uint64_t incarnation, LoadJob load, Done done) {
  caller_.call_plain(ApiVerb::kLoad, LoadRequest{incarnation, std::move(load)}, options_.slow,
                     std::move(done));
}

void RemoteAdmin::open_pass(uint64_t incarnation, uint32_t pass, uint64_t geometry, Done done) {
  caller_.call_plain(ApiVerb::kOpenPass, OpenPassRequest{incarnation, pass, geometry},
                     options_.quick, std::move(done));
}

void RemoteAdmin::close_below(uint64_t incarnation, uint32_t pass, Done done) {
  caller_.call_plain(ApiVerb::kCloseBelow, CloseBelowRequest{incarnation, pass}, options_.quick,
                     std::move(done));
}

void RemoteAdmin::marked(uint64_t incarnation, BlockId section, uint32_t blocks, bool any,
                         std::function<void(Result<std::vector<uint32_t>>)> done) {
  caller_.call<MarkedReply>(
      ApiVerb::kMarked, MarkedRequest{incarnation, section, blocks, any}, options_.quick,
      [blocks, done = std::move(done)](Result<MarkedReply> reply) {
        if (!reply.is_ok()) return done(reply.status());
        if (reply.value().masks.size() != blocks)
          return done(error(Code::kCorrupt, "marked: {} masks for {} blocks",
                            reply.value().masks.size(), blocks));
        done(std::move(reply).value().masks);
      });
}

void RemoteAdmin::mark(uint64_t incarnation, uint64_t geometry, std::vector<BatchId> ids,
                       Verdict verdict, Done done) {
  caller_.call_plain(ApiVerb::kMark, MarkRequest{incarnation, geometry, std::move(ids), verdict},
                     options_.quick, std::move(done));
}

void RemoteAdmin::void_member(uint64_t incarnation, uint64_t round, BlockId block, Done done) {
  caller_.call_plain(ApiVerb::kVoidMember, VoidMemberRequest{incarnation, round, block},
                     options_.quick, std::move(done));
}

void RemoteAdmin::save(uint64_t incarnation, std::string folder, uint64_t number,
                       std::function<void(Result<std::vector<SavedShard>>)> done) {
  caller_.call<SaveReply>(ApiVerb::kSave, SaveRequest{incarnation, std::move(folder), number},
                          options_.slow, [done = std::move(done)](Result<SaveReply> reply) {
                            if (reply.is_ok())
                              done(std::move(reply).value().shards);
                            else
                              done(reply.status());
                          });
}

void RemoteAdmin::totals(uint64_t incarnation, bool rows, std::vector<ExpectedCount> expected,
                         std::function<void(Result<JobTotals>)> done) {
  caller_.call<JobTotals>(ApiVerb::kTotals, TotalsRequest{incarnation, rows, std::move(expected)},
                          options_.slow, std::move(done));
}

void RemoteAdmin::close_job(uint64_t incarnation, Done done) {
  caller_.call_plain(ApiVerb::kCloseJob, CloseJobRequest{incarnation}, options_.quick,
                     std::move(done));
}

}  // namespace flux
