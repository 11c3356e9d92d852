// Lane: one thread's way from batches to pushed gradients, as a state machine.
//
//   source -> read -> plan -> pull -> forward/backward -> push (as the mode says)
//
// step() does whatever can be done now, at most one batch of it; when it returns false the lane
// waits: waits() says for what, next_time() until when, and any task on its executor may have
// changed that. So a thread drives it with real time, and a simulator with tasks (lane_driver.h).
// Up to `pull_ahead` batches in front of the one being computed are read and pulled. Rows and dense
// values come in one request per server and batch; a batch is computed with its own rows and with
// the newest dense values that have arrived, so both are at most pull_ahead batches old (dense
// mostly less). With `separate_dense` (ports in this process, where a call costs nothing) dense
// values are pulled on their own just before a batch is computed.
// Threads: one, that of the executor; progress() and examples() from any.
// A batch whose loss or gradient is not finite is handed back to the source as refused; nothing of
// it is pushed, and the lane goes on.
// Failure: status(), once finished(); a batch that failed is marked nowhere, so it is trained
// again. Every wait for a server has a deadline; a wait for a block has none here: the agent, which
// knows whether the coordinator lives, ends it.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "flux/base/buffer.h"
#include "flux/base/executor.h"
#include "flux/client/ps_client.h"
#include "flux/nn/net.h"
#include "flux/worker/batch_health.h"
#include "flux/worker/batch_source.h"
#include "flux/worker/batch_work.h"
#include "flux/worker/finite_check.h"
#include "flux/worker/mode.h"
#include "flux/worker/model_layout.h"
#include "flux/worker/progress.h"

namespace flux {

struct LaneOptions {
  uint32_t index = 0;
  uint32_t pull_ahead = 0;  // batches
  uint32_t batch_max = 1000;
  bool separate_dense = false;
  std::vector<uint8_t> slot_groups;  // worker/key_groups.h
  bool metrics = true;               // keep histograms of predictions (2 MB for each head)
  std::vector<SliceSlot> slices;     // by which metrics are told apart, too
  std::vector<std::string> phases;   // names, of a job with several
  // Without any progress of what is waited for. Longer than a pull's own deadline, whose message
  // says more.
  TimeNs answer_deadline_ns = 75 * kSecond;
  PsClientOptions client;
  std::function<void(const BatchId&)> on_begin;  // for tests: a batch to be trained is taken
};

class Lane {
 public:
  // `nets`: one for each phase of the job, at least one. A phase beyond them has the last.
  Lane(LaneOptions options, Executor* executor, std::vector<std::unique_ptr<Net>> nets,
       ClusterMap map, ReachServer reach, FetchRoute fetch_route, BatchSource* source,
       WorkerMode* mode);
  ~Lane();
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  bool step();
  bool finished() const { return finished_; }
  const Status& status() const { return status_; }
  // For people: "pull from server 1", "a block", "room for a push"; "" while it works.
  std::string waits() const;
  // When the present wait is given up; far away if it is not.
  TimeNs next_time() const;
  // Called on the lane's thread whenever step() may have something to do; for drivers by tasks.
  void on_event(std::function<void()> notify) { notify_ = std::move(notify); }
  // On the lane's thread: something outside has changed.
  void notify();
  // On the lane's thread: ends at once with this status (or ok), whatever is in flight.
  void abort(Status status);
  void set_map(ClusterMap map) { client_.set_map(std::move(map)); }

  uint32_t index() const { return options_.index; }
  Executor* executor() const { return executor_; }
  void add_progress(Progress* sum) const;
  uint64_t examples() const { return examples_.load(std::memory_order_relaxed); }
  uint64_t resends() const { return resends_.load(std::memory_order_relaxed); }
  // What it waits for and since when, from any thread.
  std::string wait_text(TimeNs now) const;
  // On the lane's thread: notes which servers do not answer, for suspects().
  void look_at_servers();
  // Those of the last look, from any thread; none if that is long ago.
  std::vector<ServerId> suspects(TimeNs now) const;

 private:
  enum class Wait : uint8_t { kNothing, kBlock, kPull, kRoom, kLastPushes };
  // One phase of the job: its network, and the newest of its dense values.
  struct PhaseNet {
    std::unique_ptr<Net> net;
    std::vector<uint32_t> tables;  // of the network -> of the model
    std::shared_ptr<Buffer<float>> newest_dense;
    uint64_t newest_pull = 0;
  };
  uint32_t phase_of(const BatchWork& work) const;
  PhaseView shape_of(const BatchWork& work) const;
  PhaseNet& net_of(const BatchWork& work) { return nets_[phase_of(work)]; }
  bool prepare();  // read and plan one more batch
  bool start_pulls();
  bool compute_front();
  bool end_if_drained();
  void pulled(const BatchWorkPtr& work, const Status& status);
  bool dense_is_here(const BatchWork& front);
  void fill_input(BatchWork* work);
  Computed computed(const BatchWork& work, double loss);
  bool train(const BatchWorkPtr& work);
  void note_progress(const BatchWork& work, double loss);
  void evaluate(BatchWork* work);
  void acknowledged(const BatchWorkPtr& work);
  void fail(Status status);
  void finish();
  void drop_queue();
  Wait find_wait() const;
  std::string wait_text_of(Wait wait) const;
  bool wait_or_give_up();
  void end_mode();
  void spend_on_wait();
  BatchWorkPtr free_work();
  void recycle(BatchWorkPtr work);
  std::shared_ptr<Buffer<float>> free_dense();
  void spend(Stage stage);  // time since the last call belongs to `stage`

  LaneOptions options_;
  Executor* executor_;
  std::vector<PhaseNet> nets_;
  BatchSource* source_;
  PsClient client_;
  std::shared_ptr<LaneHost> host_;
  std::unique_ptr<LaneMode> mode_;
  std::function<void()> notify_;

  std::vector<BatchWorkPtr> free_;
  std::deque<BatchWorkPtr> queue_;  // planned, pulling, pulled; in order
  size_t in_flight_ = 0;            // with the mode
  bool ended_ = false;              // the source has nothing more
  bool mode_ended_ = false;
  bool failing_ = false;  // failed; what is in flight drains
  bool finished_ = false;
  Status status_;

  std::vector<std::shared_ptr<Buffer<float>>> free_dense_;
  uint64_t pulls_ = 0;
  bool dense_asked_ = false, dense_here_ = false;  // separate_dense: for the front batch
  std::vector<uint32_t> no_keys_;
  NetInput input_;
  NetGradients gradients_;
  Buffer<float> predictions_;

  uint64_t events_ = 0;       // counts everything that moves the lane
  uint64_t wait_events_ = 0;  // its value when the wait began
  TimeNs wait_since_ = 0;
  Wait wait_ = Wait::kNothing;
  TimeNs last_ns_ = 0;
  std::array<int64_t, kStages> batch_ns_{};

  std::atomic<uint64_t> examples_{0};
  std::atomic<uint64_t> resends_{0};
  mutable std::mutex progress_mutex_;
  Progress progress_;
  BatchHealth health_;
  std::string wait_text_;
  TimeNs wait_text_since_ = 0;
  std::vector<ServerId> suspects_;
  TimeNs looked_ns_ = 0;
  // Last: late answers find it gone.
  std::shared_ptr<Lane*> self_ = std::make_shared<Lane*>(this);
};

}  // namespace flux
