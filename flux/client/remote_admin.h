// RemoteAdmin: the ServerAdminPort of a coordinator over a Channel to one server.
//
// Every call is asked again until it is answered or its deadline is over (client/retry_caller.h).
// Tries are short even for slow verbs: the server knows a repeated request that it still works on
// (server/server_service.h) and answers the latest one.
// Threads, ownership, destruction: as RetryCaller.
#pragma once

#include "flux/api/server_admin.h"
#include "flux/client/retry_caller.h"

namespace flux {

struct RemoteAdminOptions {
  RetryOptions quick;  // passes, marks, close_job
  // assign, seal, holdings: a failover waits for them.
  RetryOptions prompt{.try_timeout_ns = 300 * kMillisecond,
                      .deadline_ns = 30 * kSecond,
                      .pause_ns = 10 * kMillisecond,
                      .pause_max_ns = 100 * kMillisecond};
  RetryOptions slow{.try_timeout_ns = 2 * kSecond, .deadline_ns = 600 * kSecond};  // the rest
};

class RemoteAdmin final : public ServerAdminPort {
 public:
  RemoteAdmin(Channel* channel, Executor* executor, uint64_t seed, RemoteAdminOptions options = {})
      : options_(options), caller_(channel, executor, seed) {}

  void open_job(OpenJob job, Done done) override;
  void holdings(std::string name, uint64_t term,
                std::function<void(Result<Holdings>)> done) override;
  void assign(AdminCall call, Assignments places, States done) override;
  void seal(AdminCall call, States done) override;
  void copy(AdminCall call, ServerId target, std::string address, States done) override;
  void load(AdminCall call, LoadJob load, Done done) override;
  void open_pass(AdminCall call, uint32_t pass, uint64_t geometry, Done done) override;
  void close_below(AdminCall call, uint32_t pass, Done done) override;
  void marked(AdminCall call, BlockId section, uint32_t blocks, bool any,
              std::function<void(Result<std::vector<uint32_t>>)> done) override;
  void mark(AdminCall call, uint64_t geometry, std::vector<BatchId> ids, Verdict verdict,
            Done done) override;
  void void_member(AdminCall call, uint64_t round, BlockId block, Done done) override;
  void save(AdminCall call, std::string folder, uint64_t number, uint64_t committed,
            std::function<void(Result<std::vector<SavedShard>>)> done) override;
  void totals(AdminCall call, bool rows, std::vector<ExpectedCount> expected,
              std::function<void(Result<JobTotals>)> done) override;
  void close_job(AdminCall call, Done done) override;

 private:
  // Calls a verb that answers with states of `shards`, no others.
  template <typename Request>
  void call_states(ApiVerb verb, const Request& request, std::vector<ShardId> shards,
                   const RetryOptions& options, States done);

  RemoteAdminOptions options_;
  RetryCaller caller_;
};

}  // namespace flux
