// WorkerAgent: the control side of one worker: joins a job, leases and opens blocks, reports,
// acknowledges, obeys stop, leaves. The stateless role: whatever it loses can be trained again.
//
//   join -> set up the trainer -> lease / open / report ... -> it drains -> leave -> over
//
// The trainer runs elsewhere (trainer_driver.h) and meets the agent only in the BlockStore and
// through executors. A lost answer of the coordinator is asked for again under the same number;
// what was finished is told again until it is certain. While the coordinator is silent the trainer
// works on what is leased, a few seconds of work; after `silence_ns` the worker ends with that
// reason. A coordinator that does not know this worker (kStale: it was started anew, or took the
// worker for dead) is joined again with the incarnation and the blocks in hand, while the trainer
// goes on. Only if that is refused with kStale, another life of the job has begun, and the worker
// ends. Threads: every method on the control executor's thread. Slow work (opening data) goes
// through the Offload. Failure: finished() with a Status that says what happened, where, and what
// to do.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "flux/api/job_port.h"
#include "flux/api/server.h"
#include "flux/base/executor.h"
#include "flux/base/offload.h"
#include "flux/data/dataset.h"
#include "flux/worker/block_store.h"
#include "flux/worker/mode.h"
#include "flux/worker/trainer.h"
#include "flux/worker/trainer_driver.h"

namespace flux {

struct AgentOptions {
  JoinRequest join;
  std::string coordinator = "the coordinator";  // for messages: "the coordinator at host:port"
  TimeNs silence_ns = 60 * kSecond;
  TimeNs first_answer_ns = 20 * kSecond;  // the same, before it has joined
  TimeNs ahead_ns = 3 * kSecond;          // of work leased; not in the modes that lease when idle
  TimeNs retry_ns = 100 * kMillisecond;   // after a call that failed; doubles up to a second
  TimeNs repeat_ns = 2 * kSecond;         // a lease that is not answered is asked for again
  TimeNs drain_ns = 10 * kSecond;         // for what is in flight, at the end
  bool report_auc = true;
};

// What a worker costs, for its reports.
struct WorkerCost {
  uint64_t bytes_sent = 0, bytes_received = 0;
  double cpu_s = 0;
  uint64_t rss_bytes = 0;
};

using OpenDataset = std::function<Result<std::shared_ptr<const Dataset>>(const Geometry&)>;

// Made in main from the job that the coordinator sent.
struct WorkerSetup {
  std::string mode = "async";
  bool deterministic = false;
  LrSchedule lr_schedule = {};
  TrainerOptions trainer;
  Executor* executor = nullptr;            // of the trainer, whose ports are made there
  std::shared_ptr<Team> team;              // led by the executor's thread
  std::vector<std::unique_ptr<Net>> nets;  // by phase, computed by the team
  ReachServer reach;
  OpenDataset open_dataset;          // runs through the Offload
  std::function<WorkerCost()> cost;  // may be empty
};
using SetUpWorker = std::function<Result<WorkerSetup>(const JoinReply&)>;

struct WorkerOutcome {
  Status status;       // ok: the job ended or was stopped
  std::string reason;  // why it ended, if the coordinator said
  WorkerReport report;
};

class WorkerAgent {
 public:
  WorkerAgent(AgentOptions options, Executor* executor, JobPort* job, Offload* offload,
              TrainerDriver* driver, SetUpWorker set_up);
  ~WorkerAgent();
  WorkerAgent(const WorkerAgent&) = delete;
  WorkerAgent& operator=(const WorkerAgent&) = delete;

  // `over` is called once, when the worker has left.
  void start(std::function<void(const WorkerOutcome&)> over);
  // Ends soon: drops what is not begun, finishes what is in flight, leaves.
  void stop(const std::string& why);
  bool is_over() const { return phase_ == Phase::kOver; }
  // `with_metrics`: what it saw while training, some 100 KB.
  WorkerReport report(bool with_metrics = false) const;
  Progress progress() const;
  WorkerId worker() const { return joined_.worker; }

 private:
  enum class Phase : uint8_t { kJoining, kTraining, kEnding, kLeaving, kOver };
  // The newest request for a lease.
  struct Request {
    uint64_t seq = 0;
    uint64_t call = 0;  // newest of this seq
    bool open = false;  // asked and not answered
    TimeNs sent_ns = 0;
    TimeNs backoff_ns = 0;
    LeaseRequest request;
    FinishedBatches extra;             // told only in repeats: not certain
    std::deque<LeaseAnswer> unopened;  // leased ahead
  };
  struct Cut {
    std::shared_ptr<const Dataset> data;
    std::vector<LeaseAnswer> waiting;
    bool asked = false;
    uint64_t used = 0;
  };

  void join();
  void rejoin();
  void rejoined(const Result<JoinReply>& reply);
  void set_up_trainer(const JoinReply& reply);
  Status build_trainer(WorkerSetup setup);
  FetchRoute route_fetcher(Executor* trainer_executor);
  // leases (agent_leases.cc)
  void pump();
  void store_changed();
  void send_lease(bool repeat);
  void on_lease(uint64_t seq, uint64_t call, const Result<LeaseAnswer>& result);
  void take_answer(const LeaseAnswer& answer);
  void repeat_lease();
  void open_more();
  void measure_rate();
  void open_block(const LeaseAnswer& answer);
  void fetch_cut(uint64_t hash, TimeNs backoff);
  void open_cut(uint64_t hash, const std::string& json);
  void drop_old_cuts();
  void open_in_cut(const LeaseAnswer& answer, const std::shared_ptr<const Dataset>& data);

  void tick();
  void send_report();
  void look_at_servers();
  std::vector<BlockId> blocks_ahead() const;
  void on_report(const Result<ReportAnswer>& result);
  void fetch_map();
  void take_map(const ClusterMap& map);
  void await_first_answer();
  void heard() { heard_ns_ = executor_->now_ns(); }
  bool silent(TimeNs patience) const { return executor_->now_ns() - heard_ns_ > patience; }
  void give_up_on_coordinator();
  void fail(Status status);
  void end(const std::string& reason);
  void abort_trainer();
  void trainer_finished();
  void leave();
  void say_goodbye(TimeNs backoff);
  void over();
  template <typename F>
  auto guard(F f) {
    return [weak = std::weak_ptr<int>(alive_), f = std::move(f)](auto&&... args) mutable {
      if (weak.lock()) f(std::forward<decltype(args)>(args)...);
    };
  }

  AgentOptions options_;
  Executor* executor_;
  JobPort* job_;
  Offload* offload_;
  TrainerDriver* driver_;
  SetUpWorker set_up_;
  std::function<void(const WorkerOutcome&)> on_over_;

  Phase phase_ = Phase::kJoining;
  TimeNs heard_ns_ = 0;
  Status not_joined_{Code::kUnavailable, "it was asked once"};  // why, as far as is known
  JoinReply joined_;
  bool rejoining_ = false;
  TimeNs rejoin_backoff_ns_ = 0;
  TimeNs measured_ns_ = 0;  // when the rate was last looked at
  uint64_t handed_out_ = 0;
  double batches_per_s_ = 0;
  bool fetching_map_ = false;
  std::vector<std::function<void(const Result<ClusterMap>&)>> map_waiting_;
  uint32_t reports_out_ = 0;
  TimeNs metrics_told_ns_ = 0;
  HealthTold health_told_;
  std::set<BlockId> disclaimed_;  // WorkerReport::ahead of the last report
  Status status_;
  std::string reason_;

  OpenDataset open_dataset_;
  std::function<WorkerCost()> cost_;
  std::unique_ptr<BlockStore> store_;
  std::unique_ptr<Mode> mode_;
  std::shared_ptr<Team> team_;
  std::shared_ptr<Trainer> trainer_;
  bool trains_ = false;  // the trainer was started and has not ended
  Request lease_;
  std::map<uint64_t, Cut> cuts_;  // by hash of the geometry
  uint64_t uses_ = 0;
  // Last: late answers find it gone.
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);
};

}  // namespace flux
