// LocalAdmin: the coordinator's port to a server in the same process.
//
// Every verb runs on the Offload, so that the coordinator's event loop never waits for a disk;
// `done` runs where the Offload says, which is the executor of the coordinator. Used by the
// embedded run and the simulator; over a network a stub and the server's service do the same with
// ServerJobs. Threads: as Offload::run(). Ownership: the jobs and the Offload must outlive what is
// under way.
#pragma once

#include "flux/api/server_admin.h"
#include "flux/base/offload.h"
#include "flux/server/job_namespace.h"

namespace flux {

class LocalAdmin final : public ServerAdminPort {
 public:
  LocalAdmin(ServerJobs* jobs, Offload* offload) : jobs_(jobs), offload_(offload) {}

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
  ServerJobs* jobs_;
  Offload* offload_;
};

}  // namespace flux
