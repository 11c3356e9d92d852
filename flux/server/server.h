// Server: the role that holds replicas of shards: rows, dense ranges, and the ledger beside them.
//
// Every shard of the job has a slot with one lock; replicas (primary, backup, learner) come and go
// by assign(), install() and load(). A push judges, applies and commits inside the lock, so rows
// and ledger move as one, and is then forwarded to the followers (replicator.h). One file per verb:
// pull.cc, push.cc, push_sync.cc, follow.cc (replicate), install.cc, copy.cc, assign.cc, passes.cc
// (open, mark, close, progress), save.cc, load.cc, compare.cc (rows of backups).
// docs/design/replication.md is the picture. Threads: every public method is safe from any thread
// once the server is built, except init_dense() and what says so. `done` is never called with a
// lock held, perhaps inside the call. Time and turns come from ServerOptions::executor; there is no
// thread inside. Failure: Status and per-shard answers; nothing in a request can break the server.
#pragma once

#include <atomic>
#include <bit>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "flux/api/dense_shards.h"
#include "flux/api/model_shape.h"
#include "flux/api/replica_port.h"
#include "flux/api/saved_shard.h"
#include "flux/api/server.h"
#include "flux/api/server_admin.h"
#include "flux/base/executor.h"
#include "flux/base/hash.h"
#include "flux/base/status.h"
#include "flux/checkpoint/shard_file.h"
#include "flux/optimizer/optimizer.h"
#include "flux/protocol/shard_replica.h"
#include "flux/server/age_clock.h"
#include "flux/server/replicator.h"
#include "flux/server/shard_slot.h"
#include "flux/storage/files.h"

namespace flux {

// A payload's hash with the scale of its learning rate; nothing changes where that is 1.
inline uint64_t with_lr_scale(uint64_t hash, float scale) {
  return scale == 1 ? hash : hash_pair(hash, std::bit_cast<uint32_t>(scale));
}

struct ServerOptions {
  uint32_t shards = 256;  // sparse shards, 1..65536
  std::vector<TableOptions> tables;
  uint32_t groups = 1;                  // of keys; TableOptions::group says whose rows a table has
  uint64_t parameters = 0;              // floats in the flat dense vector
  std::vector<PhaseShape> phases = {};  // see api/model_shape.h
  // How they are updated: `dense_ranges`, or all by one rule if there are none.
  OptimizerOptions dense_optimizer;
  std::vector<DenseRange> dense_ranges = {};
  uint64_t incarnation = 0;
  // Replicas that begin here in the initial state, complete. Unset: every shard, as primary under
  // `epoch`, without a backup. Dense shards are numbered after the sparse ones.
  std::optional<Assignments> places = {};
  ShardEpoch epoch;
  ServerId self = kNoServer;
  Files* files = nullptr;  // where save() writes; null: the machine's
  // Threads that write or read shard files; they all call `files`.
  uint32_t file_threads = 1;
  ChainPolicy chain = {};                       // when a shard is saved whole
  size_t slice_bytes = ShardCopy::kSliceBytes;  // copied under a shard's lock at a time, about
  // Gradients that may wait for the rest of their sync step; beyond it pushes are put off.
  uint64_t sync_bytes_max = 2ULL << 30;

  // Replication. Without an executor nothing is sent again, and leases never end; it must outlive
  // the server, and post() must be safe from any thread that calls the server.
  Executor* executor = nullptr;
  ReachReplica reach = {};
  uint64_t seed = 0;                        // of receipts and copies; 0: drawn
  TimeNs lease_ns = 10 * kSecond;           // without a word from coordinator or backup
  TimeNs admin_deadline_ns = 10 * kSecond;  // of a verb that waits for replication
  uint64_t forward_bytes_max = 256ULL << 20;
  std::function<void(const std::string&)> log = {};  // what a person should know; any thread
};

struct ServerTotals {
  uint64_t rows = 0;
  std::vector<uint64_t> occurrences;  // by table: sum of the integer counters of its rows
  uint64_t memory_bytes = 0;
  std::vector<DenseExamples> dense;  // by phase
  uint64_t pulls = 0, pushes = 0;    // requests served
  // Shards' answers to pushes: had it before; nothing applied for another reason.
  uint64_t duplicates = 0, refused = 0;
};

class SyncMerger;  // server/sync_merger.h
class PourBatch;   // server/pour_batch.h

class Server final : public ServerPort,
                     public ReplicaPort,
                     private FollowerBook,
                     public std::enable_shared_from_this<Server> {
 public:
  using Done = std::function<void(Status)>;
  using States = std::function<void(Result<std::vector<ShardState>>)>;

  static Result<std::shared_ptr<Server>> create(const ServerOptions& options);
  ~Server() override;

  // Verbs of workers (api/server.h).
  void pull(const PullRequest& request, std::function<void(const PullReply&)> done) override;
  void push(const PushRequest& request, std::function<void(const PushReply&)> done) override;
  void confirm(uint64_t incarnation, uint64_t receipt, std::function<void(Status)> done) override;

  // Verbs of primaries (api/replica_port.h).
  void replicate(const ReplicateRequest& request,
                 std::function<void(const ReplicateReply&)> done) override;
  void install(const InstallRequest& request, std::function<void(Status)> done) override;

  // Verbs of the coordinator (api/server_admin.h has their meaning). Incarnation and term are the
  // caller's to check (ServerJobs::admit); shards and epochs are checked here.
  Result<std::vector<ShardState>> assign(const Assignments& places);
  Result<std::vector<ShardState>> seal(const AdminCall& call);
  void copy(const AdminCall& call, ServerId target, const std::string& address, States done);
  Status load(const AdminCall& call, const LoadJob& load);
  void open_pass(const AdminCall& call, uint32_t pass, uint64_t geometry, Done done);
  void close_below(const AdminCall& call, uint32_t pass, Done done);
  // For each block the batches that all (`any`: at least one) of the shards have.
  Result<std::vector<uint32_t>> marked(const AdminCall& call, const BlockId& section,
                                       uint32_t blocks, bool any) const;
  // The same, answered when all of it is replicated.
  void marked(const AdminCall& call, const BlockId& section, uint32_t blocks, bool any,
              std::function<void(Result<std::vector<uint32_t>>)> done);
  // kStale names a batch that has another verdict somewhere (nothing is marked then, unless it came
  // by in between).
  void mark(const AdminCall& call, uint64_t geometry, std::span<const BatchId> ids, Verdict verdict,
            Done done);
  Status void_member(const AdminCall& call, uint64_t round, const BlockId& block);
  // Each shard as it is at its own moment, whole or as an increment (server/save_plan.h).
  Result<std::vector<SavedShard>> save(const AdminCall& call, const std::string& folder,
                                       uint64_t number, uint64_t committed);
  // Job, term and places of the holdings; the rest is for whoever knows it.
  Holdings holdings() const;

  // Every shard that is primary here, under its epoch: what a coordinator would name.
  AdminCall primaries() const;
  // The coordinator lives: leases go on.
  void heard_coordinator();
  // Its number among the servers of the job, which a coordinator that takes over may change.
  ServerId self() const { return replicator_.self(); }
  void set_self(ServerId self) { replicator_.set_self(self); }
  // Backups that have not answered for a while.
  std::vector<ServerId> suspects() { return replicator_.suspects(); }
  // What workers asked of each shard since the job was opened here; waits for no lock.
  std::vector<ShardWork> work() const;
  // Primaries of shards that are backed up here and not heard for a while (they say something every
  // tenth of the lease). Never waits: a shard that somebody works on is left out.
  std::vector<ServerId> silent() const;
  // Serves nothing more: pushes that wait are answered kNotServing, receipts are void.
  void close();
  // What sync steps wait for, for people; empty: nothing. One shard stands for all.
  std::string sync_waits() const;

  // Before training. The whole flat vector; the server keeps it for replicas that begin later.
  void init_dense(std::span<const float> parameters);
  // Before training, without a coordinator: puts a primary into the state of a saved shard.
  Status load(const ShardImage& image);

  // Shards of the job, here or elsewhere.
  uint32_t shard_count() const { return static_cast<uint32_t>(slots_.size()); }
  uint32_t sparse_shards() const { return options_.shards; }
  const ModelShape& shape() const { return shape_; }
  const ServerOptions& options() const { return options_; }
  ShardState state(ShardId shard) const;
  // Of the named shards, whoever serves them; not named: of all replicas that are primary.
  ServerTotals totals() const { return totals(primaries().shards); }
  ServerTotals totals(std::span<const ShardId> shards) const;
  // Order-free hash of everything a model is made of; those of different shards add up.
  uint64_t content_hash() const { return content_hash(primaries().shards); }
  uint64_t content_hash(std::span<const ShardId> shards) const;
  // Calls visit(key, count) for every row of the first table of these shards.
  void for_each_row(std::span<const ShardId> shards,
                    const std::function<void(Key, uint32_t)>& visit) const;
  // For audits: a shard as it is now, rows and ledger of the same moment; or its protocol state
  // alone (of a shard that is not here: role kNone).
  ShardImage image(ShardId shard) const;
  ShardReplica replica(ShardId shard) const;
  // Replicas that were dropped because their history differed from the primary's.
  uint64_t diverged() const { return diverged_.load(std::memory_order_relaxed); }
  // Backups here whose rows were compared with their primary's.
  uint64_t compared() const { return compared_.load(std::memory_order_relaxed); }
  // Forwards that are not acknowledged, and their bytes.
  size_t forwards_open() const { return replicator_.open(); }
  uint64_t forward_bytes() const { return replicator_.bytes_in_flight(); }
  // Whether the shard is served here now, for pulls at least.
  bool serves(ShardId shard) const;
  // kUnavailable unless every named shard is primary here under its epoch (and not sealed, if it is
  // to change).
  Status check_call(const AdminCall& call, bool changes) const;

 private:
  class Copy;  // copy.cc
  explicit Server(const ServerOptions& options);
  static Status check_options(const ServerOptions& options);
  void say(const std::string& line) const {
    if (options_.log) options_.log(line);
  }

  // server.cc
  void build_slots();
  uint64_t dense_begin(ShardId id) const { return shape_.dense_begin(id - options_.shards); }
  uint64_t dense_size(ShardId id) const { return dense_begin(id + 1) - dense_begin(id); }
  ShardRows make_rows(ShardId id) const;  // in the initial state
  bool is_dense(ShardId id) const { return id >= options_.shards; }
  // By table: floats per row in this sparse shard that a phase has; 0: none there.
  const std::vector<uint32_t>& widths(uint32_t phase, ShardId id) const {
    return widths_[(shape_.phases.empty() ? 0 : phase) * shape_.groups + shape_.group_of(id)];
  }
  // Where the row of the key at this position begins, in what a request has of table t.
  size_t row_at(const ShardedKeys& keys, size_t t, uint32_t position) const {
    return size_t{position - keys.begin[shape_.table_shards(t).begin]} * shape_.dims[t];
  }
  bool is_serving(const ShardSlot& slot, TimeNs now) const;  // the slot's lock is held
  void give_up_waits();
  void tick();
  void arm_tick();
  void probe_quiet_backups();
  void drop_silent_learners();

  // request.cc: whether the part of a request that concerns one shard can be used.
  bool range_is_good(const ShardedKeys& keys, ShardId shard) const;
  bool keys_are_good(const ShardedKeys& keys, ShardId shard) const;
  bool gradient_is_good(const PushRequest& request, ShardId shard) const;
  Status check_pull(const PullRequest& request) const;
  bool phase_is_good(const PushClaim& claim) const;
  // Null: it has nothing for this shard.
  const float* dense_of(const PushRequest& request, ShardId id) const;
  uint64_t gradient_bytes(const PushRequest& request, ShardId id) const;
  uint64_t payload_hash(const PushRequest& request, ShardId id) const;
  // The same request in memory that lives as long as it does.
  PushRequest with_memory(const PushRequest& request) const;

  // pull.cc
  void prefetch_ahead(const ShardedKeys& keys, std::span<const ShardId> shards, size_t i,
                      uint32_t phase) const;
  Status pull_one(const PullRequest& request, ShardId id, TimeNs now) const;
  AgeMark age_mark(const PullRequest& request, TimeNs now);

  // share.cc: calls one(i) for each of the shards that are asked for; by the team if there is one,
  // then the order is not theirs.
  struct Asked {
    const ShardedKeys& keys;
    std::span<const ShardId> shards;
    uint32_t phase;
  };
  void for_shards(Team* team, const Asked& asked, const std::function<void(size_t i)>& one) const;
  std::vector<uint32_t> cut_shards(const Asked& asked, uint32_t members) const;

  // push.cc
  std::optional<Answer> refuse(const PushRequest& request, ShardId id) const;
  // Without an outbox: nothing, and no answer, if the shard has followers.
  std::optional<ShardAnswer> push_one(const PushRequest& request, size_t i, TimeNs now,
                                      Outbox* outbox);
  // Changes the rows; the slot's lock is held.
  void apply_rows(ShardSlot* slot, const PushRequest& request, ShardId id) const;
  uint64_t served_by(const PushRequest& request, ShardId id) const;
  // The last operation goes to the followers; the slot's lock is held.
  void forward_last(ShardSlot* slot, uint64_t bytes, Outbox* outbox);

  // push_sync.cc
  struct SyncPush;
  using SyncPushes = std::vector<std::shared_ptr<SyncPush>>;
  using Replies = std::vector<SyncPour::Reply>;
  void push_sync(const PushRequest& request, std::function<void(const PushReply&)> done);
  void push_sync_shard(const std::shared_ptr<SyncPush>& push, size_t i, TimeNs now,
                       PourBatch* batch, Replies* answers);
  static void note_backup(const ShardSlot& slot, const SyncPour::Reply& reply);
  // Pours every step that is complete; the slot's lock is held. The answers are to be settled
  // without it.
  void pour_all(ShardSlot* slot, PourBatch* batch, Replies* answers);
  uint64_t apply_pour(ShardSlot* slot, const SyncPour& pour, PourBatch* batch);
  // Puts an answer into its push; one that has all of them is added to `finished`.
  static void settle(const SyncPour::Reply& reply, SyncPushes* finished);
  void settle_all(const Replies& answers, PourBatch* batch);
  void finish(const SyncPushes& finished);
  void count_answers(const PushReply& reply);
  // Changes each named shard inside its lock, then pours what that completed.
  void change_shards(std::span<const ShardId> shards,
                     const std::function<void(ShardSlot*, Replies*)>& change);

  // passes.cc
  Status check_primary(const ShardSlot& slot, ShardEpoch epoch, bool changes, TimeNs now) const;
  Result<std::vector<uint32_t>> marked_now(const AdminCall& call, const BlockId& section,
                                           uint32_t blocks, bool any, Outbox* heads) const;
  Status check_marks(const AdminCall& call, PushClaim claim, std::span<const BatchId> ids) const;
  // Changes the log of each named shard and forwards that; false: nothing was done.
  template <typename Change>
  bool change_logs(const AdminCall& call, ReplicateRequest request, const Change& change,
                   Done done);
  void answer_when_replicated(const ReceiptPtr& receipt, Done done);

  // follow.cc
  struct Ended {  // what was answered while a lock was held
    std::vector<std::shared_ptr<Incoming>> list;
  };
  Status check_forward(const ReplicateRequest& request) const;
  // With the slot's lock held; kHave also if it was applied now. `hash` of the payload, if known.
  FollowAnswer follow(ShardSlot* slot, const ReplicateRequest& request, size_t i,
                      const uint64_t* hash);
  Status apply_forwarded(ShardSlot* slot, const ReplicateRequest& request, size_t i,
                         const uint64_t* hash) const;
  // False: there is no room.
  bool hold(ShardSlot* slot, const std::shared_ptr<Incoming>& from, size_t place);
  // Goes on with what was held back; the slot's lock is held.
  void drain(ShardSlot* slot, Ended* ended);
  void tell_ended(Ended* ended);
  void release_held(const std::shared_ptr<Incoming>& from, Ended* ended);
  void drop_replica(ShardSlot* slot);
  void drop_held();
  void diverge(ShardSlot* slot, const std::string& what);

  // compare.cc
  void compare_soon(std::span<const ShardId> shards);
  void compare_one();
  FollowAnswer compare_here(ShardSlot* slot, uint64_t content);  // the slot's lock is held
  uint64_t content_of(const ShardSlot& slot) const;              // the same

  // install.cc
  Status check_install(const ShardSlot& slot, const InstallRequest& request) const;
  Status take_part(ShardSlot* slot, const InstallRequest& request,
                   std::unique_ptr<Installing>* whole);
  Status finish_install(const InstallRequest& request, const Installing& whole);

  // assign.cc
  ShardState state_of(const ShardSlot& slot) const;  // the slot's lock is held
  struct Changes;
  void assign_one(const ShardAssignment& wish, const PeerPtr& backup, Changes* changes);
  bool may_take(const ShardSlot& slot, const ShardAssignment& wish) const;
  void take_role(ShardSlot* slot, const ShardAssignment& wish, Changes* changes);
  void set_backup(ShardSlot* slot, const PeerPtr& peer, Changes* changes);
  void lose_followers(ShardSlot* slot, Changes* changes);
  void settle_changes(Changes* changes);

  // copy.cc
  Result<std::string> begin_copy(ShardId shard, ShardEpoch epoch, const PeerPtr& target,
                                 uint32_t* link, uint64_t* op);
  Status catch_up(ShardId shard, uint32_t link, Done done);
  void begin_copies();
  void end_copy(const std::shared_ptr<Copy>& copy, const Status& status);

  // load.cc and save.cc
  Status fill_rows(const ShardImage& image, ShardId id, ShardRows* rows) const;
  Status load_one(const LoadJob& load, const ShardToLoad& part, ShardEpoch epoch);
  struct SaveJob;
  Result<SavedShard> save_one(const SaveJob& job, ShardId id, ShardEpoch epoch);
  ShardParts parts_of(ShardSlot* slot) const;  // the slot's lock is held
  ShardImage image_of(ShardSlot* slot) const { return copy_whole(parts_of(slot)); }

  // FollowerBook
  bool is_live(ShardId shard, uint32_t link, ShardEpoch* epoch) override;
  bool acknowledge(ShardId shard, uint32_t link, uint64_t op, TimeNs now) override;
  void superseded(ShardId shard, uint32_t link, ShardEpoch later) override;

  ServerOptions options_;
  const ModelShape shape_;
  std::vector<std::unique_ptr<const Optimizer>> table_rules_;
  std::shared_ptr<const DenseRules> dense_rules_;
  std::vector<std::shared_ptr<RowArena>> arenas_;
  std::vector<std::vector<uint32_t>> widths_;  // by phase and group: ModelShape::widths()
  std::vector<float> initial_dense_;
  mutable std::vector<std::unique_ptr<ShardSlot>> slots_;  // by ShardId
  Replicator replicator_;
  AgeClock age_clock_;
  mutable std::atomic<uint64_t> pulls_{0}, pushes_{0};
  std::atomic<uint64_t> duplicates_{0}, refused_{0};
  std::atomic<uint64_t> sync_bytes_{0};  // that wait
  std::atomic<uint64_t> diverged_{0}, compared_{0};
  std::atomic<TimeNs> coordinator_ns_{0};  // when it was heard
  std::atomic<bool> closed_{false};

  struct AdminWait {
    ReceiptPtr receipt;
    TimeNs deadline_ns = 0;
  };
  std::mutex mutex_;
  std::vector<AdminWait> admin_waits_;         // guarded by mutex_, as is copies_
  std::vector<std::shared_ptr<Copy>> copies_;  // under way or waiting, oldest first
  TimeNs probed_ns_ = 0;                       // of the tick
  std::set<ShardId> to_compare_;               // guarded by mutex_, as is comparing_
  bool comparing_ = false;                     // one is asked about
};

}  // namespace flux
