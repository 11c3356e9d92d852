// ShardPlaces: where the replicas of every shard are, where they should be, and the next steps.
//
// Wanted places come from rendezvous hashing over the servers that are there and do not drain: the
// highest hash of (server name, shard) is the primary, the second the backup, so that a server that
// comes or goes moves only its own share. Steps bring what is towards what is wanted, failures
// first; docs/design/replication.md has the order of each change and why it is safe. At most one
// step per shard is under way, and few copies and switches at once. Every change of a shard's
// (primary, backup) has a new epoch (term, n); n is never used twice.
//
// The caller carries steps out (one call to one server each) and says how each ended; a step that
// may or may not have happened is given again with the same epoch, or superseded by a newer one.
// No replica is promoted that is not known to have lineage; one that may lack operations that were
// told replicated is promoted only when there is nothing better, and reported as `lossy`.
// Pure: the caller brings the time. Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "flux/base/executor.h"
#include "flux/protocol/push_session.h"

namespace flux {

struct ShardPlace {
  ServerId primary = kNoServer;  // may be a server that is gone: nobody serves the shard then
  ServerId backup = kNoServer;   // has everything that was told replicated
  ShardEpoch epoch;
  bool operator==(const ShardPlace&) const = default;
};

enum class StepKind : uint8_t {
  kPromote,  // assign `server`: primary without backup
  kDrop,     // assign `server`, the primary: primary without backup; also ends a seal
  kCopy,     // copy from `server`, the primary under `epoch`, to `other`
  kAttach,   // assign `server`, the primary: primary with backup `other`
  kFollow,   // assign `server`: backup under `epoch`; its log head is to reach `op`
  kSeal,     // seal `server`, the primary under `epoch`
  kSwitch,   // assign `server`, the backup: primary with backup `other`, if its log head is `op`
  kForget,   // assign `server`: no replica
  kRestore,  // load the shard on `server` under (term, n - 1), then assign it primary under `epoch`
};
const char* step_name(StepKind kind);

struct PlaceStep {
  uint64_t id = 0;
  StepKind kind = StepKind::kDrop;
  ShardId shard = 0;
  ServerId server = kNoServer;  // who is asked
  ServerId other = kNoServer;
  ShardEpoch epoch;
  uint64_t op = 0;
};

enum class StepEnd : uint8_t {
  kDone,
  kRefused,  // answered: it did not happen and will not
  kUnknown,  // no answer, or asked too early: it may happen yet
};

// What a step that ended has changed, for the caller.
struct PlaceChange {
  bool route = false;     // primary or epoch of the shard
  bool primary = false;   // another replica serves now
  bool promoted = false;  // after a loss
  bool lossy = false;     // the replica that serves now may lack what was acknowledged
};

struct ShardPlacesOptions {
  uint32_t replicas = 2;  // 1 or 2
  uint32_t copies_max = 32;
  uint32_t copies_per_server = 16;  // from it or to it
  uint32_t switches_max = 8;
  TimeNs retry_ns = 10 * kMillisecond;  // doubles up to retry_max_ns
  TimeNs retry_max_ns = kSecond;
  TimeNs settle_ns =
      3 * kSecond;                // a follower to catch up, a switch to be taken; then it is undone
  TimeNs avoid_ns = 2 * kSecond;  // a pair of servers that could not reach one another
};

class ShardPlaces {
 public:
  ShardPlaces(uint32_t shards, uint64_t term, ShardPlacesOptions options = {});

  // --- servers
  void joined(ServerId server, const std::string& name);  // it can be asked from now on
  void lost(ServerId server, TimeNs now);
  void draining(ServerId server, bool on);
  // `primary` says that `backup` does not answer it.
  void suspected(ServerId primary, ServerId backup, TimeNs now);
  // The primary of this shard is to be on the server of this name while it is there; "": no matter.
  void pin(ShardId shard, const std::string& name);

  // --- the start
  // Takes the wanted places for real, under one new epoch: replicas are created there. Needs a
  // server.
  void place_all();
  // As found at a take-over. `unsure`: the backup is named by the primary, or told already, but not
  // known to have everything before the primary's log head `op`.
  void adopt(ShardId shard, const ShardPlace& place, bool unsure, uint64_t op);
  // The primary must get a new epoch before anything else: it is sealed, or names a stranger.
  void renew(ShardId shard) { shards_[shard].renew = true; }
  // A replica that is no part of the shard's place.
  void found_stale(ServerId server, ShardId shard);
  // What is there is of no use (any more): it is to be restored.
  void lose(ShardId shard);

  // --- steps
  std::vector<PlaceStep> next(TimeNs now);
  // When next() may have something to do if nothing happens.
  std::optional<TimeNs> next_time() const;
  // `op`: the log head that came with the answer. Steps that were superseded are ignored.
  PlaceChange ended(uint64_t step, StepEnd end, uint64_t op, TimeNs now);

  // --- what is
  const ShardPlace& place(ShardId shard) const { return shards_[shard].place; }
  uint32_t shards() const { return static_cast<uint32_t>(shards_.size()); }
  // The primary is there and nothing is known against it.
  bool served(ShardId shard) const;
  ShardRoute route() const;
  uint64_t version() const { return (term_ << 32) + changes_; }
  uint32_t primaries(ServerId server) const;
  uint32_t backups(ServerId server) const;
  // Shards of which it has the only replica.
  uint32_t alone_with(ServerId server) const;
  // No replica is there, none is on its way.
  bool empty(ServerId server) const;
  uint32_t without_backup() const;  // of those that should have one
  uint32_t unserved() const;
  uint32_t moving() const;  // shards with a copy, an attach or a switch under way
  bool settled() const;     // everything is where it should be
  size_t live_servers() const;
  // "shard 3: primary 1, backup -, copy to 2 under way", for people.
  std::string describe(ShardId shard) const;
  // Servers for the shard, best first; those that drain only if there is no other.
  std::vector<ServerId> wanted(ShardId shard) const;

 private:
  struct Server {
    std::string name;
    uint64_t hash = 0;
    bool live = false, draining = false;
    uint32_t copies = 0;  // under way, from it or to it
  };
  struct Shard {
    ShardPlace place;
    bool lost = false;
    bool renew = false;
    bool busy = false;  // `doing` is under way (step != 0) or due
    StepKind doing = StepKind::kDrop;
    uint64_t step = 0;
    ServerId target = kNoServer;  // who is to become something by it
    ServerId spare = kNoServer;   // kFollow: the backup before, which has all from before the epoch
    bool sure = false;            // kFollow: `target` has everything that was told replicated
    bool resolve = false;         // kFollow: the primary is gone; does the follower have it all?
    bool lossy = false;           // kPromote
    ShardEpoch epoch;             // of the step
    uint64_t op = 0;
    TimeNs due = 0, until = 0;
    uint32_t tries = 0;
  };
  struct Stale {
    uint64_t step = 0;
    TimeNs due = 0;
    uint32_t tries = 0;
  };
  using Key = std::pair<ServerId, ShardId>;

  bool live(ServerId server) const { return server < servers_.size() && servers_[server].live; }
  bool drains(ServerId server) const { return servers_[server].draining; }
  ShardEpoch new_epoch() { return {term_, ++n_}; }
  bool avoided(ServerId a, ServerId b, TimeNs now) const;
  void avoid(ServerId a, ServerId b, TimeNs now);
  bool may_copy(ShardId s, ServerId target, TimeNs now) const;
  void rank_servers();
  // `shard` is to do this next; what was under way is superseded.
  void set_task(ShardId s, StepKind kind, ServerId target, TimeNs now);
  void cancel(ShardId s);
  void retry(Shard* shard, TimeNs now);
  void count_copy(const Shard& shard, bool begins);
  void add_stale(ServerId server, ShardId s);
  void promote(ShardId s, ServerId server, bool lossy, TimeNs now);
  void abort_change(ShardId s, TimeNs now);
  void primary_lost(ShardId s, TimeNs now);
  void follow_lost(ShardId s, TimeNs now);
  void on_lost(ShardId s, ServerId server, TimeNs now);
  void repair(ShardId s, TimeNs now);
  void improve(ShardId s, TimeNs now);
  void begin_copy(ShardId s, ServerId target, TimeNs now);
  PlaceStep make_step(ShardId s);
  void forget_stale(TimeNs now, std::vector<PlaceStep>* out);
  PlaceChange step_done(ShardId s, uint64_t op, TimeNs now);
  PlaceChange follow_done(ShardId s, uint64_t op, TimeNs now);
  void step_refused(ShardId s, TimeNs now);
  void step_unknown(ShardId s, TimeNs now);
  PlaceChange commit(ShardId s, ServerId primary, ServerId backup, ShardEpoch epoch);

  const uint64_t term_;
  const ShardPlacesOptions options_;
  uint64_t n_ = 0;
  uint64_t changes_ = 0;
  uint64_t last_step_ = 0;
  std::vector<Server> servers_;
  std::vector<Shard> shards_;
  std::vector<std::vector<ServerId>> ranks_;  // by shard, best first
  bool ranked_ = false;
  std::map<ShardId, std::string> pins_;
  std::map<uint64_t, ShardId> running_;
  std::map<uint64_t, Key> forgetting_;
  std::map<Key, Stale> stale_;
  struct Avoid {
    TimeNs until = 0;
    uint32_t times = 0;
  };
  std::map<std::pair<ServerId, ServerId>, Avoid> avoid_;
  uint32_t copies_ = 0, switches_ = 0;
};

}  // namespace flux
