// ShardLoads: what workers ask of each shard, in keys per second, window by window.
//
// Servers report totals since the job was opened there; a rate is the difference of two reports of
// one server by the time between them, so neither a lost report nor one that comes late counts for
// more than it says. A server begins with the first report that this coordinator hears of it (what
// it did before that is not known), and a total that has fallen has begun anew from 0.
// Bounded by what servers report. Pure: the caller brings the time. Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "flux/base/executor.h"
#include "flux/protocol/shard_replica.h"

namespace flux {

// Keys of a shard that workers pulled and pushed at a server since the job was opened there.
struct ShardWork {
  ShardId shard = 0;
  uint64_t keys = 0;
  bool operator==(const ShardWork&) const = default;
};

class ShardLoads {
 public:
  explicit ShardLoads(uint32_t shards) : rates_(shards) {}
  // `totals` sorted by shard; shards that are not named have 0.
  void reported(ServerId server, std::vector<ShardWork> totals, TimeNs now);
  void lost(ServerId server) { sources_.erase(server); }
  // Ends a window: from now on rates() is what was asked since the end of the one before.
  void close_window();
  // Keys per second by shard, wherever they were asked for.
  const std::vector<uint64_t>& rates() const { return rates_; }
  // Whether it reported often enough in the last window for its shards to have a rate.
  bool knows(ServerId server) const;

 private:
  struct Source {
    std::vector<ShardWork> before, totals;  // at the end of the last window, and of this one
    TimeNs before_ns = 0, totals_ns = 0;
    bool known = false;
  };
  void add(const Source& source);
  std::vector<uint64_t> rates_;
  std::map<ServerId, Source> sources_;
};

}  // namespace flux
