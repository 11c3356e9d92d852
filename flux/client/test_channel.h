// For tests of stubs and services: time that the test moves, and a channel that loses and repeats.
// Not thread-safe; nothing here is linked into the binary.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "flux/base/executor.h"
#include "flux/base/random.h"
#include "flux/rpc/channel.h"

namespace flux {

// Tasks in the order of their time; time stands still but for run_until().
class TestExecutor final : public Executor {
 public:
  TimeNs now_ns() const override { return now_; }
  void post(TimeNs delay_ns, std::function<void()> task) override {
    tasks_.emplace(now_ + delay_ns, std::move(task));
  }
  // Runs tasks, moving time to each, until `done()` or nothing is left before `deadline`.
  bool run_until(const std::function<bool()>& done, TimeNs deadline = 3600 * kSecond) {
    while (!done()) {
      if (tasks_.empty() || tasks_.begin()->first > deadline) return false;
      auto node = tasks_.extract(tasks_.begin());
      now_ = node.key();
      node.mapped()();
    }
    return true;
  }
  void run_for(TimeNs time) {
    const TimeNs end = now_ + time;
    (void)run_until([] { return false; }, end);
    now_ = end;
  }

 private:
  TimeNs now_ = 0;
  std::multimap<TimeNs, std::function<void()>> tasks_;
};

struct LossyOptions {
  double request_lost = 0.25, reply_lost = 0.25, doubled = 0.2;
  TimeNs delay_max_ns = 30 * kMillisecond;
};

// Forwards calls to another channel through a bad network: requests and replies get lost (the call
// ends with its time), requests are delayed, so overtake each other, and come twice.
class LossyChannel final : public Channel {
 public:
  LossyChannel(Channel* next, Executor* executor, uint64_t seed, LossyOptions options = {})
      : next_(next), executor_(executor), random_(seed), options_(options) {}

  uint64_t call(RpcCall call) override {
    const auto shared = std::make_shared<Pending>(Pending{std::move(call), false});
    const uint64_t id = ++last_;
    calls_[id] = shared;
    const bool lose_reply = random_.chance(options_.reply_lost);
    const int copies = random_.chance(options_.request_lost) ? 0 : 1;
    const int extra = random_.chance(options_.doubled) ? 1 : 0;
    for (int i = 0; i < copies + extra; ++i) {
      const auto delay =
          static_cast<TimeNs>(random_.below(static_cast<uint64_t>(options_.delay_max_ns) + 1));
      executor_->post(delay, [this, shared, lose = lose_reply || i > 0] { forward(shared, lose); });
    }
    executor_->post(shared->call.timeout_ns, [this, id, shared] {
      finish(shared, Status(Code::kUnavailable, "lost in the test's network"), {});
      calls_.erase(id);
    });
    return id;
  }
  void cancel(uint64_t id) override {
    if (calls_.contains(id))
      finish(calls_[id], Status(Code::kCancelled, "the call was cancelled"), {});
  }
  std::string peer() const override { return "lossy"; }
  uint64_t forwarded() const { return forwarded_; }

 private:
  struct Pending {
    RpcCall call;
    bool over = false;
  };
  void forward(const std::shared_ptr<Pending>& pending, bool lose_reply) {
    // A copy that comes after the end carries what the message said then; only its control part
    // is used by such tests, as the caller's payload may be gone.
    if (pending->over && !pending->call.payload.empty()) return;
    RpcCall copy;
    copy.verb = pending->call.verb;
    copy.control = pending->call.control;
    copy.payload = pending->call.payload;
    copy.timeout_ns = pending->call.timeout_ns;
    if (!lose_reply) copy.place = pending->call.place;
    copy.done = [this, pending, lose_reply](Status status, RpcReply reply) {
      if (!lose_reply) finish(pending, std::move(status), std::move(reply));
    };
    ++forwarded_;
    (void)next_->call(std::move(copy));
  }
  static void finish(const std::shared_ptr<Pending>& pending, Status status, RpcReply reply) {
    if (std::exchange(pending->over, true)) return;
    pending->call.done(std::move(status), std::move(reply));
  }

  Channel* next_;
  Executor* executor_;
  Random random_;
  LossyOptions options_;
  std::map<uint64_t, std::shared_ptr<Pending>> calls_;
  uint64_t last_ = 0, forwarded_ = 0;
};

}  // namespace flux
