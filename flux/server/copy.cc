// The verb copy: shards, one after the other, to a server that is to follow them.
//
// The image of a shard is taken under its lock at operation n, and the learner is a follower from
// n + 1 on; the image travels in parts while forwards go on (the receiver holds them back). The
// shard is done when the learner has all that was there when its last part had arrived.
#include <algorithm>

#include "flux/base/hash.h"
#include "flux/base/kill_point.h"
#include "flux/server/server.h"

namespace flux {
namespace {

constexpr size_t kPartBytes = 4U << 20;
constexpr uint32_t kPartsUnderWay = 2;
constexpr uint32_t kCopiesUnderWay = 4;  // to one server: an image is a shard's size of memory
constexpr TimeNs kPartAgain = 100 * kMillisecond;

}  // namespace

class Server::Copy : public std::enable_shared_from_this<Copy> {
 public:
  Copy(const std::shared_ptr<Server>& server, AdminCall call, PeerPtr target)
      : server_(server), call_(std::move(call)), target_(std::move(target)) {}

  const AdminCall& call() const { return call_; }
  bool is_about(const AdminCall& call) const {
    return std::any_of(call_.shards.begin(), call_.shards.end(), [&](ShardId shard) {
      return std::find(call.shards.begin(), call.shards.end(), shard) != call.shards.end();
    });
  }
  const PeerPtr& target() const { return target_; }
  std::vector<States> askers;  // guarded by the server's mutex, as is begun
  bool begun = false;

  void next_shard() {
    const auto server = server_.lock();
    if (!server) return;
    if (is_ended()) return;
    if (shard_ == call_.shards.size()) return end(Status::ok());
    uint32_t link = 0;
    uint64_t op = 0;
    auto bytes = server->begin_copy(call_, shard_, target_, &link, &op);
    if (!bytes.is_ok()) return end(bytes.status());
    {
      const std::lock_guard lock(mutex_);
      image_ = std::make_shared<const std::string>(std::move(bytes).value());
      link_ = link;
      op_ = op;
      parts_ = static_cast<uint32_t>(
          std::max<size_t>(1, (image_->size() + kPartBytes - 1) / kPartBytes));
      next_ = arrived_ = under_way_ = 0;
      number_ = (hash_pair(server->options_.seed, 1) << 24) | link;  // links rise
      moved_ns_ = server->replicator_.now_ns();
    }
    send_parts();
  }

  void end(const Status& status) {
    {
      const std::lock_guard lock(mutex_);
      if (ended_) return;
      ended_ = true;
    }
    const auto server = server_.lock();
    if (server) server->end_copy(shared_from_this(), status);
  }

 private:
  void send_parts() {
    while (true) {
      uint32_t part = 0;
      {
        const std::lock_guard lock(mutex_);
        if (ended_ || next_ == parts_ || under_way_ == kPartsUnderWay) return;
        part = next_++;
        ++under_way_;
      }
      send_part(part);
    }
  }

  bool is_ended() {
    const std::lock_guard lock(mutex_);
    return ended_;
  }

  void send_part(uint32_t part) {
    const auto server = server_.lock();
    if (!server || is_ended()) return;
    InstallRequest request;
    std::shared_ptr<const std::string> image;
    {
      const std::lock_guard lock(mutex_);
      image = image_;
      request.epoch = call_.epochs[shard_];
      request.shard = call_.shards[shard_];
      request.copy = number_;
      request.op = op_;
      request.part = part;
      request.parts = parts_;
    }
    request.incarnation = server->options_.incarnation;
    const size_t begin = part * kPartBytes;
    const size_t size = std::min(kPartBytes, image->size() - begin);
    request.bytes = std::as_bytes(std::span(*image).subspan(begin, size));
    const auto done = [self = shared_from_this(), image, part](const Status& status) {
      self->on_part(part, status);
    };
    if (target_->port) return target_->port->install(request, done);
    done(error(Code::kUnavailable, "there is no way to server {}", target_->id));
  }

  void on_part(uint32_t part, const Status& status) {
    const auto server = server_.lock();
    if (!server || is_ended()) return;
    const TimeNs now = server->replicator_.now_ns();
    kill_point(KillPoint::kCopyMid);
    if (!status.is_ok()) {
      Executor* executor = server->options_.executor;
      bool again = status.code() == Code::kUnavailable && executor != nullptr;
      {
        const std::lock_guard lock(mutex_);
        again &= now - moved_ns_ < server->options_.admin_deadline_ns;
      }
      if (!again) return end(status);
      executor->post(kPartAgain, [self = shared_from_this(), part] { self->send_part(part); });
      return;
    }
    bool all = false;
    {
      const std::lock_guard lock(mutex_);
      moved_ns_ = now;
      --under_way_;
      all = ++arrived_ == parts_;
    }
    if (!all) return send_parts();
    const Status begun = server->catch_up(
        call_.shards[shard_], link_,
        [self = shared_from_this()](const Status& reached) { self->on_caught_up(reached); });
    if (!begun.is_ok()) end(begun);
  }

  void on_caught_up(const Status& status) {
    if (!status.is_ok()) return end(status);
    const auto server = server_.lock();
    if (!server) return;
    {
      const std::lock_guard lock(mutex_);
      ++shard_;
      image_.reset();
    }
    if (server->options_.executor == nullptr) return next_shard();
    server->options_.executor->post(0, [self = shared_from_this()] { self->next_shard(); });
  }

  const std::weak_ptr<Server> server_;
  const AdminCall call_;
  const PeerPtr target_;
  std::mutex mutex_;
  size_t shard_ = 0;  // in the call; guarded by mutex_, as is the rest
  std::shared_ptr<const std::string> image_;
  uint32_t link_ = 0, parts_ = 0, next_ = 0, arrived_ = 0, under_way_ = 0;
  uint64_t op_ = 0, number_ = 0;
  TimeNs moved_ns_ = 0;
  bool ended_ = false;
};

Result<std::string> Server::begin_copy(const AdminCall& call, size_t i, const PeerPtr& target,
                                       uint32_t* link, uint64_t* op) {
  kill_point(KillPoint::kCopyBegin);
  ShardSlot& slot = *slots_[call.shards[i]];
  ShardImage image;
  {
    const std::lock_guard lock(slot.mutex);
    FLUX_RETURN_IF_ERROR(check_primary(slot, call.epochs[i], true, replicator_.now_ns()));
    if (slot.backup.peer && slot.backup.peer->id == target->id)
      return invalid("shard {}: server {} is its backup already", call.shards[i], target->id);
    image = image_of(&slot);
    slot.learner = {target, replicator_.new_link(), 0};
    *link = slot.learner.link;
    *op = slot.replica.op();
  }
  return encode_shard(image);
}

Status Server::catch_up(ShardId shard, uint32_t link, Done done) {
  Outbox outbox(&replicator_);
  {
    ShardSlot& slot = *slots_[shard];
    const std::lock_guard lock(slot.mutex);
    if (!slot.learner.peer || slot.learner.link != link)
      return error(Code::kUnavailable, "shard {} got another configuration meanwhile", shard);
    outbox.add(&slot.learner, false, shard, slot.replica.epoch(), slot.replica.op(),
               slot.replica.stream_hash(), 0);
    outbox.wait_for_head(slot.learner, shard);
  }
  ReplicateRequest probe;
  probe.kind = OpKind::kProbe;
  probe.push.claim.incarnation = options_.incarnation;
  answer_when_replicated(replicator_.send(&outbox, probe), std::move(done));
  return Status::ok();
}

void Server::copy(const AdminCall& call, ServerId target, const std::string& address, States done) {
  Status status = check_call(call, true);
  if (status.is_ok() && (target == kNoServer || target == self()))
    status = invalid("a copy to server {}, which is this one", target);
  if (!status.is_ok()) return done(status);
  const PeerPtr peer = replicator_.peer(target, address);
  std::shared_ptr<Copy> copy;
  std::vector<std::shared_ptr<Copy>> former;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& known : copies_) {
      if (known->target() == peer && known->call().shards == call.shards &&
          known->call().epochs == call.epochs) {
        known->askers.push_back(std::move(done));
        return;
      }
      if (known->is_about(call)) former.push_back(known);
    }
    copy = std::make_shared<Copy>(shared_from_this(), call, peer);
    copy->askers.push_back(std::move(done));
    copies_.push_back(copy);
  }
  for (const auto& one : former) one->end(error(Code::kStale, "another copy was asked for since"));
  begin_copies();
}

void Server::begin_copies() {
  std::vector<std::shared_ptr<Copy>> due;
  {
    const std::lock_guard lock(mutex_);
    std::map<PeerPtr, uint32_t> under_way;
    for (const auto& copy : copies_)
      if (copy->begun) ++under_way[copy->target()];
    for (const auto& copy : copies_) {
      if (copy->begun || under_way[copy->target()] == kCopiesUnderWay) continue;
      copy->begun = true;
      ++under_way[copy->target()];
      due.push_back(copy);
    }
  }
  for (const auto& copy : due) copy->next_shard();
}

void Server::end_copy(const std::shared_ptr<Copy>& copy, const Status& status) {
  kill_point(KillPoint::kCopyEnd);
  const AdminCall& call = copy->call();
  std::vector<ShardState> states;
  for (const ShardId id : call.shards) {
    const std::lock_guard lock(slots_[id]->mutex);
    if (!status.is_ok() && slots_[id]->learner.peer == copy->target())
      slots_[id]->learner = Follower();
    states.push_back(state_of(*slots_[id]));
  }
  std::vector<States> askers;
  {
    const std::lock_guard lock(mutex_);
    askers.swap(copy->askers);
    std::erase(copies_, copy);
  }
  for (const States& done : askers) {
    if (status.is_ok())
      done(states);
    else
      done(status);
  }
  begin_copies();
}

}  // namespace flux
