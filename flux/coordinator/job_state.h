// JobMaster::State: what a JobMaster knows, and its steps, one file per concern:
//   job_members.cc  workers and servers that join, report, leave, die
//   job_leases.cc   requests held back and answered, acknowledgements, sections, sync rounds
//   job_opening.cc  servers placed, shards loaded, passes opened
//   job_saving.cc   checkpoints and closing a pass
//   job_ending.cc   evaluation, stopping, totals, the end
//   job_status.cc   the snapshot for people
// Private to coordinator/. Everything on one executor; callbacks hold a weak pointer, so that
// nothing runs after the end.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "flux/cluster/block_queue.h"
#include "flux/cluster/membership.h"
#include "flux/cluster/shard_map.h"
#include "flux/cluster/sync_rounds.h"
#include "flux/coordinator/checkpointing.h"
#include "flux/coordinator/decision_log.h"
#include "flux/coordinator/fan_out.h"
#include "flux/coordinator/job_master.h"
#include "flux/nn/auc.h"

namespace flux {

class JobMaster::State : public std::enable_shared_from_this<JobMaster::State> {
 public:
  using Then = std::function<void(Status)>;
  using LeaseDone = std::function<void(Result<LeaseAnswer>)>;

  State(JobPlan plan, JobMasterOptions options, Executor* executor, Offload* offload, Files* files,
        Reach reach, JobEvents* events);

  // --- life ---
  void start();
  void stop(const std::string& why);
  void fail(const Status& status);
  void tick();
  TimeNs now() const { return executor_->now_ns(); }
  bool ended() const { return phase_ >= Phase::kEnding; }
  JobStatus status() const;

  // --- members (job_members.cc) ---
  void join_worker(const JoinRequest& request, const std::function<void(Result<JoinReply>)>& done);
  void report_worker(WorkerId worker, const WorkerReport& report,
                     const std::function<void(Result<ReportAnswer>)>& done);
  void leave_worker(const LeaseRequest& last, const WorkerReport& report, const Status& why,
                    const std::function<void(Status)>& done);
  void join_server(const ServerJoin& request,
                   const std::function<void(Result<ServerJoinReply>)>& done);
  void report_server(uint32_t server, uint64_t boot, const std::function<void(Result<bool>)>& done);
  void worker_gone(const std::string& name, uint64_t boot, const std::string& why);
  void server_gone(const std::string& name, uint64_t boot, const std::string& why);
  ClusterMap cluster_map() const;
  void geometry_text(uint64_t hash, const std::function<void(Result<std::string>)>& done);

  // --- leases (job_leases.cc) ---
  void lease(const LeaseRequest& request, LeaseDone done);

 private:
  enum class Phase : uint8_t {
    kJoining,     // servers
    kLoading,     // shards
    kReading,     // the data of a pass
    kTraining,    // a section
    kClosing,     // a pass
    kEvaluating,  //
    kDraining,    // stopping: workers finish what is in flight
    kEnding,      // totals
    kEnded,
  };
  struct Slot {  // one lane's last request
    uint64_t seq = 0;
    bool answered = true;
    LeaseAnswer answer;
    LeaseDone done;
    TimeNs since = 0;
  };
  struct Worker {
    JoinRequest info;
    WorkerReport report;
    std::map<uint32_t, Slot> slots;  // by lane
    TimeNs asked = 0;                // its last lease request, or when it joined
    TimeNs rate_time = 0;
    uint64_t rate_examples = 0;
    double rate = 0;
  };
  struct ServerEntry {
    ServerJoin info;
    std::shared_ptr<ServerAdminPort> admin;
    TimeNs seen = 0;
    bool gone = false;   // while servers join: its place is free
    bool asked = false;  // a standing server: a sign of life is under way
  };
  struct EarlyJoin {
    JoinRequest request;
    std::function<void(Result<JoinReply>)> done;
    TimeNs since = 0;
  };
  struct Opened;

  // `f` with this object held weakly: it is skipped once the object is gone.
  template <typename F>
  auto guard(F f) {
    return [weak = weak_from_this(), f = std::move(f)](auto&&... args) {
      if (const auto self = weak.lock()) f(std::forward<decltype(args)>(args)...);
    };
  }
  // Offloads `work`, then goes on with its result.
  template <typename T>
  void slowly(std::function<Result<T>()> work, std::function<void(Result<T>)> then) {
    auto result = std::make_shared<std::optional<Result<T>>>();
    offload_->run([result, work = std::move(work)] { result->emplace(work()); },
                  guard([result, then = std::move(then)] { then(std::move(**result)); }));
  }
  void say(const std::string& line) { events_->say(line); }
  bool sync() const { return plan_.mode == "sync"; }
  std::string in_output(std::string_view name) const;
  CheckpointStore store() const { return CheckpointStore(checkpoint_folder_, files_); }

  // members
  void lose_worker(WorkerId id, bool died, const std::string& why);
  void answer_early();
  void forget_slots(Worker* worker, const Status& why);
  void servers_complete_if();
  void check_servers();
  void free_place(const std::string& name, const std::string& why);
  size_t servers_here() const;
  std::string how_to_go_on() const;
  std::vector<std::string> server_names() const;
  ServerAdminPort* admin(size_t i) { return servers_[i].admin.get(); }
  void call_all(const std::function<void(size_t, ServerAdminPort::Done)>& ask, Then then);
  // AND (or OR, `any`) over all servers.
  void ask_marked(const BlockId& section, bool any,
                  std::function<void(Result<std::vector<uint32_t>>)> then);

  // leases
  void pump();
  void pump_sync();
  bool answer_one(WorkerId id, Slot* slot);
  static void answer(Slot* slot, LeaseAnswer answer);
  void answer_all(const LeaseAnswer& what);
  void acknowledge(const std::vector<BatchId>& applied, const std::vector<EvalReport>& evaluated);
  void take_evaluation(const EvalReport& report);
  void begin_section(uint32_t section, const std::vector<uint32_t>& marked);
  void verify_section();
  void skip_poisoned();
  void condemn(const BatchId& id);
  void mark_condemned(const BatchId& id);
  void log_verdict(const BatchId& id, const std::string& why, std::function<void()> then);
  void expire_blocks();
  void lose_idle_members();
  std::string wait_reason() const;

  // opening
  void open_folder();
  Status find_manifest(std::optional<Manifest>* out) const;
  Status still_mine() const;  // reads the disk: through slowly()
  void folder_opened(Result<std::shared_ptr<Opened>> opened);
  void place_and_open();
  void load_shards();
  void next_pass();
  void pass_read(Result<Geometry> geometry);
  void pass_opened();
  void check_epochs(uint16_t phase);
  void mark_decided(size_t i);
  void find_section(uint32_t section);
  void train_from(uint32_t section, const std::vector<uint32_t>& marked);
  Result<Geometry> frozen_geometry(uint32_t pass, std::string* note) const;
  Status forget() const;

  // saving
  void maybe_checkpoint();
  void save(bool closing, Then then);
  void write_manifest(uint64_t number, bool closing, uint64_t point, std::vector<SavedShard> saved,
                      Then then);
  void abandon(uint64_t number, const Status& why, const Then& then);
  void close_pass();
  uint64_t examples_by_hints() const;

  // ending
  void evaluate();
  void begin_test(Geometry test);
  void evaluated_all();
  void test_failed(const Status& why);
  void after_pass();
  void drain();
  void drained();
  void give_up_waiting();
  void finish(bool complete);
  void left();
  void count_open(uint32_t section, uint64_t all, uint64_t any);
  void ask_totals();
  void end(const Status& status);
  uint64_t examples_in(const std::vector<uint32_t>& masks) const;
  uint64_t closed_examples() const;

  // status
  // Of workers together; the AUC is their mean, by examples.
  static void add_report(WorkerReport* sum, const WorkerReport& report);
  WorkerReport sum_reports() const;
  void waits_now(std::vector<WaitStatus>* out) const;

  JobPlan plan_;
  JobMasterOptions options_;
  Executor* executor_;
  Offload* offload_;
  Files* files_;
  Reach reach_;
  JobEvents* events_;
  const std::string checkpoint_folder_;

  Phase phase_ = Phase::kJoining;
  TimeNs started_ = 0;
  TimeNs phase_since_ = 0;
  void set_phase(Phase phase) {
    phase_ = phase;
    phase_since_ = now();
  }
  bool stopping_ = false;
  std::string stop_reason_;
  std::atomic<bool> stop_scan_{false};
  Status failure_;

  // what the folder had
  bool folder_open_ = false;
  std::optional<Manifest> restored_;
  std::vector<Decision> decisions_;
  ShardEpoch epoch_;
  std::string resumed_from_, last_checkpoint_;
  TimeNs checkpoint_time_ = 0;

  // members
  Membership workers_members_;
  std::map<WorkerId, Worker> workers_;
  std::vector<EarlyJoin> early_;
  TimeNs no_worker_since_ = 0;
  Membership servers_members_;
  std::vector<ServerEntry> servers_;  // index = ServerId
  std::optional<ShardMap> map_;
  bool opened_ = false;  // every server has the job open
  WorkerReport left_;    // sums over workers that are gone
  std::vector<WorkerStatus> gone_;
  uint64_t workers_lost_ = 0;

  // the pass
  uint32_t pass_ = 0;
  bool pass_open_ = false;
  std::optional<Geometry> geometry_;
  std::map<uint64_t, std::string> geometry_texts_;
  uint32_t section_ = 0;
  std::optional<BlockQueue> queue_;
  std::optional<SyncRounds> rounds_;
  // Blocks of a round given to lanes that had just been told to wait.
  std::map<std::pair<WorkerId, uint32_t>, LeaseAnswer> pending_rounds_;
  bool verifying_ = false;  // the shards are asked about the end of a section, or the next one
  bool hold_ = false;       // no leases while a deterministic checkpoint waits
  uint64_t reissued_ = 0;
  uint64_t batches_skipped_ = 0;
  std::vector<ClosedPass> closed_;
  TimeNs train_start_ = 0;
  TimeNs train_ns_ = 0;
  uint64_t base_examples_ = 0;  // of the model when this run's training began
  uint64_t total_examples_ = 0;

  // saving
  bool saving_ = false;
  // Of the checkpoint begun last. Servers answer a repeated save of a number from memory, so one
  // that failed is not tried again under its number.
  uint64_t last_number_ = 0;
  std::vector<std::function<void()>> after_save_;
  TimeNs next_checkpoint_ = 0;

  // evaluation
  std::optional<Geometry> test_;
  std::optional<BlockQueue> test_queue_;
  std::vector<uint32_t> test_reported_;
  std::optional<BinaryMetrics> metrics_;
  std::optional<double> auc_, logloss_;
  Status evaluation_;

  JobOutcome outcome_;
  bool counting_ = false;  // totals are asked for
};

}  // namespace flux
