// ReplicaAudit: what was told to be replicated, and whether the replicas of a cluster agree.
//
// It remembers every acknowledgement that a worker got, and looks at all replicas of all live
// servers at one moment: no two primaries of a shard under one epoch; a backup never ahead of its
// primary, and equal histories where they are equally long; rows and ledger of each agree
// (shard_audit.h); what was told replicated is in the ledger of the shard's owner, unless it was
// rolled back aloud. Answers are empty when all is well, else one line. Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "flux/api/job_port.h"
#include "flux/server/server.h"
#include "flux/testing/shard_audit.h"

namespace flux {

class ReplicaAudit {
 public:
  // A worker was told under `epoch` that the shard has these, replicated; `followed`: it has a
  // backup, which must have them too.
  void acknowledged(uint64_t incarnation, ShardId shard, ShardEpoch epoch, bool followed,
                    std::span<const BatchId> ids);
  // The shard was put back to an earlier state under `epoch`, and everybody is told: what older
  // epochs said, or say later because they do not know it yet, is void.
  void rolled_back(uint64_t incarnation, ShardId shard, ShardEpoch epoch);
  // A coordinator went on with what it found, of which that epoch was the latest: what later ones
  // told is out of its reach (with the only server that has it).
  void taken_over(uint64_t incarnation, ShardId shard, ShardEpoch latest);
  // A server counts no more, with all its replicas: it is dead, or was not heard for long. What was
  // told may be lost with all that had it.
  void server_lost() { ++deaths_; }
  // The shard said that it has these, of which the next answer will say the rest.
  void said(ShardId shard, std::span<const BatchId> ids) {
    for (const BatchId& id : ids) ever_.insert({shard, id});
  }
  // Whether the shard ever said that it has it.
  bool ever_told(ShardId shard, const BatchId& id) const { return ever_.contains({shard, id}); }
  // Nobody knows which epochs there were.
  void rolled_back_all() { told_.clear(); }

  struct Seen {
    std::string name;
    std::string address;
    const Server* server = nullptr;
  };
  // All live servers that have the job. `closed`: passes that are closed by a manifest on disk.
  std::string check(const std::vector<Seen>& servers, const ShardAudit& rows,
                    uint32_t closed) const;
  // The owners that the coordinator's map names have what was told.
  std::string check_owners(const std::vector<Seen>& servers, const ClusterMap& map,
                           uint64_t incarnation) const;
  uint64_t told() const { return count_; }
  uint64_t backups_seen() const { return backups_; }

 private:
  struct Told {
    ShardEpoch epoch;
    uint64_t deaths = 0;  // of servers, after which it may be lost
  };
  static std::string compare(const std::vector<Seen>& servers, ShardId shard);
  // Whether losing it is no mistake: as many servers are gone as had it, and nobody has it.
  bool may_be_lost(const std::vector<Seen>& members, ShardId shard, const BatchId& id,
                   const Told& told) const;

  // By incarnation and shard; the first epoch that told it.
  std::map<std::pair<uint64_t, ShardId>, std::map<BatchId, Told>> told_;
  std::set<std::pair<ShardId, BatchId>> ever_;
  std::map<std::pair<uint64_t, ShardId>, ShardEpoch> since_;  // what is before is void
  uint64_t count_ = 0;
  uint64_t deaths_ = 0;
  mutable uint64_t backups_ = 0;  // replicas that were found equal to their primary
};

}  // namespace flux
