// ShardMap: which server owns each shard, by rendezvous hashing, under epochs that rise.
//
// Each shard goes to the live server with the highest hash of (server name, shard), so that a
// server that comes or goes moves only its own share. Dense shards are placed like sparse ones.
// Every change of a shard's owner gives that shard a new epoch (term, n); n is never used twice in
// a term. Pure. Not thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "flux/protocol/push_session.h"

namespace flux {

class ShardMap {
 public:
  ShardMap(uint32_t shards, uint64_t term) : shards_(shards), term_(term) {}

  // Places every shard on one of `servers` (names, index = ServerId; an empty name: not there).
  // At least one must be there. Returns the shards whose owner changed: another name, or another
  // index.
  std::vector<ShardId> place(const std::vector<std::string>& servers);
  const ShardRoute& route() const { return route_; }
  uint64_t version() const { return n_; }  // rises with every change
  std::vector<ShardId> owned_by(ServerId server) const;

 private:
  uint32_t shards_;
  uint64_t term_;
  uint64_t n_ = 0;
  ShardRoute route_;
  std::vector<std::string> owner_;  // names, by shard
};

}  // namespace flux
