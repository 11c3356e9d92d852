#include "flux/protocol/push_session.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "flux/base/check.h"

namespace flux {

PushSession::PushSession(PushSessionOptions options, ShardRoute route)
    : options_(options), route_(std::move(route)) {
  FLUX_CHECK(route_.server.size() == route_.epoch.size(), "a route names an epoch per shard");
}

bool PushSession::has_room() const {
  return !stopped_ && pushes_.size() < options_.pushes_max && bytes_ < options_.bytes_max;
}

PushSeq PushSession::start(std::vector<BatchId> ids, uint64_t bytes, TimeNs now,
                           std::vector<PushAction>* actions) {
  FLUX_CHECK(has_room(), "start() without room");
  FLUX_CHECK(!ids.empty() && std::is_sorted(ids.begin(), ids.end()), "ids must be sorted");
  const PushSeq seq = ++last_seq_;
  Push& push = pushes_[seq];
  push.ids = std::move(ids);
  push.bytes = bytes;
  push.timeout = options_.answer_timeout_ns;
  push.pending.resize(route_.size());
  std::iota(push.pending.begin(), push.pending.end(), 0U);
  bytes_ += bytes;
  send(seq, &push, push.pending, now, actions);
  return seq;
}

void PushSession::send(PushSeq seq, Push* push, const std::vector<ShardId>& shards, TimeNs now,
                       std::vector<PushAction>* actions) {
  push->due = now + push->timeout;
  // One message per server for the shards that lack the whole set, one per shard that has a part.
  std::map<ServerId, PushAction> by_server;
  for (const ShardId shard : shards) {
    const auto part = push->rest.find(shard);
    PushAction action;
    action.seq = seq;
    action.server = route_.server[shard];
    if (part != push->rest.end()) {
      action.shards = {shard};
      action.epochs = {route_.epoch[shard]};
      action.ids = part->second;
      actions->push_back(std::move(action));
      continue;
    }
    PushAction& whole = by_server.try_emplace(action.server, std::move(action)).first->second;
    if (whole.ids.empty()) {
      whole.ids = push->ids;
      whole.shards.reserve(shards.size());
      whole.epochs.reserve(shards.size());
    }
    whole.shards.push_back(shard);
    whole.epochs.push_back(route_.epoch[shard]);
  }
  for (auto& [server, action] : by_server) actions->push_back(std::move(action));
}

bool PushSession::take(Push* push, const ShardAnswer& answer, std::vector<PushAction>* actions) {
  switch (answer.answer) {
    case Answer::kDuplicate:
      ++duplicates_;
      [[fallthrough]];
    case Answer::kApplied:
      // For a shard with a part, only the rest was sent, so this answer completes it too.
      std::erase(push->pending, answer.shard);
      push->rest.erase(answer.shard);
      return false;
    case Answer::kPartial: {
      // A shard never loses a batch it has, so what an earlier answer took off stays off.
      const auto part = push->rest.find(answer.shard);
      const std::vector<BatchId>& sent = part != push->rest.end() ? part->second : push->ids;
      std::vector<BatchId> left;
      std::set_difference(sent.begin(), sent.end(), answer.already.begin(), answer.already.end(),
                          std::back_inserter(left));
      if (left.empty()) {
        std::erase(push->pending, answer.shard);
        push->rest.erase(answer.shard);
        return false;
      }
      push->rest[answer.shard] = std::move(left);
      return true;
    }
    case Answer::kStaleEpoch:
    case Answer::kNotServing:
      ask_refresh(actions);
      return false;  // sent again when the new map is here, or when its time comes
    case Answer::kStaleIncarnation:
    case Answer::kStaleGeometry:
    case Answer::kMalformed:
    case Answer::kStaleRound: {
      if (stopped_) return false;
      stopped_ = true;
      PushAction stop;
      stop.kind = PushAction::Kind::kStop;
      stop.reason = std::string("shard ") + std::to_string(answer.shard) +
                    " refused a push: " + answer_name(answer.answer);
      actions->push_back(std::move(stop));
      return false;
    }
  }
  return false;
}

void PushSession::on_answers(PushSeq seq, std::span<const ShardAnswer> answers, TimeNs now,
                             std::vector<PushAction>* actions) {
  const auto at = pushes_.find(seq);
  if (at == pushes_.end()) return;  // a late answer to a push that is complete
  Push& push = at->second;
  const bool all_done =
      answers.size() == push.pending.size() && push.rest.empty() &&
      std::all_of(answers.begin(), answers.end(), [&](const ShardAnswer& a) {
        return a.answer == Answer::kApplied && a.shard == push.pending[&a - answers.data()];
      });
  if (all_done) {
    push.pending.clear();  // the common case, without a search per shard
  } else {
    std::vector<ShardId> again;
    for (const ShardAnswer& answer : answers) {
      const bool waits =
          std::find(push.pending.begin(), push.pending.end(), answer.shard) != push.pending.end();
      if (waits && take(&push, answer, actions)) again.push_back(answer.shard);
    }
    if (!again.empty() && !stopped_) send(seq, &push, again, now, actions);
  }
  if (!push.pending.empty()) return;
  bytes_ -= push.bytes;
  pushes_.erase(at);
  PushAction release;
  release.kind = PushAction::Kind::kRelease;
  release.seq = seq;
  actions->push_back(std::move(release));
}

void PushSession::ask_refresh(std::vector<PushAction>* actions) {
  if (refreshing_) return;
  refreshing_ = true;
  PushAction refresh;
  refresh.kind = PushAction::Kind::kRefresh;
  actions->push_back(std::move(refresh));
}

void PushSession::on_time(TimeNs now, std::vector<PushAction>* actions) {
  if (stopped_) return;
  for (auto& [seq, push] : pushes_) {
    if (push.due > now) continue;
    push.timeout = std::min(push.timeout * 2, options_.timeout_max_ns);
    ++resends_;
    // The owner may have changed while nobody answered.
    refreshing_ = false;
    ask_refresh(actions);
    send(seq, &push, push.pending, now, actions);
  }
}

void PushSession::on_route(ShardRoute route, TimeNs now, std::vector<PushAction>* actions) {
  FLUX_CHECK(route.size() == route_.size(), "the number of shards never changes in a run");
  refreshing_ = false;
  const ShardRoute old = std::exchange(route_, std::move(route));
  if (stopped_) return;
  for (auto& [seq, push] : pushes_) {
    std::vector<ShardId> moved;
    for (const ShardId shard : push.pending)
      if (old.epoch[shard] != route_.epoch[shard]) moved.push_back(shard);
    if (!moved.empty()) send(seq, &push, moved, now, actions);
  }
}

TimeNs PushSession::next_time() const {
  FLUX_CHECK(!pushes_.empty(), "nothing in flight");
  TimeNs earliest = pushes_.begin()->second.due;
  for (const auto& [seq, push] : pushes_) earliest = std::min(earliest, push.due);
  return earliest;
}

}  // namespace flux
