#include "flux/server/server_member.h"

#include <algorithm>
#include <utility>

namespace flux {

class ServerMember::State : public std::enable_shared_from_this<State> {
 public:
  State(ServerRegistry* registry, Executor* executor, ServerMemberOptions options,
        ServerMemberHooks hooks)
      : registry_(registry),
        executor_(executor),
        options_(std::move(options)),
        hooks_(std::move(hooks)),
        heard_ns_(executor->now_ns()) {}

  // The next thing to do; one at a time.
  void step() {
    if (over_ || asking_) return;
    asking_ = true;
    ++turn_;
    begun_ns_ = executor_->now_ns();
    if (doubt_)
      join();
    else
      report();
  }

  void broken() {
    if (over_ || !joined_) return;
    doubt_ = true;
    step();
  }
  void stop() { over_ = true; }

 private:
  void join() {
    doubt_ = false;
    registry_->join(options_.join, [weak = weak_from_this()](const Result<ServerJoinReply>& reply) {
      const auto self = weak.lock();
      if (!self || self->over_) return;
      self->asking_ = false;
      if (!reply.is_ok()) return self->failed(reply.status(), true);
      self->heard();
      self->joined_ = true;
      self->server_ = reply.value().server;
      self->every_ns_ = std::max<TimeNs>(1, reply.value().report_every_ms) * kMillisecond;
      self->hooks_.joined(self->server_);
      self->later(0);
    });
  }

  void report() {
    ServerReport report{server_, options_.join.boot, hooks_.suspects(), hooks_.rss_bytes()};
    report.silent = hooks_.silent();
    report.differed = hooks_.differed();
    if (hooks_.work && begun_ns_ >= work_due_ns_) {
      report.tells_work = true;
      report.work = hooks_.work();
      work_due_ns_ = begun_ns_ + options_.work_every_ns;
    }
    registry_->report(std::move(report), [weak = weak_from_this()](const Result<bool>& may_go) {
      const auto self = weak.lock();
      if (!self || self->over_) return;
      self->asking_ = false;
      if (!may_go.is_ok()) return self->failed(may_go.status(), false);
      self->heard();
      if (may_go.value()) return self->end(Status::ok());
      self->later(self->every_ns_ - (self->executor_->now_ns() - self->begun_ns_));
    });
  }

  void failed(const Status& status, bool joining) {
    switch (status.code()) {
      case Code::kUnavailable: {
        const TimeNs limit = joined_ ? options_.silence_ns : options_.first_answer_ns;
        const TimeNs silent = executor_->now_ns() - heard_ns_;
        if (silent >= limit)
          return end(
              error(Code::kUnavailable, "the coordinator at {} is lost: silent for {:.1f} s: {}",
                    options_.coordinator, static_cast<double>(silent) / kSecond, status.message()));
        break;
      }
      case Code::kStale:
        heard();
        // First: nothing is opened any more for who it was.
        options_.join.boot = hooks_.new_boot();
        hooks_.forget();
        break;
      case Code::kNotFound:
        heard();
        break;
      case Code::kCancelled:  // the word that it may go was lost on the way
        return end(Status::ok());
      default:
        return end(status.with_context(joining ? "cannot join the job" : "refused by its job"));
    }
    doubt_ = true;
    later(options_.pause_ns);
  }

  void heard() {
    heard_ns_ = executor_->now_ns();
    hooks_.heard();
  }
  void later(TimeNs delay_ns) {
    executor_->post(std::max<TimeNs>(0, doubt_ ? std::min(delay_ns, options_.pause_ns) : delay_ns),
                    [weak = weak_from_this(), turn = turn_] {
                      const auto self = weak.lock();
                      if (self && self->turn_ == turn) self->step();
                    });
  }
  void end(Status status) {
    over_ = true;
    hooks_.end(std::move(status));
  }

  ServerRegistry* const registry_;
  Executor* const executor_;
  ServerMemberOptions options_;
  const ServerMemberHooks hooks_;
  TimeNs heard_ns_;
  TimeNs begun_ns_ = 0;
  TimeNs work_due_ns_ = 0;
  uint64_t turn_ = 0;  // a step that was asked for in an earlier one is not taken
  TimeNs every_ns_ = 200 * kMillisecond;
  ServerId server_ = kNoServer;
  bool joined_ = false;
  bool doubt_ = true;  // join before anything else
  bool asking_ = false;
  bool over_ = false;
};

ServerMember::ServerMember(ServerRegistry* registry, Executor* executor,
                           ServerMemberOptions options, ServerMemberHooks hooks)
    : state_(std::make_shared<State>(registry, executor, std::move(options), std::move(hooks))) {}

ServerMember::~ServerMember() {
  state_->stop();
}

void ServerMember::start() {
  state_->step();
}

void ServerMember::broken() {
  state_->broken();
}

}  // namespace flux
