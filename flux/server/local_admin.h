// LocalAdmin: the coordinator's port to a server in the same process.
//
// Every verb runs on the Offload, so that the coordinator's event loop never waits for a disk;
// `done` runs where the Offload says, which is the executor of the coordinator. Used by the
// embedded run and the simulator; over a network a stub and the server's service do the same with
// ServerJobs. Threads: as Offload::run(); if a verb waits for replication, run() is called from the
// thread that ends it. Ownership: the jobs and the Offload must outlive what is under way.
#pragma once

#include "flux/api/server_admin.h"
#include "flux/base/offload.h"
#include "flux/server/job_namespace.h"

namespace flux {

class LocalAdmin final : public ServerAdminPort {
 public:
  LocalAdmin(ServerJobs* jobs, Offload* offload) : jobs_(jobs), offload_(offload) {}

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
  ServerJobs* jobs_;
  Offload* offload_;
};

}  // namespace flux
