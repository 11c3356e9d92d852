// Trainer: a worker's way from batches to pushed gradients, as a state machine.
//
//   source -> prepare -> pull -> forward/backward -> push (as the mode says)
//
// One batch is computed at a time, by all members of the team together, and the model does not
// depend on how many they are. Whole batches are prepared ahead, one by each member; up to
// `pull_ahead` batches behind the one being computed are pulled. Rows and dense values come in one
// request per server and batch; a batch is computed with its own rows and with the newest dense
// values that have arrived, so both are at most pull_ahead batches old. With `separate_dense`
// (ports in this process, where a call costs nothing) dense values are pulled just before a batch
// is computed. step() does whatever can be done now, at most one batch of it; when it returns false
// the trainer waits: waits() says for what, next_time() until when, and any task on its executor
// may have changed that. So a thread drives it with real time, and a simulator with tasks
// (trainer_driver.h). Threads: one, that of the executor, which leads the team; progress() and
// reports() from any.
// A batch whose loss or gradient is not finite is handed back to the source as refused; nothing of
// it is pushed, and the trainer goes on.
// Failure: status(), once finished(); a batch that failed is marked nowhere, so it is trained
// again. Every wait for a server has a deadline; a wait for a block has none here: the agent, which
// knows whether the coordinator lives, ends it.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "flux/base/buffer.h"
#include "flux/base/executor.h"
#include "flux/base/team.h"
#include "flux/client/ps_client.h"
#include "flux/nn/net.h"
#include "flux/worker/batch_health.h"
#include "flux/worker/batch_source.h"
#include "flux/worker/batch_work.h"
#include "flux/worker/finite_check.h"
#include "flux/worker/mode.h"
#include "flux/worker/model_layout.h"
#include "flux/worker/prepare.h"
#include "flux/worker/progress.h"
#include "flux/worker/wait_report.h"

namespace flux {

struct TrainerOptions {
  uint32_t pull_ahead = 0;     // batches
  uint32_t prepare_ahead = 0;  // batches that are prepared at a time; 0: one for each member
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

class Trainer {
 public:
  // `nets`: one for each phase of the job, at least one, computed by `team`, which lives longer
  // than the trainer. A phase beyond them has the last.
  Trainer(TrainerOptions options, Executor* executor, Team* team,
          std::vector<std::unique_ptr<Net>> nets, ClusterMap map, ReachServer reach,
          FetchRoute fetch_route, BatchSource* source, const Mode* mode);
  ~Trainer();
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  bool step();
  bool finished() const { return finished_; }
  const Status& status() const { return status_; }
  // For people: "pull from server 1", "a block", "room for a push"; "" while it works.
  std::string waits() const;
  // When the present wait is given up; far away if it is not.
  TimeNs next_time() const;
  // Called on the trainer's thread whenever step() may have something to do; for drivers by tasks.
  void on_event(std::function<void()> notify) { notify_ = std::move(notify); }
  // On the trainer's thread: something outside has changed.
  void notify();
  // On the trainer's thread: ends at once with this status (or ok), whatever is in flight.
  void abort(Status status);
  void set_map(ClusterMap map) { client_.set_map(std::move(map)); }
  // On the trainer's thread: notes which servers do not answer.
  void look_at_servers();

  Executor* executor() const { return executor_; }
  Progress progress() const {
    return progress_.read([this](Progress* copy) { health_.tell(&copy->health); });
  }
  const WaitReport& reports() const { return wait_report_; }

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
  bool prepare();  // some more batches
  std::vector<BatchWorkPtr> take_batches(uint32_t most);
  bool start_pulls();
  bool compute_front();
  bool end_if_drained();
  void pulled(const BatchWorkPtr& work, const Status& status);
  bool dense_is_here(const BatchWork& front);
  void fill_input(BatchWork* work);
  Computed computed(const BatchWork& work, double loss);
  bool train(const BatchWorkPtr& work);
  void push(const BatchWorkPtr& work);
  void note_progress(const BatchWork& work, double loss);
  void evaluate(BatchWork* work);
  void acknowledged(const BatchWorkPtr& work);
  void fail(Status status);
  void finish();
  void drop_queue();
  Wait find_wait() const;
  std::string wait_text_of(Wait wait) const;
  bool wait_or_give_up();
  void spend_on_wait();
  BatchWorkPtr free_work();
  void make_space(BatchWork* work);
  void recycle(BatchWorkPtr work);
  std::shared_ptr<Buffer<float>> free_dense();
  // The time since the last call belongs to `stage`.
  void spend(Stage stage);
  void spend_on_prepared(double read_share);
  void tell_times();

  TrainerOptions options_;
  Executor* executor_;
  Team* team_;
  std::vector<PhaseNet> nets_;
  BatchSource* source_;
  PsClient client_;
  const Mode* mode_;
  BatchPreparer preparer_;
  std::function<void()> notify_;

  std::vector<BatchWorkPtr> free_;
  std::vector<BatchSpace> free_spaces_;
  std::deque<BatchWorkPtr> queue_;  // prepared, pulling, pulled; in order
  size_t unpulled_ = 0;             // of those: the last ones, which are only prepared
  size_t in_flight_ = 0;            // pushed, and not replicated
  bool ended_ = false;              // the source has nothing more
  bool failing_ = false;            // failed; what is in flight drains
  bool finished_ = false;
  Status status_;

  std::vector<std::shared_ptr<Buffer<float>>> free_dense_;
  uint64_t pulls_ = 0;
  bool dense_asked_ = false, dense_here_ = false;  // separate_dense: for the front batch
  std::vector<uint32_t> no_keys_;
  NetInput input_;
  NetGradients gradients_;
  Buffer<float> predictions_;

  uint64_t events_ = 0;       // counts everything that moves the trainer
  uint64_t wait_events_ = 0;  // its value when the wait began
  TimeNs wait_since_ = 0;
  Wait wait_ = Wait::kNothing;
  TimeNs last_ns_ = 0;
  std::array<int64_t, kStages> batch_ns_{};

  ProgressBook progress_;
  BatchHealth health_;  // under the book's lock
  WaitReport wait_report_;
};

}  // namespace flux
