// Pushes of PsClient: what the PushSession says, done with ports and buffers.
#include <algorithm>
#include <utility>

#include "flux/base/check.h"
#include "flux/client/ps_client_state.h"

namespace flux {

bool PsClient::State::has_room() const {
  return status_.is_ok() && session_.has_room() &&
         session_.unapplied() + lingering_ < options_.session.pushes_max;
}

std::string PsClient::State::waits_for_push() const {
  std::string at = ports_.waits_for(ServerPorts::Call::Kind::kPush);
  if (at.empty()) at = ports_.waits_for(ServerPorts::Call::Kind::kConfirm);
  if (!at.empty() || session_.in_flight() == 0) return at;
  return fmt::format("server {}", session_.waits_for());
}

void PsClient::State::push(PushWork work) {
  std::vector<PushAction> actions;
  auto flight = std::make_shared<Flight>();
  flight->work = std::move(work);
  flight->started = executor_->now_ns();
  const PushSeq seq =
      session_.start(flight->work.ids, flight->work.bytes, executor_->now_ns(), &actions);
  flights_.emplace(seq, std::move(flight));
  perform(&actions);
  if (session_.in_flight() > 0) arm_timer();
}

void PsClient::State::send_push(PushAction* action) {
  const auto at = flights_.find(action->seq);
  FLUX_CHECK(at != flights_.end(), "push {} has no buffers", action->seq);
  const auto port = ports_.port(action->server);
  if (!port) {
    last_trouble_ = "the map names no address of it";
    return lost(*action);
  }
  const FlightPtr flight = at->second;
  const PushWork& work = flight->work;
  const auto sent = std::make_shared<SentPush>(std::move(*action), flight);
  PushRequest request;
  request.shards = sent->action.shards;
  request.epochs = sent->action.epochs;
  request.keys = work.keys;
  request.counts = work.counts;
  request.tables = work.tables;
  request.dense = work.dense;
  request.examples = work.examples;
  request.lr_scale = work.lr_scale;
  request.pulled = work.pulled.of(sent->action.server);
  request.step = work.step.get();
  request.team = options_.team;
  const std::vector<BatchId>& ids = sent->action.ids;
  if (ids.size() != work.ids.size())
    return fail(error(Code::kCorrupt, "server {} answered that it has a part of one batch",
                      sent->action.server));
  request.claim = PushClaim{options_.incarnation, work.geometry, ids, Verdict::kApplied};
  ++flight->calls;
  sent->since = executor_->now_ns();
  ServerPorts::begin(port, sent, sent->since);
  port->port->push(request, carry<PushReply>([sent](State* self, const PushReply& reply) {
                     self->pushed(sent.get(), reply);
                   }));
}

void PsClient::State::pushed(SentPush* sent, const PushReply& reply) {
  if (!ServerPorts::end(sent, !reply.unreached, executor_->now_ns())) return;
  const PushAction& action = sent->action;
  const Code code = reply.status.code();
  if (reply.status.is_ok() && !reply.answers.empty()) {
    push_times_.add(executor_->now_ns() - sent->since);
    if (reply.age) push_ages_.add(*reply.age);
    std::vector<PushAction> actions;
    session_.on_answers(action, reply.answers, reply.receipt, executor_->now_ns(), &actions);
    perform(&actions);
  } else if (reply.status.is_ok() || code == Code::kUnavailable || code == Code::kCancelled) {
    last_trouble_ = reply.status.message();
    lost(action);
  } else {
    fail(reply.status.with_context(fmt::format("push to server {}", action.server)));
  }
  call_over(*sent);
  sooner();
}

// A port does not read the buffers of this request any more.
void PsClient::State::call_over(const SentPush& sent) {
  --sent.flight->calls;
  if (!sent.flight->complete || sent.flight->calls > 0) return;
  --lingering_;
  release(sent.action.seq);
}

void PsClient::State::send_confirm(PushAction* action) {
  const auto port = ports_.port(action->server);
  if (!port) return lost(*action);
  const auto asked = std::make_shared<SentConfirm>(std::move(*action));
  ServerPorts::begin(port, asked, executor_->now_ns());
  port->port->confirm(options_.incarnation, asked->action.receipt,
                      carry<Status>([asked](State* self, const Status& status) {
                        self->confirmed(asked.get(), status);
                      }));
}

void PsClient::State::confirmed(SentConfirm* asked, const Status& status) {
  const bool reached = status.is_ok() || status.code() == Code::kStale;
  if (!ServerPorts::end(asked, reached, executor_->now_ns())) return;
  if (!status.is_ok() && status.code() != Code::kStale) {
    last_trouble_ = status.message();
    return lost(asked->action);
  }
  std::vector<PushAction> actions;
  session_.on_confirm(asked->action, status.is_ok(), executor_->now_ns(), &actions);
  perform(&actions);
  sooner();
}

void PsClient::State::lost(const PushAction& action) {
  std::vector<PushAction> actions;
  session_.on_lost(action, executor_->now_ns(), &actions);
  perform(&actions);
  sooner();
}

void PsClient::State::release(PushSeq seq) {
  const auto node = flights_.extract(seq);
  if (node && node.mapped()->work.released) node.mapped()->work.released();
}

void PsClient::State::perform(std::vector<PushAction>* actions) {
  for (PushAction& action : *actions) {
    const auto at = flights_.find(action.seq);
    // An answer inside an earlier call may have completed or ended it.
    const bool here = at != flights_.end();
    switch (action.kind) {
      case PushAction::Kind::kSend:
        if (status_.is_ok() && here) send_push(&action);
        break;
      case PushAction::Kind::kConfirm:
        if (status_.is_ok() && here) send_confirm(&action);
        break;
      case PushAction::Kind::kApplied:
        if (here && !std::exchange(at->second->applied, true) && at->second->work.applied)
          at->second->work.applied();
        break;
      case PushAction::Kind::kRelease:
        if (!here) break;
        at->second->complete = true;
        ++lingering_;
        if (at->second->calls > 0) break;  // ports may still read its buffers
        --lingering_;
        release(action.seq);
        break;
      case PushAction::Kind::kRefresh:
        refresh();
        break;
      case PushAction::Kind::kStop:
        fail(error(Code::kStale, "{}", action.reason));
        break;
    }
  }
}

void PsClient::State::fail(Status status) {
  if (!status_.is_ok()) return;
  status_ = std::move(status);
  if (failed_) failed_();
}

// Pushes are tried again for ever by the session; not by a worker.
void PsClient::State::check_deadline() {
  for (const auto& [seq, flight] : flights_) {
    const TimeNs waited = executor_->now_ns() - flight->started;
    if (flight->applied || waited < options_.push_deadline_ns) continue;
    return fail(error(Code::kUnavailable, "push of {} to {}: not applied for {:.1f} s{}",
                      to_string(flight->work.ids.front()), waits_for_push(),
                      static_cast<double>(waited) * 1e-9,
                      last_trouble_.empty() ? "" : ": " + last_trouble_));
  }
}

// Something may be due before the timer that runs. Inside push() and on_timer() none runs: they
// start it at their end.
void PsClient::State::sooner() {
  if (timer_armed_ && session_.in_flight() > 0) arm_timer();
}

void PsClient::State::arm_timer() {
  const TimeNs at = session_.next_time();
  if (timer_armed_ && timer_at_ <= at) return;
  timer_armed_ = true;
  timer_at_ = at;
  const TimeNs delay = std::max<TimeNs>(0, at - executor_->now_ns());
  executor_->post(delay, [weak = weak_from_this(), number = ++timer_] {
    if (const auto self = weak.lock(); self && number == self->timer_) self->on_timer();
  });
}

void PsClient::State::on_timer() {
  timer_armed_ = false;
  if (!status_.is_ok() || session_.in_flight() == 0) return;
  check_deadline();
  if (!status_.is_ok()) return;
  std::vector<PushAction> actions;
  session_.on_time(executor_->now_ns(), &actions);
  perform(&actions);
  if (session_.in_flight() > 0 && status_.is_ok()) arm_timer();
}

}  // namespace flux
