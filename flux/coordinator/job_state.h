// JobMaster::State: what a JobMaster knows, and its steps, one file per concern:
//   job_members.cc  workers that join, report, leave, die
//   job_servers.cc  servers that do
//   job_suspects.cc what members say of servers that they cannot reach
//   job_asks.cc     questions to the primaries of shards, asked again until all have answered
//   job_places.cc   steps of the planner carried out: promotions, copies, moves, restores
//   job_takeover.cc what servers hold of the job is adopted
//   job_leases.cc   requests held back and answered, acknowledgements, sections, sync rounds
//   job_verdicts.cc batches that are set aside
//   job_opening.cc  the folder read, passes opened
//   job_saving.cc   checkpoints and closing a pass
//   job_ending.cc   evaluation, stopping, totals, the end
//   job_stopping.cc stop conditions of the job file
//   job_operators.cc drain, scale, move
//   job_loads.cc    what workers ask of shards; moves away from hot servers
//   job_health.cc   whether the training is sick, by reports and tests
//   job_status.cc   the snapshot for people
// Private to coordinator/. Everything on one executor; callbacks hold a weak pointer, so that
// nothing runs after the end.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "flux/cluster/block_queue.h"
#include "flux/cluster/lr_policy.h"
#include "flux/cluster/membership.h"
#include "flux/cluster/rebalance.h"
#include "flux/cluster/shard_loads.h"
#include "flux/cluster/shard_places.h"
#include "flux/cluster/suspicions.h"
#include "flux/cluster/sync_rounds.h"
#include "flux/cluster/training_guard.h"
#include "flux/coordinator/checkpointing.h"
#include "flux/coordinator/decision_log.h"
#include "flux/coordinator/job_master.h"
#include "flux/election/election.h"
#include "flux/metrics/metric_set.h"
#include "flux/metrics/progressive_set.h"

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
  void fail(const Status& status);  // nothing once the job ends
  void give_up(const Status& status);
  void tick();
  TimeNs now() const { return executor_->now_ns(); }
  bool ended() const { return phase_ >= Phase::kEnding; }
  JobStatus status() const;
  MetricReport progressive() const;

  // --- members (job_members.cc) ---
  void join_worker(const JoinRequest& request, const std::function<void(Result<JoinReply>)>& done);
  void report_worker(WorkerId worker, const WorkerReport& report,
                     const std::function<void(Result<ReportAnswer>)>& done);
  void leave_worker(const LeaseRequest& last, const WorkerReport& report, const Status& why,
                    const std::function<void(Status)>& done);
  void join_server(const ServerJoin& request,
                   const std::function<void(Result<ServerJoinReply>)>& done);
  void report_server(const ServerReport& report, const std::function<void(Result<bool>)>& done);
  void worker_gone(const std::string& name, uint64_t boot, const std::string& why);
  void server_gone(const std::string& name, uint64_t boot, const std::string& why);
  ClusterMap cluster_map() const;
  void geometry_text(uint64_t hash, const std::function<void(Result<std::string>)>& done);

  // --- leases (job_leases.cc) ---
  void lease(const LeaseRequest& request, LeaseDone done);

  // --- operators (job_operators.cc) ---
  Status drain_node(const std::string& name);
  Status scale(int64_t workers, int64_t servers);
  Status move_shard(ShardId shard, const std::string& server);

  // --- loads (job_loads.cc) ---
  Result<std::string> rebalance(bool dry_run);

 private:
  enum class Phase : uint8_t {
    kJoining,     // servers; what they hold is looked at
    kLoading,     // shards are opened, loaded, repaired until all are served
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
    std::string metrics;  // the last that it told; see WorkerReport
    WorkerReport base;    // of a worker from before a take-over: its first report
    bool has_base = true;
    std::map<uint32_t, uint64_t> health;  // by lane: the number of the last piece that was taken
    std::set<BlockId> ahead;              // leased and not begun, by its last report
    bool leaves = false;                  // it was asked to
    std::map<uint32_t, Slot> slots;       // by lane
    TimeNs asked = 0;                     // its last lease request, or when it joined
    TimeNs rate_time = 0;
    uint64_t rate_examples = 0;
    double rate = 0;
  };
  using ServerDone = std::function<void(Result<ServerJoinReply>)>;
  struct ServerEntry {
    ServerJoin info;
    std::shared_ptr<ServerAdminPort> admin;
    TimeNs seen = 0;
    bool gone = true;
    bool ready = false;  // the job is open there
    bool draining = false;
    bool asked = false;   // for a sign of life
    bool paused = false;  // it gets no shards yet: cluster/suspicions.h
    bool spared = false;  // silent, and waited for
    uint64_t rss_bytes = 0;
    uint64_t differed = 0;  // as it said last
    Holdings held;          // when it came
  };
  struct ServerArrival {  // asked what it holds, before it gets a number
    ServerJoin info;
    std::shared_ptr<ServerAdminPort> admin;
    ServerDone done;
  };
  // One question to the primaries of shards.
  using AskDone = std::function<void(Status, std::function<void()> merge)>;
  using AskVerb = std::function<void(ServerAdminPort*, AdminCall, AskDone)>;
  struct Ask {
    std::string what;
    AskVerb verb;
    Then then;
    bool again = true;  // after kUnavailable, under the places of then
    uint64_t look = 0;  // not 0: given up when looks_ has moved on
    TimeNs since = 0, until = 0, due = 0;
    std::set<ShardId> todo;
    struct Group {
      ServerId server = kNoServer;
      std::vector<ShardId> shards;
    };
    std::map<uint64_t, Group> out;
    uint64_t last_group = 0;
    uint32_t tries = 0;
    Status last;
    bool over = false;
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
  void tell_bad_records(const std::string& whose, const Geometry& geometry);
  CheckpointStore store() const { return CheckpointStore(checkpoint_folder_, files_); }

  // members
  void lose_worker(WorkerId id, bool died, const std::string& why);
  void answer_early();
  bool ready_for(const JoinRequest& request) const;
  void adopt_leases(WorkerId id, const JoinRequest& request);
  void forget_slots(Worker* worker, const Status& why);
  void void_members(const std::vector<SyncRounds::Voided>& voided);
  void log_decision(const Decision& decision);
  void log_member(const char* kind, const std::string& name, uint64_t boot, uint64_t id,
                  const char* why = "");

  // servers
  void arrive(ServerJoin info, ServerDone done);
  void arrived(const std::string& name, uint64_t boot, Result<Holdings> held);
  void seat(ServerArrival arrival, Holdings held);
  Status displaced(const std::string& name) const;
  void reach_standing();
  void ask_standing();
  void ask_for_sign(ServerId id);
  void open_on(ServerId id);
  void open_again(ServerId id, const OpenJob& job, uint32_t tries,
                  const ServerAdminPort::Done& done);
  void opened_on(ServerId id, uint64_t boot, const Status& status);
  void lose_server(ServerId id, const std::string& why);
  void spare_last_replicas();
  void take_suspects(Suspicions::Peer by, const std::vector<ServerId>& named);
  void look_sooner(ServerId id);
  void condemn_suspects();
  void open_paused();
  void check_servers();
  bool waits_for_servers() const;
  void servers_complete_if();
  size_t servers_here() const;
  std::vector<std::string> addresses() const;
  std::string how_to_go_on() const;
  const std::string& server_name(ServerId id) const { return servers_[id].info.name; }
  ServerAdminPort* admin(ServerId i) { return servers_[i].admin.get(); }
  OpenJob open_job_of(ServerId id) const;

  // asks
  void ask_shards(std::string what, std::vector<ShardId> shards, AskVerb verb, Then then,
                  bool again = true, uint64_t look = 0);
  void ask_all(std::string what, AskVerb verb, Then then, bool again = true, uint64_t look = 0);
  // A verb that answers with a Status only.
  using PlainVerb = std::function<void(ServerAdminPort*, AdminCall, ServerAdminPort::Done)>;
  void tell_all(std::string what, PlainVerb verb, Then then, uint64_t look = 0);
  void kick_asks();
  void kick(const std::shared_ptr<Ask>& ask);
  void ask_answered(const std::shared_ptr<Ask>& ask, uint64_t group, const Status& status,
                    const std::function<void()>& merge);
  void drop(const std::shared_ptr<Ask>& ask);
  void ask_over(const std::shared_ptr<Ask>& ask, const Status& status);
  void asks_lost(ServerId server);
  void check_asks();
  std::string ask_waits(const Ask& ask) const;
  AdminCall make_call(const std::vector<ShardId>& shards) const;
  std::vector<ShardId> all_shards() const;
  // AND (or OR, `any`) over all shards.
  void ask_marked(const BlockId& section, bool any,
                  std::function<void(Result<std::vector<uint32_t>>)> then);

  // places
  using Steps = std::vector<PlaceStep>;
  void pump_places();
  void assign_steps(ServerId server, const Steps& steps);
  void seal_steps(ServerId server, const Steps& steps);
  void copy_step(const PlaceStep& step);
  void restore_steps(ServerId server, const Steps& steps);
  struct Restoring {
    ServerId server = kNoServer;
    Steps steps;
    AdminCall call;
    size_t closed = 0;  // passes, when it began
  };
  void restore_assigned(const Restoring& r);
  void restore_marked(const Restoring& r);
  void steps_answered(const Steps& steps, const Result<std::vector<ShardState>>& states);
  void end_steps(const Steps& steps, StepEnd end);
  void place_changed(const PlaceStep& step, const PlaceChange& change);
  void steps_failed(const Steps& steps, const Status& why);
  void check_term(const Status& why, bool fatal = false);
  void served_again();
  void void_again(ShardId shard);
  void recount_if();
  void look_again();
  void loaded_if();
  void loaded();

  // loads
  static constexpr const char* kMovedForLoad = "load";  // Decision::why of such a "move"
  bool places_rest() const;
  LoadedCluster loaded_cluster() const;
  void watch_loads();
  std::string told_move(const LoadMove& move, const char* verb) const;
  void move_for_load(const LoadMove& move);
  void status_of_loads(JobStatus* s) const;

  // take-over
  void adopt();
  void adopt_shard(ShardId shard, const std::vector<std::pair<ServerId, ShardState>>& found);
  uint64_t held_incarnation() const;
  std::vector<const ShardState*> best_held(uint64_t incarnation) const;
  bool known_to_be_newest(const ShardState* best, uint64_t incarnation) const;
  bool waits_without_log() const;
  void check_closed(uint32_t section);
  Status read_closed_cut();
  uint64_t open_geometry(uint32_t pass) const;
  bool was_tested(uint32_t pass) const;

  // leases
  void pump();
  void pump_sync();
  bool answer_one(WorkerId id, Slot* slot);
  bool has_share(WorkerId id, const BlockQueue& queue) const;
  bool lease_or_lend(WorkerId id, BlockQueue* queue, BlockLease* out) const;
  static void answer(Slot* slot, LeaseAnswer answer);
  void answer_all(const LeaseAnswer& what);
  void acknowledge(const std::vector<BatchId>& applied, const std::vector<EvalReport>& evaluated);
  void take_evaluation(const EvalReport& report);
  void begin_section(uint32_t section, const std::vector<uint32_t>& marked);
  void verify_section();
  bool takes_over() const;  // workers of a coordinator before are waited for
  bool leases_wait() const;

  // verdicts
  void skip_poisoned();
  void take_refused(const std::vector<RefusedBatch>& refused);
  void condemn(const BatchId& id, const std::string& why);
  void mark_condemned(const BatchId& id);

  void expire_blocks();
  void lose_idle_members();
  std::string wait_reason() const;

  // opening
  void open_folder();
  Status find_manifest(std::optional<Manifest>* out) const;
  Status still_mine() const;  // asks the disk or etcd: through slowly()
  void folder_opened(Result<std::shared_ptr<Opened>> opened);
  void place_and_open();
  void opened_if(ServerId id);
  void next_pass();
  Result<Geometry> pass_geometry(uint32_t pass, bool reopen, uint64_t adopted,
                                 std::string* note) const;
  void pass_read(Result<Geometry> geometry);
  void check_epochs(uint16_t phase);
  void mark_decided();
  void find_section(uint32_t section);
  void train_from(uint32_t section, const std::vector<uint32_t>& marked);
  Result<Geometry> frozen_geometry(uint32_t pass, std::string* note) const;
  Status forget() const;
  std::vector<BatchId> decided(Verdict verdict) const;  // of the open pass
  bool is_decided(const BatchId& id) const;             // to be skipped

  // saving
  void maybe_checkpoint();
  void save(bool closing, Then then);
  void write_manifest(uint64_t number, bool closing, uint64_t point, std::vector<SavedShard> saved,
                      Then then);
  void abandon(uint64_t number, const Status& why, const Then& then);
  void close_pass();
  bool wait_for_disk(const Status& why);
  void close_again(const Status& why, TimeNs later);
  void pass_closed();
  uint64_t examples_by_hints() const;

  // ending
  void evaluate();
  void begin_test(uint16_t phase);
  void evaluated_all();
  void phase_tested(MetricReport report);
  void tested(MetricReport report);
  void test_failed(const Status& why);
  void after_pass();
  void drain();
  void drained();
  void give_up_waiting();
  void finish(bool complete);
  void left();
  bool has_gaps() const;
  void count_open(uint32_t section);
  void ask_totals();
  void add_totals(const JobTotals& totals);
  void save_last();
  void end(const Status& status);
  uint64_t examples_in(const std::vector<uint32_t>& masks) const;
  uint64_t closed_examples() const;
  uint64_t examples_before(const BlockId& id) const;

  // stop conditions
  uint64_t steps_by_hints() const;
  std::string limit_reached() const;  // which, for people; "": none
  std::string converged() const;
  bool stop_if_due();
  void replay_looks();
  void look_at_test(const MetricReport& report, Decision* decision);
  void look_at_training(uint32_t section);

  // status
  // Of workers together; the AUC is their mean, by examples.
  static void add_report(WorkerReport* sum, const WorkerReport& report);
  static WorkerReport since(const WorkerReport& report, const WorkerReport& base);
  WorkerReport sum_reports() const;
  void status_of_servers(JobStatus* s) const;
  void status_of_phase(const WorkerReport& sum, JobStatus* s) const;
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
  std::optional<Manifest> restored_;  // what this life began with
  std::optional<Manifest> newest_;    // what lost shards are restored from
  std::vector<Decision> decisions_;
  uint64_t term_ = 0;
  uint64_t incarnation_ = 0;
  std::unique_ptr<Election> own_election_;
  Election* election_ = nullptr;
  std::string resumed_from_, last_checkpoint_;
  TimeNs checkpoint_time_ = 0;

  // members
  Membership workers_members_;
  std::map<WorkerId, Worker> workers_;
  std::vector<EarlyJoin> early_;
  TimeNs no_worker_since_ = 0;
  Membership servers_members_;
  Suspicions suspicions_;
  std::vector<ServerEntry> servers_;  // index = ServerId
  std::vector<ServerArrival> arrivals_;
  std::vector<std::pair<ServerJoin, ServerDone>> early_servers_;  // before the folder is read
  TimeNs no_server_since_ = 0, unserved_since_ = 0;
  uint64_t standing_boot_ = 0;
  TimeNs standing_due_ = 0;
  std::optional<ShardPlaces> places_;
  bool places_on_ = false;      // steps are carried out
  std::set<ServerId> opening_;  // at a fresh start: asked to open the job
  TimeNs places_due_ = 0;       // a turn is posted for then
  std::optional<ShardLoads> loads_;
  std::optional<Rebalancer> rebalancer_;
  TimeNs window_until_ = 0;
  bool window_rests_ = false;       // nothing has moved in it so far
  std::set<ShardId> fixed_shards_;  // that operators put where they are
  uint64_t rebalanced_ = 0;
  std::vector<std::shared_ptr<Ask>> asks_;
  uint64_t epoch_changes_ = 0;
  uint64_t servers_lost_ = 0, replicas_differed_ = 0;
  std::vector<FailoverStatus> failovers_;
  uint64_t failovers_all_ = 0;
  double failover_max_s_ = 0;
  // Rises with everything that may have lost something that shards said they have.
  uint64_t losses_ = 0;
  bool recount_ = false;
  std::set<ShardId> lost_since_save_;
  uint32_t close_tries_ = 0;               // to close a pass of which a shard lacked something
  std::optional<TimeNs> unwritten_since_;  // the end of the pass could not be written
  std::vector<SyncRounds::Voided> voids_;  // the latest, for primaries that were not there

  // take-over
  bool adopted_ = false;
  bool log_lost_ = false;
  std::set<std::string> servers_expected_, workers_expected_;  // names, from the log
  TimeNs takeover_until_ = 0;                                  // leases wait for who holds some
  std::optional<Geometry> closed_cut_;

  // operators
  RolesWanted wanted_;
  void tell_supervisor();
  void apply_scale();
  void want_fewer(int64_t* wanted);
  Status drain_server(ServerId id);
  void ask_to_leave(Worker* worker);
  void member_lost(const std::string& name, uint32_t pid);
  void member_here(const std::string& name);
  void member_leaves(const JoinRequest& who);

  WorkerReport left_;  // sums over workers that are gone
  ProgressiveSet left_metrics_;
  void take_report(Worker* worker, const WorkerReport& report);
  static constexpr size_t kHealthLanesMax = 1024;  // of one worker
  TrainingGuard guard_{plan_.phases};
  void take_health(Worker* worker, const std::vector<HealthPiece>& pieces);
  void judge_test(const MetricReport& report);
  void status_of_health(JobStatus* s) const;
  uint32_t phase_at_hand_ = 0;  // in which the last reports had more examples than before
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
  // Blocks of a round given to workers that had just been told to wait.
  std::map<std::pair<WorkerId, uint32_t>, LeaseAnswer> pending_rounds_;
  uint64_t looks_ = 0;      // questions about sections: an older one's answer counts no more
  bool verifying_ = false;  // the shards are asked about the end of a section, or the next one
  bool hold_ = false;       // no leases while a deterministic checkpoint waits
  uint64_t reissued_ = 0;
  uint64_t batches_skipped_ = 0;
  std::set<BatchId> absolved_;  // condemned once, but some shard had them
  std::set<BatchId> deciding_;  // a verdict is being logged
  std::optional<LrPolicy> lr_;
  LrPolicyState lr_logged_;
  TimeNs lr_logged_at_ = 0;
  void count_workers();
  void log_lr();
  std::vector<ClosedPass> closed_;
  TimeNs train_start_ = 0;
  TimeNs train_ns_ = 0;
  uint64_t base_examples_ = 0;  // of the model when this run's training began
  uint64_t total_examples_ = 0;

  // saving
  bool saving_ = false;
  uint64_t committed_ = 0;  // number of the last checkpoint that was
  // Of the checkpoint begun last. Servers answer a repeated save of a number from memory, so one
  // that failed is not tried again under its number.
  uint64_t last_number_ = 0;
  std::vector<std::function<void()>> after_save_;
  TimeNs next_checkpoint_ = 0;

  // evaluation
  std::optional<Geometry> test_;
  std::optional<BlockQueue> test_queue_;
  std::vector<uint32_t> test_reported_;
  std::optional<MetricSet> metrics_;
  uint16_t test_phase_ = 0;              // whose network predicts
  std::optional<MetricReport> reports_;  // of the phases before it
  std::optional<MetricReport> tested_;   // the last one, of all phases
  Status evaluation_;

  // stop conditions
  StopRule stop_rule_{plan_.stop};
  uint64_t best_ = 0;           // number of the best checkpoint; 0: none
  WorkerReport looked_;         // sums at the last look
  std::string stopped_before_;  // why, if the last life of the job was

  JobOutcome outcome_;
  bool counting_ = false;  // totals are asked for
};

}  // namespace flux
