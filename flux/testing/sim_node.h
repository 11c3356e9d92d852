// SimWorld and SimNode: the time line of a simulated cluster, and one process on it.
//
// A SimNode is the Executor of everything that runs in one process. When it is killed none of its
// tasks runs any more, whatever they were waiting for: its objects can be destroyed at once. A
// paused node runs nothing until the pause is over (a process that the machine does not serve).
// Its clock may run too fast or too slow, change its rate, and jump forward. It never goes back:
// everything in production measures time by a monotonic clock, which the system promises not to
// turn back. A machine that was suspended looks to its processes exactly like a jump forward: the
// clock is far ahead at once, and every timer that was set comes late by it.
// The world keeps a hash of everything that happened, so that two runs of one seed can be compared,
// and, if asked, the story in words. Not thread-safe: one world is one thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "flux/base/executor.h"
#include "flux/base/hash.h"
#include "flux/testing/sim_executor.h"

namespace flux {

class SimWorld {
 public:
  using Tell = std::function<void(TimeNs now, const std::string& line)>;
  explicit SimWorld(uint64_t seed, Tell tell = nullptr) : executor_(seed), tell_(std::move(tell)) {}

  SimExecutor& executor() { return executor_; }
  Random& random() { return executor_.random(); }
  TimeNs now_ns() const { return executor_.now_ns(); }
  // Uniform in [low, high).
  TimeNs draw(TimeNs low, TimeNs high) {
    return high <= low
               ? low
               : low + static_cast<TimeNs>(random().below(static_cast<uint64_t>(high - low)));
  }
  // Adds a fact to the trace; equal runs have equal traces.
  void trace(uint64_t fact) {
    trace_ = hash_pair(hash_pair(trace_, static_cast<uint64_t>(now_ns())), fact);
  }
  uint64_t trace_hash() const { return trace_; }
  bool telling() const { return static_cast<bool>(tell_); }
  void tell(const std::string& line) {
    if (tell_) tell_(now_ns(), line);
  }

 private:
  SimExecutor executor_;
  Tell tell_;
  uint64_t trace_ = 0;
};

class SimNode final : public Executor {
 public:
  // `boot` tells two lives of one name apart.
  SimNode(SimWorld* world, std::string name, uint64_t boot)
      : world_(world), name_(std::move(name)), boot_(boot) {}
  ~SimNode() override { kill(); }
  SimNode(const SimNode&) = delete;
  SimNode& operator=(const SimNode&) = delete;

  // By its own clock.
  TimeNs now_ns() const override {
    return clock_offset_ + static_cast<TimeNs>(static_cast<double>(world_->now_ns()) * clock_rate_);
  }
  void post(TimeNs delay_ns, std::function<void()> task) override {
    if (!*alive_) return;
    // One more than that: a timer that comes too early would be set again without end.
    const State state{this, alive_, delay_ns <= 0 ? 0 : now_ns() + delay_ns};
    world_->executor().post(in_world(delay_ns) + (slow_ > 0 ? world_->draw(0, slow_) : 0),
                            [state, task = std::move(task)]() mutable { run(state, task); });
  }
  // Nothing posted here runs any more.
  void kill() { *alive_ = false; }
  bool alive() const { return *alive_; }
  // Turns false when the node dies; outlives it.
  std::shared_ptr<const bool> life() const { return alive_; }
  // Until that time of the world.
  void pause(TimeNs until_ns) { paused_until_ = until_ns; }
  // Its clock is ahead by so much and runs so fast; to be said before anything is posted.
  void set_clock(TimeNs offset_ns, double rate) {
    clock_offset_ = offset_ns;
    clock_rate_ = rate;
  }
  // At once; `by_ns` is not negative. Timers that are set come when they would have come.
  void jump_clock(TimeNs by_ns) { clock_offset_ += by_ns; }
  // From now on it runs so fast.
  void drift_clock(double rate) {
    const TimeNs own = now_ns();
    clock_rate_ = rate;
    clock_offset_ += own - now_ns();
  }
  // Every task comes up to so much later than it should.
  void set_slow(TimeNs slow_ns) { slow_ = slow_ns; }
  bool paused() const { return paused_until_ > world_->now_ns(); }

  const std::string& name() const { return name_; }
  uint64_t boot() const { return boot_; }
  SimWorld* world() const { return world_; }

 private:
  struct State {
    SimNode* node;  // valid while *alive
    std::shared_ptr<const bool> alive;
    TimeNs due;  // by its own clock: no timer comes earlier
  };
  // How long the world waits while `delay_ns` pass here.
  TimeNs in_world(TimeNs delay_ns) const {
    // One more than that: a timer that comes too early would be set again without end.
    return delay_ns <= 0 ? 0 : 1 + static_cast<TimeNs>(static_cast<double>(delay_ns) / clock_rate_);
  }
  static void run(const State& state, std::function<void()>& task) {
    if (!*state.alive) return;
    SimNode* node = state.node;
    TimeNs wait = node->paused() ? node->paused_until_ - node->world_->now_ns() : 0;
    if (wait == 0) wait = node->in_world(state.due - node->now_ns());  // its clock is slower now
    if (wait > 0)
      node->world_->executor().post(
          wait, [state, task = std::move(task)]() mutable { run(state, task); });
    else
      task();
  }

  SimWorld* world_;
  std::string name_;
  uint64_t boot_;
  TimeNs paused_until_ = 0;
  TimeNs slow_ = 0;
  TimeNs clock_offset_ = 0;
  double clock_rate_ = 1;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace flux
