// Suspicions: which members say that they cannot reach which servers, and what follows from it.
//
// A word of one member makes the coordinator look sooner, no more (Membership::suspect): a server
// that renews its lease stays. But a server that the coordinator hears and most of the others do
// not stops the job as a dead one would, so it is *condemned*, taken for dead although it renews,
// when for `bound_ns` without a break it was named by
//   - every worker, or
//   - more than half of all other members, two at least.
// Who names more than half of the servers is cut off itself: that word is not counted. All of it is
// safe even if everybody lies: who was taken for dead is fenced by epochs. A server that comes back
// gets no shards for a while (`pause`), longer each time, so that a lasting cut moves little.
// Pure: the caller brings the time. Bounded by members and kPausesMax. Not thread-safe.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "flux/base/executor.h"
#include "flux/protocol/batch_id.h"
#include "flux/protocol/shard_replica.h"

namespace flux {

struct SuspicionOptions {
  TimeNs bound_ns = 10 * kSecond;
  TimeNs pause_ns = 10 * kSecond;  // doubles up to the next
  TimeNs pause_max_ns = 160 * kSecond;
};

class Suspicions {
 public:
  // A member that speaks: a worker by its WorkerId, a server by its ServerId.
  struct Peer {
    bool is_worker = false;
    uint64_t id = 0;
    auto operator<=>(const Peer&) const = default;
  };
  explicit Suspicions(const SuspicionOptions& options = {}) : options_(options) {}

  // All that `by` cannot reach now: what it said before and does not say again is over.
  void tell(Peer by, std::span<const ServerId> suspects, TimeNs now);
  void gone(Peer peer);  // it says nothing more; of a server nothing more is said either
  // Of so many live workers and servers.
  std::vector<ServerId> condemned(size_t workers, size_t servers, TimeNs now) const;
  // How many name it now, for people.
  size_t count(ServerId server) const;
  // The server of this name was condemned: until when it gets no shards if it comes back.
  TimeNs pause(const std::string& name, TimeNs now);
  TimeNs paused_until(const std::string& name) const;  // 0: it is not

  static constexpr size_t kPausesMax = 1024;

 private:
  struct Pause {
    TimeNs until = 0;
    TimeNs length = 0;
  };
  bool is_cut_off(const std::map<ServerId, TimeNs>& named, size_t servers) const {
    return 2 * named.size() > servers;
  }

  SuspicionOptions options_;
  std::map<Peer, std::map<ServerId, TimeNs>> told_;  // since when
  std::map<std::string, Pause> pauses_;
};

}  // namespace flux
