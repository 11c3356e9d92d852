#include "flux/client/ps_client.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "flux/base/check.h"

namespace flux {

PsClient::PsClient(const PsClientOptions& options, std::vector<ServerPort*> servers,
                   CoordinatorPort* coordinator, Executor* executor)
    : options_(options),
      servers_(std::move(servers)),
      coordinator_(coordinator),
      executor_(executor),
      session_(options.session, coordinator->route()) {
  all_shards_.resize(coordinator_->route().size());
  std::iota(all_shards_.begin(), all_shards_.end(), 0U);
}

void PsClient::pull(const ShardedKeys& keys, std::span<float*> tables, float* dense,
                    std::function<void(Status)> done) {
  FLUX_CHECK(servers_.size() == 1, "this client routes pulls to one server");
  PullRequest request;
  request.incarnation = options_.incarnation;
  request.shards = all_shards_;
  request.keys = keys;
  request.tables = tables;
  request.dense = dense;
  servers_[0]->pull(request, [done = std::move(done)](const PullReply& r) { done(r.status); });
}

void PsClient::push(PushWork work) {
  std::vector<PushAction> actions;
  const PushSeq seq = session_.start(work.ids, work.bytes, executor_->now_ns(), &actions);
  works_.emplace(seq, std::move(work));
  perform(actions);
  if (session_.in_flight() > 0) arm_timer();
}

void PsClient::send(const PushAction& action) {
  const auto at = works_.find(action.seq);
  FLUX_CHECK(at != works_.end(), "push {} has no buffers", action.seq);
  const PushWork& work = at->second;
  PushRequest request;
  request.claim = PushClaim{options_.incarnation, work.geometry, action.ids, Verdict::kApplied};
  request.shards = action.shards;
  request.epochs = action.epochs;
  request.keys = work.keys;
  request.counts = work.counts;
  request.tables = work.tables;
  request.dense = work.dense;
  request.examples = work.examples;
  servers_[action.server]->push(request, [this, seq = action.seq](const PushReply& reply) {
    std::vector<PushAction> actions;
    session_.on_answers(seq, reply.answers, executor_->now_ns(), &actions);
    perform(actions);
  });
}

void PsClient::perform(const std::vector<PushAction>& actions) {
  for (const PushAction& action : actions) {
    switch (action.kind) {
      case PushAction::Kind::kSend:
        send(action);
        break;
      case PushAction::Kind::kRelease: {
        auto node = works_.extract(action.seq);
        if (node && node.mapped().released) node.mapped().released();
        break;
      }
      case PushAction::Kind::kRefresh: {
        std::vector<PushAction> more;
        session_.on_route(coordinator_->route(), executor_->now_ns(), &more);
        perform(more);
        break;
      }
      case PushAction::Kind::kStop:
        status_ = error(Code::kStale, "{}", action.reason);
        break;
    }
  }
}

void PsClient::arm_timer() {
  if (timer_armed_) return;
  timer_armed_ = true;
  const TimeNs delay = std::max<TimeNs>(0, session_.next_time() - executor_->now_ns());
  executor_->post(delay, [this] {
    timer_armed_ = false;
    std::vector<PushAction> actions;
    session_.on_time(executor_->now_ns(), &actions);
    perform(actions);
    if (session_.in_flight() > 0 && status_.is_ok()) arm_timer();
  });
}

}  // namespace flux
