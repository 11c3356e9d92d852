// The verb pull: current rows and dense values; changes nothing.
#include "flux/server/hinted_keys.h"
#include "flux/server/server.h"

namespace flux {

// Each shard gets few keys of a batch: its index lines are asked for while shards before it work. A
// shard whose lock is taken is left alone: this is only a hint.
void Server::prefetch_ahead(const ShardedKeys& keys, std::span<const ShardId> shards, size_t i,
                            uint32_t phase) const {
  constexpr size_t kAhead = 2;
  const size_t first = i == 0 ? 0 : i + kAhead;
  for (size_t j = first; j <= i + kAhead && j < shards.size(); ++j) {
    const ShardId id = shards[j];
    if (id >= options_.shards || keys.begin == nullptr) return;  // dense, or no rows at all
    if (!shape_.has_phase(phase)) return;                        // nobody has checked it yet
    const uint32_t begin = keys.begin[id];
    const uint32_t end = keys.begin[id + 1];
    if (begin >= end || end > keys.limit) continue;
    const std::unique_lock lock(slots_[id]->mutex, std::try_to_lock);
    if (!lock.owns_lock()) continue;
    // The first table that is asked finds the rows for the others (RowHints). A shard that is not
    // here has no tables.
    const std::vector<uint32_t>& width = widths(phase, id);
    const std::vector<SparseShard>& tables = slots_[id]->rows.tables;
    for (size_t t = 0; t < tables.size(); ++t) {
      if (width[t] == 0) continue;
      tables[t].prefetch({keys.keys + begin, end - begin});
      break;
    }
  }
}

Status Server::pull_one(const PullRequest& request, ShardId id, TimeNs now) const {
  const ShardSlot& slot = *slots_[id];
  const std::lock_guard lock(slot.mutex);
  if (!is_serving(slot, now)) return error(Code::kUnavailable, "shard {} is not served here", id);
  if (slot.rows.dense) {
    const uint32_t d = id - options_.shards;
    const PhaseView phase = shape_.phase(request.phase);
    if (!phase.has_dense(d)) return Status::ok();
    float* out =
        request.dense == nullptr ? nullptr : request.dense + (dense_begin(id) - phase.dense_begin);
    if (!request.dense_parts.empty())
      out = d < request.dense_parts.size() ? request.dense_parts[d] : nullptr;
    if (out != nullptr) {
      slot.rows.dense->pull(out);
      slot.count_served(ShardSlot::keys_of_dense(dense_size(id)));
    }
    return Status::ok();
  }
  const uint32_t begin = request.keys.begin[id];
  const uint32_t n = request.keys.begin[id + 1] - begin;
  if (n == 0) return Status::ok();
  slot.count_served(n);
  const std::vector<uint32_t>& width = widths(request.phase, id);
  for_hinted_keys(slot.rows.tables.size(), n, [&](size_t t, size_t at, size_t keys, auto* hints) {
    if (width[t] > 0)
      slot.rows.tables[t].pull({request.keys.keys + begin + at, keys},
                               request.tables[t] + row_at(request.keys, t, begin) + at * width[t],
                               hints);
  });
  return Status::ok();
}

// Where the count of examples stands; the first pull begins it with a shard that it names.
AgeMark Server::age_mark(const PullRequest& request, TimeNs now) {
  const AgeMark mark = age_clock_.now();
  if (mark.clock != 0 || request.shards.empty()) return mark;
  {
    const ShardSlot& slot = *slots_[request.shards[0]];
    const std::lock_guard lock(slot.mutex);
    if (!is_serving(slot, now)) return mark;
    age_clock_.begin(request.shards[0], slot.replica.epoch());
  }
  return age_clock_.now();
}

void Server::pull(const PullRequest& request, std::function<void(const PullReply&)> done) {
  pulls_.fetch_add(1, std::memory_order_relaxed);
  const TimeNs now = replicator_.now_ns();
  PullReply reply;
  reply.status = check_pull(request);
  if (reply.status.is_ok() && closed_)
    reply.status = error(Code::kUnavailable, "this job is closed here");
  if (!reply.status.is_ok()) return done(reply);
  reply.mark = age_mark(request, now);
  std::mutex mutex;
  for_shards(request.team, {request.keys, request.shards, request.phase}, [&](size_t i) {
    Status status = pull_one(request, request.shards[i], now);
    if (status.is_ok()) [[likely]]
      return;
    const std::lock_guard lock(mutex);
    if (reply.status.is_ok()) reply.status = std::move(status);
  });
  done(reply);
}

}  // namespace flux
