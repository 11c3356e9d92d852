// The verb copy: a shard to a server that is to follow it.
//
// The image of the shard is taken under its lock at operation n, and the learner is a follower from
// n + 1 on; the image travels in parts while forwards go on (the receiver holds them back). The
// copy is done when the learner has all that was there when the last part had arrived.
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
  Copy(const std::shared_ptr<Server>& server, ShardId shard, ShardEpoch epoch, PeerPtr target)
      : shard(shard), epoch(epoch), target(std::move(target)), server_(server) {}

  const ShardId shard;
  const ShardEpoch epoch;
  const PeerPtr target;
  std::vector<States> askers;  // guarded by the server's mutex, as is begun
  bool begun = false;
  uint32_t link = 0;  // to the learner; written under the shard's lock, before a part is sent

  void begin() {
    const auto server = server_.lock();
    if (!server || is_ended()) return;
    auto image = server->begin_copy(shard, epoch, target, &link, &op_);
    if (!image.is_ok()) return end(image.status());
    image_ = std::move(image).value();
    parts_ =
        static_cast<uint32_t>(std::max<size_t>(1, (image_.size() + kPartBytes - 1) / kPartBytes));
    number_ = (hash_pair(server->options_.seed, 1) << 24) | link;  // links rise
    {
      const std::lock_guard lock(mutex_);
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
    request.incarnation = server->options_.incarnation;
    request.shard = shard;
    request.epoch = epoch;
    request.copy = number_;
    request.op = op_;
    request.part = part;
    request.parts = parts_;
    const size_t begin = part * kPartBytes;
    const size_t size = std::min(kPartBytes, image_.size() - begin);
    request.bytes = std::as_bytes(std::span(image_).subspan(begin, size));
    const auto done = [self = shared_from_this(), part](const Status& status) {
      self->on_part(part, status);
    };
    if (target->port) return target->port->install(request, done);
    done(error(Code::kUnavailable, "there is no way to server {}", target->id));
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
        shard, link,
        [self = shared_from_this()](const Status& reached) { self->on_caught_up(reached); });
    if (!begun.is_ok()) end(begun);
  }

  // Another copy may begin at the end of this one: not inside the call that acknowledges.
  void on_caught_up(const Status& status) {
    const auto server = server_.lock();
    if (!server) return;
    Executor* executor = server->options_.executor;
    if (!status.is_ok() || executor == nullptr) return end(status);
    executor->post(0, [self = shared_from_this()] { self->end(Status::ok()); });
  }

  const std::weak_ptr<Server> server_;
  // Written before the first part is sent, read from then on.
  std::string image_;
  uint32_t parts_ = 0;
  uint64_t op_ = 0, number_ = 0;

  std::mutex mutex_;
  uint32_t next_ = 0, arrived_ = 0, under_way_ = 0;  // parts; guarded by mutex_, as is the rest
  TimeNs moved_ns_ = 0;
  bool ended_ = false;
};

Result<std::string> Server::begin_copy(ShardId shard, ShardEpoch epoch, const PeerPtr& target,
                                       uint32_t* link, uint64_t* op) {
  kill_point(KillPoint::kCopyBegin);
  ShardSlot& slot = *slots_[shard];
  ShardImage image;
  {
    const std::lock_guard lock(slot.mutex);
    FLUX_RETURN_IF_ERROR(check_primary(slot, epoch, true, replicator_.now_ns()));
    if (slot.backup.peer && slot.backup.peer->id == target->id)
      return invalid("shard {}: server {} is its backup already", shard, target->id);
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
  if (status.is_ok() && call.shards.size() != 1)
    status = invalid("a copy of {} shards; each has its own call", call.shards.size());
  if (status.is_ok() && (target == kNoServer || target == self()))
    status = invalid("a copy to server {}, which is this one", target);
  if (!status.is_ok()) return done(status);
  const PeerPtr peer = replicator_.peer(target, address);
  const auto copy =
      std::make_shared<Copy>(shared_from_this(), call.shards[0], call.epochs[0], peer);
  std::shared_ptr<Copy> former;
  {
    const std::lock_guard lock(mutex_);
    const auto known = std::find_if(copies_.begin(), copies_.end(),
                                    [&](const auto& c) { return c->shard == copy->shard; });
    if (known != copies_.end()) {
      former = *known;
      if (former->target == peer && former->epoch == copy->epoch)
        return former->askers.push_back(std::move(done));
      copies_.erase(known);
    }
    copy->askers.push_back(std::move(done));
    copies_.push_back(copy);
  }
  if (former) former->end(error(Code::kStale, "another copy was asked for since"));
  begin_copies();
}

void Server::begin_copies() {
  std::vector<std::shared_ptr<Copy>> due;
  {
    const std::lock_guard lock(mutex_);
    std::map<PeerPtr, uint32_t> under_way;
    for (const auto& copy : copies_)
      if (copy->begun) ++under_way[copy->target];
    for (const auto& copy : copies_) {
      if (copy->begun || under_way[copy->target] == kCopiesUnderWay) continue;
      copy->begun = true;
      ++under_way[copy->target];
      due.push_back(copy);
    }
  }
  for (const auto& copy : due) copy->begin();
}

void Server::end_copy(const std::shared_ptr<Copy>& copy, const Status& status) {
  kill_point(KillPoint::kCopyEnd);
  ShardState state;
  {
    ShardSlot& slot = *slots_[copy->shard];
    const std::lock_guard lock(slot.mutex);
    if (!status.is_ok() && slot.learner.link == copy->link) slot.learner = Follower();
    state = state_of(slot);
  }
  std::vector<States> askers;
  {
    const std::lock_guard lock(mutex_);
    askers.swap(copy->askers);
    std::erase(copies_, copy);
  }
  for (const States& done : askers) {
    if (status.is_ok())
      done(std::vector{state});
    else
      done(status);
  }
  begin_copies();
}

}  // namespace flux
