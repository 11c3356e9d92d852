// AgeClock: counts the examples that a server applies, to tell how old each push is.
//
// The count is that of one shard that is served here, whose ledger lets each batch in once: so a
// push that comes twice is counted once. When the shard goes, or is served under another epoch,
// another count begins under another id, and marks of the old one say nothing any more. It is no
// part of what is saved, replicated or hashed. Threads: any. Failure: an age that is not known.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <span>

#include "flux/api/server.h"

namespace flux {

class AgeClock {
 public:
  explicit AgeClock(uint64_t seed) : seed_(seed) {}

  // clock 0: nothing is counted yet.
  AgeMark now() const;
  // Counts this shard, which is served here, unless one is counted already.
  void begin(ShardId shard, ShardEpoch epoch);
  // After a push was answered so: its age, if it is new and names a mark of this count.
  std::optional<uint64_t> pushed(const PushRequest& request, std::span<const ShardAnswer> answers);

 private:
  void begin_anew(ShardId shard, ShardEpoch epoch);

  const uint64_t seed_;
  mutable std::mutex mutex_;
  uint64_t begun_ = 0;  // counts so far
  AgeMark mark_;
  ShardId shard_ = 0;
  ShardEpoch epoch_;
};

}  // namespace flux
