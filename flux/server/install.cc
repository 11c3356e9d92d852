// The verb install: a copy of a shard arrives in parts and becomes a complete learner.
#include <numeric>

#include "flux/base/kill_point.h"
#include "flux/server/server.h"

namespace flux {
namespace {

constexpr uint32_t kPartsMax = 1U << 20;

}  // namespace

Status Server::check_install(const ShardSlot& slot, const InstallRequest& request) const {
  const ShardReplica& replica = slot.replica;
  // Numbers of copies of one epoch rise: it has one primary, which counts them.
  const bool older =
      slot.installing &&
      (request.epoch < slot.installing->epoch ||
       (request.epoch == slot.installing->epoch && request.copy < slot.installing->copy));
  if (older || request.epoch < replica.epoch())
    return error(Code::kStale, "shard {}: an older copy", request.shard);
  const bool member = slot.complete && (replica.role() == ReplicaRole::kPrimary ||
                                        replica.role() == ReplicaRole::kBackup);
  if (member && request.epoch == replica.epoch())
    return error(Code::kStale, "shard {} is here already as {} of that epoch", request.shard,
                 role_name(replica.role()));
  const bool same = slot.installing && slot.installing->copy == request.copy;
  if (same && (slot.installing->parts.size() != request.parts || slot.installing->op != request.op))
    return invalid("shard {}: parts of one copy that do not belong together", request.shard);
  return Status::ok();
}

Status Server::take_part(ShardSlot* slot, const InstallRequest& request,
                         std::unique_ptr<Installing>* whole) {
  FLUX_RETURN_IF_ERROR(check_install(*slot, request));
  if (!slot->installing || slot->installing->copy != request.copy) {
    kill_point(KillPoint::kInstallBegin);
    auto begun = std::make_unique<Installing>();
    begun->copy = request.copy;
    begun->epoch = request.epoch;
    begun->op = request.op;
    begun->parts.resize(request.parts);
    begun->has.resize(request.parts);
    begun->missing = request.parts;
    slot->installing = std::move(begun);
  }
  Installing& now = *slot->installing;
  if (now.has[request.part] == 0) {
    now.parts[request.part].assign(reinterpret_cast<const char*>(request.bytes.data()),
                                   request.bytes.size());
    now.has[request.part] = 1;
    --now.missing;
  }
  if (now.missing != 0) return Status::ok();
  // What comes meanwhile is still held back: an empty marker stays.
  auto marker = std::make_unique<Installing>();
  marker->copy = request.copy;
  marker->epoch = request.epoch;
  marker->op = request.op;
  marker->parts.resize(request.parts);
  marker->has.assign(request.parts, 1);
  marker->missing = request.parts;  // never done twice
  *whole = std::move(slot->installing);
  slot->installing = std::move(marker);
  return Status::ok();
}

void Server::install(const InstallRequest& request, std::function<void(Status)> done) {
  if (request.incarnation != options_.incarnation || closed_)
    return done(error(Code::kStale, "a copy for another incarnation"));
  if (request.shard >= slots_.size() || request.parts == 0 || request.parts > kPartsMax ||
      request.part >= request.parts || request.copy == 0)
    return done(
        invalid("part {} of {} of a copy of shard {}", request.part, request.parts, request.shard));
  ShardSlot& slot = *slots_[request.shard];
  std::unique_ptr<Installing> whole;
  Status status;
  {
    const std::lock_guard lock(slot.mutex);
    if (slot.installed == request.copy && slot.complete) return done(Status::ok());
    status = take_part(&slot, request, &whole);
  }
  if (status.is_ok() && whole) status = finish_install(request, *whole);
  done(status);
}

Status Server::finish_install(const InstallRequest& request, const Installing& whole) {
  kill_point(KillPoint::kInstallMid);
  std::string bytes;
  bytes.reserve(std::accumulate(whole.parts.begin(), whole.parts.end(), size_t{0},
                                [](size_t n, const std::string& p) { return n + p.size(); }));
  for (const std::string& part : whole.parts) bytes += part;
  ShardRows rows = make_rows(request.shard);
  Result<ShardImage> image = decode_shard(fmt::format("copy of shard {}", request.shard), bytes);
  Status status = image.status();
  if (image.is_ok() && image.value().replica.op() != request.op)
    status = error(Code::kCorrupt, "a copy at operation {} that says it is at {}",
                   image.value().replica.op(), request.op);
  if (image.is_ok() && status.is_ok()) status = fill_rows(image.value(), request.shard, &rows);
  Ended ended;
  ShardSlot& slot = *slots_[request.shard];
  {
    const std::lock_guard lock(slot.mutex);
    if (!slot.installing || slot.installing->copy != request.copy) {
      status = error(Code::kStale, "shard {}: another copy came", request.shard);
    } else {
      slot.installing.reset();
      if (status.is_ok()) status = check_install(slot, request);
      if (status.is_ok()) {
        drop_replica(&slot);
        slot.rows = std::move(rows);
        slot.replica = image.value().replica;
        slot.replica.set_incarnation(options_.incarnation);
        slot.replica.set_role(ReplicaRole::kLearner);
        if (request.epoch > slot.replica.epoch()) slot.replica.set_epoch(request.epoch);
        slot.complete = true;
        slot.installed = request.copy;
      }
      drain(&slot, &ended);
    }
  }
  tell_ended(&ended);
  kill_point(KillPoint::kInstallEnd);
  return status;
}

}  // namespace flux
