#include "flux/protocol/push_session.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <numeric>
#include <utility>

#include "flux/base/check.h"

namespace flux {
namespace {

constexpr TimeNs kNever = std::numeric_limits<TimeNs>::max();

bool holds(const std::vector<ShardId>& rising, ShardId shard) {
  return std::binary_search(rising.begin(), rising.end(), shard);
}

// Takes `some` (rising) out of `from` (rising).
void take_out(std::vector<ShardId>* from, const std::vector<ShardId>& some) {
  std::erase_if(*from, [&](ShardId shard) { return holds(some, shard); });
}

void put_in(std::vector<ShardId>* into, const std::vector<ShardId>& some) {
  std::vector<ShardId> all;
  all.reserve(into->size() + some.size());
  std::set_union(into->begin(), into->end(), some.begin(), some.end(), std::back_inserter(all));
  *into = std::move(all);
}

}  // namespace

PushSession::PushSession(PushSessionOptions options, ShardRoute route)
    : options_(options), route_(std::move(route)) {
  FLUX_CHECK(route_.server.size() == route_.epoch.size(), "a route names an epoch per shard");
}

bool PushSession::has_room() const {
  return !stopped_ && unapplied_ < options_.pushes_max && bytes_ < options_.bytes_max;
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
  push.retry = options_.retry_ns;
  push.pending.resize(route_.size());
  std::iota(push.pending.begin(), push.pending.end(), 0U);
  bytes_ += bytes;
  ++unapplied_;
  send(seq, &push, push.pending, now, actions);
  return seq;
}

void PushSession::send(PushSeq seq, Push* push, const std::vector<ShardId>& shards, TimeNs now,
                       std::vector<PushAction>* actions) {
  // A part that is sent again does not put off the rest.
  if (shards.size() == push->pending.size()) push->due = now + push->timeout;
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

// Was this shard sent there, under the epoch that it has now?
bool PushSession::current(const PushAction& sent, ShardId shard) const {
  const auto at = std::lower_bound(sent.shards.begin(), sent.shards.end(), shard);
  if (at == sent.shards.end() || *at != shard || shard >= route_.size()) return false;
  return sent.epochs[static_cast<size_t>(at - sent.shards.begin())] == route_.epoch[shard];
}

void PushSession::on_answers(const PushAction& sent, std::span<const ShardAnswer> answers,
                             uint64_t receipt, TimeNs now, std::vector<PushAction>* actions) {
  const auto at = pushes_.find(sent.seq);
  if (at == pushes_.end()) return;  // a late answer to a push that is complete
  Push& push = at->second;
  std::vector<ShardId> receipted;  // applied now
  if (!take_all(&push, sent, answers, receipt != 0 ? &receipted : nullptr))
    take_each(&push, sent, answers, now, &receipted, actions);
  if (receipt != 0 && !receipted.empty())
    add_receipt(sent.seq, &push, sent, receipt, std::move(receipted), now, actions);
  settle(at, actions);
}

bool PushSession::take_all(Push* push, const PushAction& sent, std::span<const ShardAnswer> answers,
                           std::vector<ShardId>* receipted) {
  if (!push->rest.empty() || !push->refused.empty() || answers.size() != sent.shards.size())
    return false;
  for (size_t i = 0; i < answers.size(); ++i)
    if (answers[i].answer != Answer::kApplied || answers[i].shard != sent.shards[i] ||
        sent.epochs[i] != route_.epoch[sent.shards[i]])
      return false;
  size_t next = 0;
  std::erase_if(push->pending, [&](ShardId shard) {
    while (next < answers.size() && answers[next].shard < shard) ++next;
    if (next >= answers.size() || answers[next].shard != shard) return false;
    if (receipted != nullptr) receipted->push_back(shard);
    return true;
  });
  return true;
}

void PushSession::take_each(Push* push, const PushAction& sent,
                            std::span<const ShardAnswer> answers, TimeNs now,
                            std::vector<ShardId>* receipted, std::vector<PushAction>* actions) {
  std::vector<ShardId> again;
  for (const ShardAnswer& answer : answers) {
    if (!holds(push->pending, answer.shard) || !current(sent, answer.shard)) continue;
    if (take(push, answer, now, receipted, actions)) again.push_back(answer.shard);
  }
  std::sort(receipted->begin(), receipted->end());
  std::sort(again.begin(), again.end());
  if (!again.empty() && !stopped_) send(sent.seq, push, again, now, actions);
}

bool PushSession::take(Push* push, const ShardAnswer& answer, TimeNs now,
                       std::vector<ShardId>* receipted, std::vector<PushAction>* actions) {
  switch (answer.answer) {
    case Answer::kDuplicate:
      ++duplicates_;
      [[fallthrough]];
    case Answer::kApplied:
      // For a shard with a part, only the rest was sent, so this answer completes it too.
      std::erase(push->pending, answer.shard);
      std::erase(push->refused, answer.shard);
      push->rest.erase(answer.shard);
      push->stale_since = -1;
      receipted->push_back(answer.shard);
      return false;
    case Answer::kPartial:
      return take_partial(push, answer);
    case Answer::kStaleIncarnation:
      if (push->stale_since < 0) push->stale_since = now;
      if (now - push->stale_since >= options_.stale_patience_ns) {
        stop(answer, actions);
        return false;
      }
      [[fallthrough]];
    case Answer::kStaleEpoch:
    case Answer::kNotServing:
      retry_soon(push, answer.shard, now);
      ask_refresh(false, actions);
      return false;  // sent again when a new map is here, or when its time comes
    case Answer::kStaleGeometry:
    case Answer::kMalformed:
    case Answer::kStaleRound:
      stop(answer, actions);
      return false;
  }
  return false;
}

bool PushSession::take_partial(Push* push, const ShardAnswer& answer) {
  // A shard never loses a batch it has, so what an earlier answer took off stays off.
  const auto part = push->rest.find(answer.shard);
  const std::vector<BatchId>& sent = part != push->rest.end() ? part->second : push->ids;
  std::vector<BatchId> left;
  for (const BatchId& id : sent)
    if (std::find(answer.already.begin(), answer.already.end(), id) == answer.already.end())
      left.push_back(id);
  // It has all of it, bit by bit. Whether that is replicated only a "duplicate" says.
  if (left.empty()) {
    push->rest.erase(answer.shard);
    return true;
  }
  // A late or repeated answer says nothing new. Sending again for each of those would make
  // more of them each time where messages are doubled.
  if (left.size() == sent.size()) return false;
  push->rest[answer.shard] = std::move(left);
  return true;
}

void PushSession::stop(const ShardAnswer& answer, std::vector<PushAction>* actions) {
  if (stopped_) return;
  stopped_ = true;
  PushAction stop;
  stop.kind = PushAction::Kind::kStop;
  stop.reason = std::string("shard ") + std::to_string(answer.shard) +
                " refused a push: " + answer_name(answer.answer);
  if (answer.answer == Answer::kStaleRound) stop.reason += ", this worker was taken for dead";
  actions->push_back(std::move(stop));
}

void PushSession::retry_soon(Push* push, ShardId shard, TimeNs now) {
  if (push->refused.empty()) push->retry_due = now + push->retry;
  const auto at = std::lower_bound(push->refused.begin(), push->refused.end(), shard);
  if (at == push->refused.end() || *at != shard) push->refused.insert(at, shard);
}

void PushSession::add_receipt(PushSeq seq, Push* push, const PushAction& sent, uint64_t receipt,
                              std::vector<ShardId> shards, TimeNs now,
                              std::vector<PushAction>* actions) {
  Receipt one{sent.server, receipt, std::move(shards), now + options_.answer_timeout_ns,
              options_.answer_timeout_ns};
  if (!stopped_) actions->push_back(confirm(seq, one));
  push->receipts.push_back(std::move(one));
}

PushAction PushSession::confirm(PushSeq seq, const Receipt& receipt) {
  PushAction ask;
  ask.kind = PushAction::Kind::kConfirm;
  ask.seq = seq;
  ask.server = receipt.server;
  ask.receipt = receipt.receipt;
  return ask;
}

void PushSession::on_confirm(const PushAction& asked, bool ok, TimeNs now,
                             std::vector<PushAction>* actions) {
  const auto at = pushes_.find(asked.seq);
  if (at == pushes_.end()) return;
  Push& push = at->second;
  const auto found =
      std::find_if(push.receipts.begin(), push.receipts.end(), [&](const Receipt& one) {
        return one.server == asked.server && one.receipt == asked.receipt;
      });
  if (found == push.receipts.end()) return;  // answered before, or void by a new epoch
  const Receipt receipt = std::move(*found);
  push.receipts.erase(found);
  if (!ok) {
    // Not at once: a server that gives up its backup says so to every push until the map changes.
    put_in(&push.pending, receipt.shards);
    push.due = std::max(push.due, now + push.timeout);
    for (const ShardId shard : receipt.shards) retry_soon(&push, shard, now);
    if (!stopped_) ask_refresh(false, actions);
  }
  settle(at, actions);
}

void PushSession::on_lost(const PushAction& sent, TimeNs now, std::vector<PushAction>* actions) {
  const auto at = pushes_.find(sent.seq);
  if (at == pushes_.end() || stopped_) return;
  Push& push = at->second;
  bool waits = false;
  if (sent.kind == PushAction::Kind::kConfirm) {
    for (Receipt& one : push.receipts)
      if (one.server == sent.server && one.receipt == sent.receipt) {
        one.due = std::min(one.due, now + push.retry);
        push.retry = std::min(push.retry * 2, options_.retry_max_ns);
        waits = true;
      }
  } else {
    for (const ShardId shard : sent.shards)
      if (holds(push.pending, shard) && current(sent, shard)) {
        retry_soon(&push, shard, now);
        waits = true;
      }
  }
  if (waits) ask_refresh(false, actions);
}

void PushSession::settle(std::map<PushSeq, Push>::iterator at, std::vector<PushAction>* actions) {
  Push& push = at->second;
  if (!push.pending.empty()) return;
  PushAction told;
  told.seq = at->first;
  if (!push.applied) {
    push.applied = true;
    --unapplied_;
    told.kind = PushAction::Kind::kApplied;
    actions->push_back(told);
  }
  if (!push.receipts.empty()) return;
  bytes_ -= push.bytes;
  pushes_.erase(at);
  told.kind = PushAction::Kind::kRelease;
  actions->push_back(std::move(told));
}

// `again`: the question before may be lost.
void PushSession::ask_refresh(bool again, std::vector<PushAction>* actions) {
  if (refreshing_ && !again) return;
  refreshing_ = true;
  const auto asked = [](const PushAction& action) {
    return action.kind == PushAction::Kind::kRefresh;
  };
  if (std::any_of(actions->begin(), actions->end(), asked)) return;
  PushAction refresh;
  refresh.kind = PushAction::Kind::kRefresh;
  actions->push_back(std::move(refresh));
}

void PushSession::on_time(TimeNs now, std::vector<PushAction>* actions) {
  if (stopped_) return;
  for (auto& [seq, push] : pushes_) {
    if (due_of(push) > now) continue;
    ask_refresh(true, actions);  // the owner may have changed while nobody answered
    ++resends_;
    if (!push.pending.empty() && push.due <= now) {
      push.timeout = std::min(push.timeout * 2, options_.timeout_max_ns);
      push.refused.clear();
      send(seq, &push, push.pending, now, actions);
    } else if (!push.refused.empty() && push.retry_due <= now) {
      push.retry = std::min(push.retry * 2, options_.retry_max_ns);
      const std::vector<ShardId> shards = std::exchange(push.refused, {});
      send(seq, &push, shards, now, actions);
    }
    for (Receipt& receipt : push.receipts) {
      if (receipt.due > now) continue;
      receipt.timeout = std::min(receipt.timeout * 2, options_.timeout_max_ns);
      receipt.due = now + receipt.timeout;
      actions->push_back(confirm(seq, receipt));
    }
  }
}

void PushSession::on_route(ShardRoute route, TimeNs now, std::vector<PushAction>* actions) {
  FLUX_CHECK(route.size() == route_.size(), "the number of shards never changes in a run");
  refreshing_ = false;
  const ShardRoute old = std::exchange(route_, std::move(route));
  if (stopped_) return;
  std::vector<ShardId> moved;
  for (ShardId shard = 0; shard < route_.size(); ++shard)
    if (old.epoch[shard] != route_.epoch[shard]) moved.push_back(shard);
  if (moved.empty()) return;
  for (auto& [seq, push] : pushes_) {
    // What a former owner had, the new one may lack: it is asked with the whole set.
    for (const ShardId shard : moved) push.rest.erase(shard);
    for (Receipt& receipt : push.receipts) take_out(&receipt.shards, moved);
    std::erase_if(push.receipts, [](const Receipt& receipt) { return receipt.shards.empty(); });
    take_out(&push.refused, moved);
    put_in(&push.pending, moved);
    push.retry = options_.retry_ns;
    push.due = std::max(push.due, now + push.timeout);
    send(seq, &push, moved, now, actions);
  }
}

ServerId PushSession::waits_for() const {
  FLUX_CHECK(!pushes_.empty(), "nothing in flight");
  const Push& push = pushes_.begin()->second;
  return push.pending.empty() ? push.receipts.front().server : route_.server[push.pending.front()];
}

TimeNs PushSession::due_of(const Push& push) {
  TimeNs due = push.pending.empty() ? kNever : push.due;
  if (!push.refused.empty()) due = std::min(due, push.retry_due);
  for (const Receipt& receipt : push.receipts) due = std::min(due, receipt.due);
  return due;
}

TimeNs PushSession::next_time() const {
  FLUX_CHECK(!pushes_.empty(), "nothing in flight");
  TimeNs earliest = kNever;
  for (const auto& [seq, push] : pushes_) earliest = std::min(earliest, due_of(push));
  return earliest;
}

}  // namespace flux
