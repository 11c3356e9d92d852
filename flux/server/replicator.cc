#include "flux/server/replicator.h"

#include <algorithm>
#include <utility>

namespace flux {
namespace {

const FollowRefusal* refusal_of(const ReplicateReply& reply, ShardId shard) {
  const auto at = std::find_if(reply.refused.begin(), reply.refused.end(),
                               [&](const FollowRefusal& r) { return r.shard == shard; });
  return at == reply.refused.end() ? nullptr : &*at;
}

}  // namespace

Replicator::Replicator(const ReplicatorOptions& options)
    : options_(options), receipts_(options.seed) {}

// What is under way holds a forward and so its peer, but nothing else does from now on.
Replicator::~Replicator() {
  for (const PeerPtr& peer : peers_) {
    std::map<uint64_t, ForwardPtr> open;
    const std::lock_guard lock(peer->mutex);
    open.swap(peer->open);
  }
}

std::vector<PeerPtr> Replicator::all_peers() const {
  const std::lock_guard lock(mutex_);
  return peers_;
}

uint32_t Replicator::new_link() {
  constexpr uint32_t kLinks = (1U << 24) - 1;  // 1 .. 2^24 - 1; see ShardSlot::acked
  return links_.fetch_add(1, std::memory_order_relaxed) % kLinks + 1;
}

PeerPtr Replicator::peer(ServerId id, const std::string& address) {
  const std::lock_guard lock(mutex_);
  const auto at = std::find_if(peers_.rbegin(), peers_.rend(), [&](const PeerPtr& known) {
    return known->id == id && known->address == address && known->port != nullptr;
  });
  if (at != peers_.rend()) return *at;
  const auto made = std::make_shared<Peer>();
  made->id = id;
  made->address = address;
  if (!address.empty() && options_.reach) made->port = options_.reach(address);
  peers_.push_back(made);
  return made;
}

ForwardPtr Replicator::begin(const PeerPtr& peer) {
  ForwardPtr forward = pool_.take();
  forward->peer = peer;
  forward->begun_ns = now_ns();
  forward->to_backup = false;
  forward->finished = false;
  forward->under_way = false;
  forward->again = false;
  forward->bytes = 0;
  return forward;
}

ReceiptPtr Replicator::send(Outbox* outbox, const ReplicateRequest& source) {
  ReceiptPtr receipt;
  if (!outbox->waits_.empty()) receipt = receipts_.make();
  for (Outbox::Item& item : outbox->items_) {
    Forward* forward = item.forward.get();
    if (forward->to_backup) {
      if (!receipt) receipt = receipts_.make();
      receipt->wait_more();
      forward->receipts.push_back(receipt);
    }
    forward->request = source;
    forward->request.push.step = nullptr;
    forward->tables.assign(source.push.tables.begin(), source.push.tables.end());
    forward->dense_parts.assign(source.push.dense_parts.begin(), source.push.dense_parts.end());
    bytes_.fetch_add(forward->bytes, std::memory_order_relaxed);
  }
  for (Outbox::Item& item : outbox->items_) transmit(item.forward, std::move(item.lock));
  if (receipt) {
    join(receipt, *outbox);
    receipts_.arrived(receipt);
  }
  outbox->items_.clear();
  outbox->waits_.clear();
  outbox->heads_.clear();
  return receipt;
}

void Replicator::join(const ReceiptPtr& receipt, const Outbox& outbox) {
  for (const auto& [peer, number] : outbox.waits_) {
    ForwardPtr other;
    {
      const std::lock_guard lock(peer->mutex);
      const auto at = peer->open.find(number);
      if (at != peer->open.end()) other = at->second;
    }
    if (!other) continue;
    const std::lock_guard lock(other->mutex);
    if (other->finished) continue;
    receipt->wait_more();
    other->receipts.push_back(receipt);
  }
  // Forwards that are over were acknowledged, unless their follower was cut off meanwhile.
  const auto book = book_.lock();
  ShardEpoch epoch;
  for (const auto& [shard, link] : outbox.heads_)
    if (!book || !book->is_live(shard, link, &epoch)) return receipts_.give_up(receipt);
}

void Replicator::transmit(const ForwardPtr& forward, std::unique_lock<std::mutex> lock) {
  forward->under_way = true;
  forward->request.from = self();
  forward->bind();
  const std::shared_ptr<ReplicaPort> port = forward->peer->port;
  lock.unlock();
  const auto done = [this, book = book_, forward](const ReplicateReply& reply) {
    if (const auto keep = book.lock()) on_reply(forward, reply);
  };
  if (port) return port->replicate(forward->request, done);
  done({Status(Code::kUnavailable, "there is no way to this server"), {}});
}

void Replicator::on_reply(const ForwardPtr& forward, const ReplicateReply& reply) {
  const auto book = book_.lock();
  if (!book) return;
  if (reply.status.is_ok()) {
    peer_answered(forward->peer);
    return take_reply(book.get(), forward, reply);
  }
  {
    const std::lock_guard lock(forward->mutex);
    forward->under_way = false;
    if (forward->finished) return;
  }
  resend_later(forward, true);
}

void Replicator::take_reply(FollowerBook* book, const ForwardPtr& forward,
                            const ReplicateReply& reply) {
  std::vector<ReceiptPtr> done, gone;
  std::vector<std::pair<FollowRefusal, uint32_t>> superseded;
  bool again = false;
  const TimeNs now = now_ns();
  {
    const std::lock_guard lock(forward->mutex);
    forward->under_way = false;
    if (forward->finished) return;
    bool lost = false;
    forward->filter([&](size_t i) {
      const FollowRefusal* refusal =
          reply.refused.empty() ? nullptr : refusal_of(reply, forward->shards[i]);
      if (refusal == nullptr) {
        const bool counts =
            book->acknowledge(forward->shards[i], forward->links[i], forward->ops[i], now);
        lost |= !counts && forward->as_backup[i] != 0;
        return false;
      }
      if (refusal->why == FollowAnswer::kOlderEpoch)
        superseded.emplace_back(*refusal, forward->links[i]);
      return true;
    });
    again = !forward->shards.empty();
    if (lost) gone.swap(forward->receipts);
    if (!again) {
      done.swap(forward->receipts);
      finish(forward.get());
    }
  }
  for (const ReceiptPtr& receipt : gone) receipts_.give_up(receipt);
  for (const ReceiptPtr& receipt : done) receipts_.arrived(receipt);
  for (const auto& [refusal, link] : superseded)
    book->superseded(refusal.shard, link, refusal.epoch);
  if (again) resend_later(forward, false);
}

void Replicator::resend(FollowerBook* book, const ForwardPtr& forward) {
  std::vector<ReceiptPtr> gone, done;
  {
    std::unique_lock lock(forward->mutex);
    if (forward->finished || forward->under_way) return;
    bool lost = false;
    forward->filter([&](size_t i) {
      const bool live = book->is_live(forward->shards[i], forward->links[i], &forward->epochs[i]);
      lost |= !live && (forward->as_backup[i] != 0 || !forward->to_backup);
      return live;
    });
    if (lost) gone.swap(forward->receipts);
    forward->again = true;
    if (forward->shards.empty()) {
      done.swap(forward->receipts);  // whoever counts has acknowledged
      finish(forward.get());
    } else {
      transmit(forward, std::move(lock));
    }
  }
  for (const ReceiptPtr& receipt : gone) receipts_.give_up(receipt);
  for (const ReceiptPtr& receipt : done) receipts_.arrived(receipt);
}

void Replicator::finish(Forward* forward) {
  forward->finished = true;
  bytes_.fetch_sub(forward->bytes, std::memory_order_relaxed);
  forward->release();
  const std::lock_guard lock(forward->peer->mutex);
  if (forward->again) forward->peer->pause_ns = 0;
  forward->peer->waiting.erase(forward->number);
  forward->peer->open.erase(forward->number);
}

void Replicator::resend_later(const ForwardPtr& forward, bool failed) {
  const PeerPtr peer = forward->peer;
  const std::lock_guard lock(peer->mutex);
  if (failed) peer->failing = true;
  if (!peer->open.contains(forward->number)) return;
  peer->waiting.insert(forward->number);
  arm(peer, failed ? options_.resend_ns : std::max(peer->pause_ns, options_.refused_ns));
}

void Replicator::arm(const PeerPtr& peer, TimeNs delay_ns) {
  if (options_.executor == nullptr) return;
  const TimeNs at = now_ns() + delay_ns;
  if (peer->timer_ns != 0 && peer->timer_ns <= at) return;
  peer->timer_ns = at;
  options_.executor->post(delay_ns, [this, book = book_, peer] {
    if (const auto keep = book.lock()) on_timer(keep.get(), peer);
  });
}

// A peer that does not answer gets one message at a time, until it does.
void Replicator::on_timer(FollowerBook* book, const PeerPtr& peer) {
  std::vector<ForwardPtr> due;
  {
    const std::lock_guard lock(peer->mutex);
    peer->timer_ns = 0;
    peer->pause_ns =
        std::min(std::max(2 * peer->pause_ns, options_.refused_ns), options_.resend_ns);
    while (!peer->waiting.empty() && (due.empty() || !peer->failing)) {
      const auto at = peer->open.find(*peer->waiting.begin());
      if (at != peer->open.end()) due.push_back(at->second);
      peer->waiting.erase(peer->waiting.begin());
    }
  }
  for (const ForwardPtr& forward : due) resend(book, forward);
  const std::lock_guard lock(peer->mutex);
  if (!peer->waiting.empty()) arm(peer, options_.resend_ns);
}

void Replicator::peer_answered(const PeerPtr& peer) {
  const std::lock_guard lock(peer->mutex);
  if (!peer->failing) return;
  peer->failing = false;
  if (!peer->waiting.empty()) arm(peer, 0);
}

void Replicator::cut(const std::vector<Cut>& cuts) {
  std::vector<std::pair<PeerPtr, std::map<ShardId, uint32_t>>> by_peer;
  for (const Cut& one : cuts) {
    auto at = std::find_if(by_peer.begin(), by_peer.end(),
                           [&](const auto& entry) { return entry.first == one.peer; });
    if (at == by_peer.end()) at = by_peer.insert(at, {one.peer, {}});
    at->second[one.shard] = one.link;
  }
  std::vector<ReceiptPtr> gone;
  for (const auto& [peer, links] : by_peer) {
    std::vector<ForwardPtr> open;
    {
      const std::lock_guard lock(peer->mutex);
      for (const auto& [number, forward] : peer->open) open.push_back(forward);
    }
    for (const ForwardPtr& forward : open) {
      const std::lock_guard lock(forward->mutex);
      bool hit = false, counts = false;
      for (size_t i = 0; i < forward->shards.size(); ++i) {
        const auto at = links.find(forward->shards[i]);
        if (at != links.end() && at->second == forward->links[i]) {
          hit = true;
          forward->as_backup[i] = 0;
        }
        counts |= forward->as_backup[i] != 0;
      }
      if (!hit) continue;
      forward->to_backup = counts;
      gone.insert(gone.end(), forward->receipts.begin(), forward->receipts.end());
      forward->receipts.clear();
    }
    // They are looked at soon: what is left of them may be nothing.
    const std::lock_guard lock(peer->mutex);
    if (!peer->waiting.empty()) arm(peer, 0);
  }
  for (const ReceiptPtr& receipt : gone) receipts_.give_up(receipt);
}

std::vector<ServerId> Replicator::suspects() {
  const TimeNs before = now_ns() - options_.suspect_ns;
  std::vector<ServerId> found;
  for (const PeerPtr& peer : all_peers()) {
    const std::lock_guard lock(peer->mutex);
    const bool late = std::any_of(peer->open.begin(), peer->open.end(), [&](const auto& entry) {
      return entry.second->to_backup && entry.second->begun_ns < before;
    });
    if (late && std::find(found.begin(), found.end(), peer->id) == found.end())
      found.push_back(peer->id);
  }
  return found;
}

std::vector<PeerPtr> Replicator::silent_for(TimeNs time) {
  const TimeNs before = now_ns() - time;
  std::vector<PeerPtr> found;
  for (const PeerPtr& peer : all_peers()) {
    const std::lock_guard lock(peer->mutex);
    if (!peer->open.empty() && peer->open.begin()->second->begun_ns < before) found.push_back(peer);
  }
  return found;
}

bool Replicator::is_open(const Follower& follower) {
  const std::lock_guard lock(follower.peer->mutex);
  return follower.peer->open.contains(follower.last);
}

size_t Replicator::open() const {
  size_t sum = 0;
  for (const PeerPtr& peer : all_peers()) {
    const std::lock_guard lock(peer->mutex);
    sum += peer->open.size();
  }
  return sum;
}

}  // namespace flux
