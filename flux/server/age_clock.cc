#include "flux/server/age_clock.h"

#include <algorithm>

#include "flux/base/hash.h"

namespace flux {

AgeMark AgeClock::now() const {
  const std::lock_guard lock(mutex_);
  return mark_;
}

void AgeClock::begin(ShardId shard, ShardEpoch epoch) {
  const std::lock_guard lock(mutex_);
  if (mark_.clock == 0) begin_anew(shard, epoch);
}

void AgeClock::begin_anew(ShardId shard, ShardEpoch epoch) {
  mark_ = {hash_pair(seed_, ++begun_) | 1, 0};
  shard_ = shard;
  epoch_ = epoch;
}

std::optional<uint64_t> AgeClock::pushed(const PushRequest& request,
                                         std::span<const ShardAnswer> answers) {
  const auto is_new = [](const ShardAnswer& a) { return a.answer == Answer::kApplied; };
  if (request.claim.verdict != Verdict::kApplied) return std::nullopt;
  const std::lock_guard lock(mutex_);
  if (mark_.clock == 0) return std::nullopt;
  const auto at = std::find_if(answers.begin(), answers.end(),
                               [this](const ShardAnswer& a) { return a.shard == shard_; });
  if (at == answers.end()) {
    // Other shards apply what this one is not asked: it is served elsewhere, as far as they know.
    if (std::any_of(answers.begin(), answers.end(), is_new)) mark_ = {};
    return std::nullopt;
  }
  if (!is_new(*at)) return std::nullopt;
  const ShardEpoch epoch = request.epochs[static_cast<size_t>(at - answers.begin())];
  if (epoch != epoch_) begin_anew(shard_, epoch);
  const AgeMark before = mark_;
  mark_.examples += request.examples;
  const AgeMark& pulled = request.pulled;
  if (pulled.clock != before.clock || pulled.examples > before.examples) return std::nullopt;
  return before.examples - pulled.examples;
}

}  // namespace flux
