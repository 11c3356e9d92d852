#include "flux/client/remote_admin.h"

#include <algorithm>
#include <utility>

namespace flux {

void RemoteAdmin::open_job(OpenJob job, Done done) {
  caller_.call_plain(ApiVerb::kOpenJob, job, options_.slow, std::move(done));
}

void RemoteAdmin::holdings(std::string name, uint64_t term,
                           std::function<void(Result<Holdings>)> done) {
  caller_.call<Holdings>(ApiVerb::kHoldings, HoldingsRequest{std::move(name), term},
                         options_.prompt, std::move(done));
}

template <typename Request>
void RemoteAdmin::call_states(ApiVerb verb, const Request& request, std::vector<ShardId> shards,
                              const RetryOptions& options, States done) {
  caller_.call<StatesReply>(
      verb, request, options,
      [verb, shards = std::move(shards), done = std::move(done)](Result<StatesReply> reply) {
        if (!reply.is_ok()) return done(reply.status());
        std::vector<ShardState>& states = reply.value().shards;
        const bool same =
            std::equal(states.begin(), states.end(), shards.begin(), shards.end(),
                       [](const ShardState& state, ShardId shard) { return state.shard == shard; });
        if (!same)
          return done(error(Code::kCorrupt, "{}: the answer has the states of other shards",
                            verb_name(verb)));
        done(std::move(states));
      });
}

void RemoteAdmin::assign(AdminCall call, Assignments places, States done) {
  std::vector<ShardId> shards;
  for (const ShardAssignment& place : places.shards) shards.push_back(place.shard);
  call_states(ApiVerb::kAssign, AssignRequest{std::move(call), std::move(places)},
              std::move(shards), options_.prompt, std::move(done));
}

void RemoteAdmin::seal(AdminCall call, States done) {
  std::vector<ShardId> shards = call.shards;
  call_states(ApiVerb::kSeal, SealRequest{std::move(call)}, std::move(shards), options_.prompt,
              std::move(done));
}

void RemoteAdmin::copy(AdminCall call, ServerId target, std::string address, States done) {
  std::vector<ShardId> shards = call.shards;
  call_states(ApiVerb::kCopy, CopyRequest{std::move(call), target, std::move(address)},
              std::move(shards), options_.slow, std::move(done));
}

void RemoteAdmin::load(AdminCall call, LoadJob load, Done done) {
  caller_.call_plain(ApiVerb::kLoad, LoadRequest{std::move(call), std::move(load)}, options_.slow,
                     std::move(done));
}

void RemoteAdmin::open_pass(AdminCall call, uint32_t pass, uint64_t geometry, Done done) {
  caller_.call_plain(ApiVerb::kOpenPass, OpenPassRequest{std::move(call), pass, geometry},
                     options_.quick, std::move(done));
}

void RemoteAdmin::close_below(AdminCall call, uint32_t pass, Done done) {
  caller_.call_plain(ApiVerb::kCloseBelow, CloseBelowRequest{std::move(call), pass}, options_.quick,
                     std::move(done));
}

void RemoteAdmin::marked(AdminCall call, BlockId section, uint32_t blocks, bool any,
                         std::function<void(Result<std::vector<uint32_t>>)> done) {
  caller_.call<MarkedReply>(ApiVerb::kMarked, MarkedRequest{std::move(call), section, blocks, any},
                            options_.quick,
                            [blocks, done = std::move(done)](Result<MarkedReply> reply) {
                              if (!reply.is_ok()) return done(reply.status());
                              if (reply.value().masks.size() != blocks)
                                return done(error(Code::kCorrupt, "marked: {} masks for {} blocks",
                                                  reply.value().masks.size(), blocks));
                              done(std::move(reply).value().masks);
                            });
}

void RemoteAdmin::mark(AdminCall call, uint64_t geometry, std::vector<BatchId> ids, Verdict verdict,
                       Done done) {
  caller_.call_plain(ApiVerb::kMark,
                     MarkRequest{std::move(call), geometry, std::move(ids), verdict},
                     options_.quick, std::move(done));
}

void RemoteAdmin::void_member(AdminCall call, uint64_t round, BlockId block, Done done) {
  caller_.call_plain(ApiVerb::kVoidMember, VoidMemberRequest{std::move(call), round, block},
                     options_.quick, std::move(done));
}

void RemoteAdmin::save(AdminCall call, std::string folder, uint64_t number, uint64_t committed,
                       std::function<void(Result<std::vector<SavedShard>>)> done) {
  caller_.call<SaveReply>(ApiVerb::kSave,
                          SaveRequest{std::move(call), std::move(folder), number, committed},
                          options_.slow, [done = std::move(done)](Result<SaveReply> reply) {
                            if (reply.is_ok())
                              done(std::move(reply).value().shards);
                            else
                              done(reply.status());
                          });
}

void RemoteAdmin::totals(AdminCall call, bool rows, std::vector<ExpectedCount> expected,
                         std::function<void(Result<JobTotals>)> done) {
  caller_.call<JobTotals>(ApiVerb::kTotals,
                          TotalsRequest{std::move(call), rows, std::move(expected)}, options_.slow,
                          std::move(done));
}

void RemoteAdmin::close_job(AdminCall call, Done done) {
  caller_.call_plain(ApiVerb::kCloseJob, CloseJobRequest{std::move(call)}, options_.quick,
                     std::move(done));
}

}  // namespace flux
