// PushSession: what one worker has pushed and not yet seen acknowledged by every shard.
//
// A push marks every shard, also those that get no rows, so that "the shard lacks batch b" has one
// meaning. The session splits a push by the server that owns each shard, sends again what is not
// answered in time, follows the shards when the map changes, and says when the gradient may be
// freed. It owns no gradient, socket, thread or clock: events in, actions out, the driver
// (client/ps_client.h, or the simulator) does the rest.
// Bounds: pushes and bytes in flight. Failure: a stale incarnation or geometry ends the session
// with kStop; everything else is retried until it is answered.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "flux/base/executor.h"
#include "flux/protocol/batch_id.h"
#include "flux/protocol/shard_replica.h"

namespace flux {

using PushSeq = uint64_t;  // local name of a push, for matching answers only

// Who owns each shard, under which epoch; index = ShardId.
struct ShardRoute {
  std::vector<ServerId> server;
  std::vector<ShardEpoch> epoch;
  size_t size() const { return server.size(); }
};

struct PushSessionOptions {
  uint32_t pushes_max = 4;              // in flight
  uint64_t bytes_max = 256ULL << 20;    // of gradients held
  TimeNs answer_timeout_ns = kSecond;   // before the first resend
  TimeNs timeout_max_ns = 3 * kSecond;  // the time-out doubles up to this
};

struct PushAction {
  enum class Kind : uint8_t {
    kSend,     // send `shards` of push `seq` to `server`, claiming `ids`
    kRelease,  // every shard has push `seq`: free its gradient
    kRefresh,  // ask the coordinator for the shard map, then call on_route()
    kStop,     // this worker belongs to the past: stop training; `reason` says why
  };
  Kind kind = Kind::kSend;
  PushSeq seq = 0;
  ServerId server = 0;
  std::vector<ShardId> shards;
  std::vector<ShardEpoch> epochs;  // of `shards`
  std::vector<BatchId> ids;
  std::string reason;
};

class PushSession {
 public:
  PushSession(PushSessionOptions options, ShardRoute route);

  bool has_room() const;
  // Begins a push of these batches (sorted, distinct, one pass); has_room() must hold.
  PushSeq start(std::vector<BatchId> ids, uint64_t bytes, TimeNs now,
                std::vector<PushAction>* actions);
  // Answers to one kSend. Late and repeated ones are harmless.
  void on_answers(PushSeq seq, std::span<const ShardAnswer> answers, TimeNs now,
                  std::vector<PushAction>* actions);
  // Call when now >= next_time().
  void on_time(TimeNs now, std::vector<PushAction>* actions);
  void on_route(ShardRoute route, TimeNs now, std::vector<PushAction>* actions);

  size_t in_flight() const { return pushes_.size(); }
  // Earliest moment at which something is due; only while in_flight() > 0.
  TimeNs next_time() const;
  // A server that owes an answer to the oldest push; only while in_flight() > 0.
  ServerId waits_for() const;
  uint64_t resends() const { return resends_; }
  uint64_t duplicates() const { return duplicates_; }

 private:
  struct Push {
    std::vector<BatchId> ids;
    uint64_t bytes = 0;
    std::vector<ShardId> pending;  // shards that have not said they have all of it
    // For shards that already had a part of the set: what is left to send them.
    std::map<ShardId, std::vector<BatchId>> rest;
    TimeNs due = 0;
    TimeNs timeout = 0;
  };
  void send(PushSeq seq, Push* push, const std::vector<ShardId>& shards, TimeNs now,
            std::vector<PushAction>* actions);
  // Handles one answer; returns true if the shard must be sent to again at once.
  // All answers say "has it" and come in the order of shards: the usual case, without searches.
  bool take_all(Push* push, std::span<const ShardAnswer> answers);
  bool take(Push* push, const ShardAnswer& answer, std::vector<PushAction>* actions);
  void ask_refresh(std::vector<PushAction>* actions);

  PushSessionOptions options_;
  ShardRoute route_;
  std::map<PushSeq, Push> pushes_;
  PushSeq last_seq_ = 0;
  uint64_t bytes_ = 0;
  bool refreshing_ = false;
  bool stopped_ = false;
  uint64_t resends_ = 0;
  uint64_t duplicates_ = 0;
};

}  // namespace flux
