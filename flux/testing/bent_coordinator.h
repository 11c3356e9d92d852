// BentJob, BentAdmin and ShadowFiles: what the cluster simulator puts around a JobMaster.
//
// BentJob stands between the coordinator's service and its job: it adds false hints (workers may
// say anything; the shards have the last word) and plants the bugs about leases. BentAdmin stands
// between the job and its servers: it tells the audit which sync members were voided and plants the
// bugs about sections and snapshots. ShadowFiles shows a coordinator what is not on the disk.
// All of them pass everything on unchanged when nothing is planted.
// Not thread-safe: one world is one thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "flux/api/job_port.h"
#include "flux/api/server_admin.h"
#include "flux/checkpoint/shard_file.h"
#include "flux/election/folder_election.h"
#include "flux/storage/files.h"
#include "flux/testing/cluster_bug.h"
#include "flux/testing/sim_node.h"
#include "flux/testing/watched_server.h"

namespace flux {

// What the wrappers of one coordinator share.
struct Bent {
  ClusterBug bug = ClusterBug::kNone;
  SimNode* node = nullptr;
  ClusterFacts* facts = nullptr;
  double lies = 0;  // chance of a false hint in a lease request
  bool rumours = false;
  // Workers say for a while that they do not reach a server, which may be there and well.
  struct Rumour {
    ServerId server = kNoServer;
    WorkerId by = 0;  // 0: of all
    TimeNs until = 0;
  } rumour;
  std::set<BatchId> hinted;
  std::map<ShardId, ShardImage> saved;         // the last image of each shard
  std::map<std::string, std::string> shadows;  // path -> what a read gives
  Files* disk = nullptr;                       // without faults
  std::string log;                             // path of the decision log
  std::string job;                             // its name, as servers know it
  ShardId shards = 0;                          // of the job
  uint32_t pass = 0;                           // opened last
  // What servers said they hold, before the job was taken over: latest epochs of whole replicas.
  std::map<std::pair<uint64_t, ShardId>, ShardEpoch> found;
};

// Batches that a coordinator has decided to skip, by its log; the disk is only looked at.
std::set<BatchId> logged_skips(Files* disk, const std::string& log);

class BentJob final : public JobPort {
 public:
  BentJob(JobPort* inner, Bent* bent) : inner_(inner), bent_(bent) {}
  void join(JoinRequest request, std::function<void(Result<JoinReply>)> done) override {
    inner_->join(std::move(request), std::move(done));
  }
  void lease(LeaseRequest request, std::function<void(Result<LeaseAnswer>)> done) override;
  void report(WorkerId worker, WorkerReport report,
              std::function<void(Result<ReportAnswer>)> done) override {
    if (bent_->rumours) spread_rumour(worker, &report);
    inner_->report(worker, std::move(report), std::move(done));
  }
  void map(std::function<void(Result<ClusterMap>)> done) override { inner_->map(std::move(done)); }
  void geometry(uint64_t hash, std::function<void(Result<std::string>)> done) override {
    inner_->geometry(hash, std::move(done));
  }
  void leave(LeaseRequest last, WorkerReport report, Status why,
             std::function<void(Status)> done) override {
    if (bent_->bug == ClusterBug::kRefusalsLost) last.refused.clear();
    inner_->leave(std::move(last), std::move(report), std::move(why), std::move(done));
  }

 private:
  void check_hints(const LeaseRequest& request) const;
  void add_lie(LeaseRequest* request);
  void spread_rumour(WorkerId worker, WorkerReport* report);

  JobPort* inner_;
  Bent* bent_;
  std::vector<BlockLease> leased_;  // lately
};

class BentAdmin final : public ServerAdminPort {
 public:
  BentAdmin(std::shared_ptr<ServerAdminPort> inner, Bent* bent)
      : inner_(std::move(inner)), bent_(bent) {}
  void open_job(OpenJob job, Done done) override {
    inner_->open_job(std::move(job), std::move(done));
  }
  void holdings(std::string name, uint64_t term,
                std::function<void(Result<Holdings>)> done) override;
  void assign(AdminCall call, Assignments places, States done) override {
    inner_->assign(std::move(call), std::move(places), std::move(done));
  }
  void seal(AdminCall call, States done) override;
  void copy(AdminCall call, ServerId target, std::string address, States done) override {
    inner_->copy(std::move(call), target, std::move(address), std::move(done));
  }
  void load(AdminCall call, LoadJob load, Done done) override;
  void open_pass(AdminCall call, uint32_t pass, uint64_t geometry, Done done) override {
    bent_->pass = pass;
    inner_->open_pass(std::move(call), pass, geometry, std::move(done));
  }
  void close_below(AdminCall call, uint32_t pass, Done done) override {
    inner_->close_below(std::move(call), pass, std::move(done));
  }
  void marked(AdminCall call, BlockId section, uint32_t blocks, bool any,
              std::function<void(Result<std::vector<uint32_t>>)> done) override;
  void mark(AdminCall call, uint64_t geometry, std::vector<BatchId> ids, Verdict verdict,
            Done done) override;
  void void_member(AdminCall call, uint64_t round, BlockId block, Done done) override;
  void save(AdminCall call, std::string folder, uint64_t number, uint64_t committed,
            std::function<void(Result<std::vector<SavedShard>>)> done) override;
  void totals(AdminCall call, bool rows, std::vector<ExpectedCount> expected,
              std::function<void(Result<JobTotals>)> done) override {
    inner_->totals(std::move(call), rows, std::move(expected), std::move(done));
  }
  void close_job(AdminCall call, Done done) override {
    inner_->close_job(std::move(call), std::move(done));
  }

 private:
  static void bend(Bent* bent, const std::string& folder, SavedShard* saved);
  static void take_former(Bent* bent, const std::string& path, std::string bytes,
                          SavedShard* saved);
  static void check_saved(const Bent& bent, const AdminCall& call, const std::string& folder,
                          const std::vector<SavedShard>& saved);
  void unsealed(const AdminCall& call, const States& done);
  void remember_former(const AdminCall& call, const LoadJob& load);
  // Batches of a block that any of the shards has from a former life.
  static uint32_t former_marks(const PlantedFacts& planted, const AdminCall& call,
                               const BlockId& block);

  std::shared_ptr<ServerAdminPort> inner_;
  Bent* bent_;
};

// A coordinator that never learns of a later term.
class BlindElection final : public Election {
 public:
  BlindElection(Files* files, const std::string& output, uint64_t id)
      : inner_(files, output, "sim") {
    inner_.announce({"coordinator", id, "", ""});
  }
  void announce(const Candidate& self) override { inner_.announce(self); }
  Status campaign(const std::atomic<bool>* stop) override { return inner_.campaign(stop); }
  std::string waiting_for() const override { return inner_.waiting_for(); }
  Result<uint64_t> claim_term(uint64_t above) override { return inner_.claim_term(above); }
  Status still_mine(uint64_t) override { return Status::ok(); }
  Status lease_held() const override { return Status::ok(); }
  Result<LeaderInfo> leader() override { return inner_.leader(); }
  Status resign() override { return inner_.resign(); }

 private:
  FolderElection inner_;
};

class ShadowFiles final : public Files {
 public:
  ShadowFiles(Files* inner, Bent* bent) : inner_(inner), bent_(bent) {}
  Status write_atomic(const std::string& path, std::string_view content) override;
  Status write_synced(const std::string& path, std::string_view content) override {
    return inner_->write_synced(path, content);
  }
  Status create_exclusive(const std::string& path, std::string_view content) override {
    const bool again = bent_->bug == ClusterBug::kTermReused && is_term(path);
    if (again) FLUX_RETURN_IF_ERROR(inner_->remove_all(path));
    return inner_->create_exclusive(path, content);
  }
  Status append_synced(const std::string& path, std::string_view content) override {
    return inner_->append_synced(path, content);
  }
  Result<std::string> read(const std::string& path, uint64_t bytes_max) override;
  Status make_folders(const std::string& path) override { return inner_->make_folders(path); }
  Status sync_folder(const std::string& path) override {
    if (bent_->bug == ClusterBug::kUnsyncedFiles) return Status::ok();
    return inner_->sync_folder(path);
  }
  bool exists(const std::string& path) override { return inner_->exists(path); }
  Result<std::vector<std::string>> list(const std::string& folder) override {
    const bool blind = bent_->bug == ClusterBug::kTermReused && folder.ends_with("/terms");
    if (blind) return std::vector<std::string>();
    return inner_->list(folder);
  }
  Status remove_all(const std::string& path) override { return inner_->remove_all(path); }

 private:
  static bool is_term(const std::string& path) { return path.find("/terms/") != std::string::npos; }

  Files* inner_;
  Bent* bent_;
};

}  // namespace flux
