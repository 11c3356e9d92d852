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
  RetryOptions slow{.try_timeout_ns = 2 * kSecond, .deadline_ns = 600 * kSecond};  // the rest
};

class RemoteAdmin final : public ServerAdminPort {
 public:
  RemoteAdmin(Channel* channel, Executor* executor, uint64_t seed, RemoteAdminOptions options = {})
      : options_(options), caller_(channel, executor, seed) {}

  void open_job(OpenJob job, Done done) override;
  void load(uint64_t incarnation, LoadJob load, Done done) override;
  void open_pass(uint64_t incarnation, uint32_t pass, uint64_t geometry, Done done) override;
  void close_below(uint64_t incarnation, uint32_t pass, Done done) override;
  void marked(uint64_t incarnation, BlockId section, uint32_t blocks, bool any,
              std::function<void(Result<std::vector<uint32_t>>)> done) override;
  void mark(uint64_t incarnation, uint64_t geometry, std::vector<BatchId> ids, Verdict verdict,
            Done done) override;
  void void_member(uint64_t incarnation, uint64_t round, BlockId block, Done done) override;
  void save(uint64_t incarnation, std::string folder, uint64_t number,
            std::function<void(Result<std::vector<SavedShard>>)> done) override;
  void totals(uint64_t incarnation, bool rows, std::vector<ExpectedCount> expected,
              std::function<void(Result<JobTotals>)> done) override;
  void close_job(uint64_t incarnation, Done done) override;

 private:
  RemoteAdminOptions options_;
  RetryCaller caller_;
};

}  // namespace flux
