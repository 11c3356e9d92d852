// PushSession: what one worker has pushed and not yet seen replicated by every shard.
//
// A push marks every shard, also those that get no rows, so that "the shard lacks batch b" has one
// meaning. The session splits a push by the server that owns each shard, sends again what is not
// answered in time, follows the shards when the map changes, and says when the gradient may be
// freed. It owns no gradient, socket, thread or clock: events in, actions out, the driver
// (client/ps_client.h, or the simulator) does the rest.
//
// Two acknowledgements. A shard has *applied* a push when it answers so; it is *replicated* when
// that answer had no receipt, or when the receipt is confirmed. Either counts only while the epoch
// under which it was sent is the route's: a new epoch makes both void, and the shard is sent the
// whole set again (it may be a duplicate then). kApplied is told once, when every shard has applied
// it; kRelease when every shard has it replicated. What is told to the coordinator waits for
// kRelease.
// Bounds: pushes until they are applied (staleness), bytes until they are replicated (memory).
// Failure: a stale incarnation or geometry ends the session with kStop; everything else is retried
// until it is answered.
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
  uint32_t pushes_max = 4;              // not applied yet
  uint64_t bytes_max = 256ULL << 20;    // of gradients held
  TimeNs answer_timeout_ns = kSecond;   // before the first resend
  TimeNs timeout_max_ns = 3 * kSecond;  // the time-out doubles up to this
  TimeNs retry_ns = 20 * kMillisecond;  // after a refusal or a lost connection
  TimeNs retry_max_ns = 200 * kMillisecond;
  // How long a server may not know the incarnation before that is believed: one that was started
  // again, or was taken for dead, knows nothing until the map names another.
  TimeNs stale_patience_ns = 0;
};

struct PushAction {
  enum class Kind : uint8_t {
    kSend,     // send `shards` of push `seq` to `server`, claiming `ids`
    kConfirm,  // ask `server` to confirm `receipt`
    kApplied,  // every shard has applied push `seq`: modes that wait go on
    kRelease,  // every shard has push `seq` replicated: free its gradient
    kRefresh,  // ask the coordinator for the shard map, then call on_route()
    kStop,     // this worker belongs to the past: stop training; `reason` says why
  };
  Kind kind = Kind::kSend;
  PushSeq seq = 0;
  ServerId server = 0;
  std::vector<ShardId> shards;     // rising
  std::vector<ShardEpoch> epochs;  // of `shards`
  std::vector<BatchId> ids;
  uint64_t receipt = 0;
  std::string reason;
};

class PushSession {
 public:
  PushSession(PushSessionOptions options, ShardRoute route);

  bool has_room() const;
  // Begins a push of these batches (sorted, distinct, one pass); has_room() must hold.
  PushSeq start(std::vector<BatchId> ids, uint64_t bytes, TimeNs now,
                std::vector<PushAction>* actions);
  // Answers to the kSend `sent`, with the receipt of that reply. Late and repeated ones are
  // harmless, and so are answers for shards that were not sent.
  void on_answers(const PushAction& sent, std::span<const ShardAnswer> answers, uint64_t receipt,
                  TimeNs now, std::vector<PushAction>* actions);
  // The answer to the kConfirm `asked`: ok, or void (kStale).
  void on_confirm(const PushAction& asked, bool ok, TimeNs now, std::vector<PushAction>* actions);
  // A kSend or kConfirm got no answer: no such server, a closed connection, a call that ran out of
  // time. The map is asked for at once, and it is tried again soon.
  void on_lost(const PushAction& sent, TimeNs now, std::vector<PushAction>* actions);
  // Call when now >= next_time().
  void on_time(TimeNs now, std::vector<PushAction>* actions);
  void on_route(ShardRoute route, TimeNs now, std::vector<PushAction>* actions);

  size_t in_flight() const { return pushes_.size(); }  // not released
  size_t unapplied() const { return unapplied_; }      // not told as applied
  uint64_t bytes() const { return bytes_; }            // of those in flight
  // Earliest moment at which something is due; only while in_flight() > 0.
  TimeNs next_time() const;
  // A server that owes an answer to the oldest push; only while in_flight() > 0.
  ServerId waits_for() const;
  uint64_t resends() const { return resends_; }
  uint64_t duplicates() const { return duplicates_; }

 private:
  // Shards of one reply that are applied and wait for their second acknowledgement.
  struct Receipt {
    ServerId server = 0;
    uint64_t receipt = 0;
    std::vector<ShardId> shards;  // rising
    TimeNs due = 0;
    TimeNs timeout = 0;
  };
  struct Push {
    std::vector<BatchId> ids;
    uint64_t bytes = 0;
    std::vector<ShardId> pending;   // rising: shards that have not said they have all of it
    std::vector<Receipt> receipts;  // the shards in neither list have it replicated
    // For shards that already had a part of the set: what is left to send them.
    std::map<ShardId, std::vector<BatchId>> rest;
    std::vector<ShardId> refused;  // of `pending`: to be sent again at retry_due
    TimeNs retry_due = 0;
    TimeNs retry = 0;
    TimeNs due = 0;  // of everything pending
    TimeNs timeout = 0;
    TimeNs stale_since = -1;  // a server does not know the incarnation; -1: all do
    bool applied = false;     // told
  };
  void send(PushSeq seq, Push* push, const std::vector<ShardId>& shards, TimeNs now,
            std::vector<PushAction>* actions);
  // All answers say "applied" and come as the shards were sent: the usual case, without searches.
  bool take_all(Push* push, const PushAction& sent, std::span<const ShardAnswer> answers,
                std::vector<ShardId>* receipted);
  void take_each(Push* push, const PushAction& sent, std::span<const ShardAnswer> answers,
                 TimeNs now, std::vector<ShardId>* receipted, std::vector<PushAction>* actions);
  // What one pending shard says. True: send to it again at once.
  bool take(Push* push, const ShardAnswer& answer, TimeNs now, std::vector<ShardId>* receipted,
            std::vector<PushAction>* actions);
  bool take_partial(Push* push, const ShardAnswer& answer);
  bool current(const PushAction& sent, ShardId shard) const;
  void retry_soon(Push* push, ShardId shard, TimeNs now);
  void stop(const ShardAnswer& answer, std::vector<PushAction>* actions);
  void add_receipt(PushSeq seq, Push* push, const PushAction& sent, uint64_t receipt,
                   std::vector<ShardId> shards, TimeNs now, std::vector<PushAction>* actions);
  static PushAction confirm(PushSeq seq, const Receipt& receipt);
  // Tells what the push has reached; frees it if that is the end.
  void settle(std::map<PushSeq, Push>::iterator at, std::vector<PushAction>* actions);
  void ask_refresh(bool again, std::vector<PushAction>* actions);
  static TimeNs due_of(const Push& push);

  PushSessionOptions options_;
  ShardRoute route_;
  std::map<PushSeq, Push> pushes_;
  PushSeq last_seq_ = 0;
  size_t unapplied_ = 0;
  uint64_t bytes_ = 0;
  bool refreshing_ = false;
  bool stopped_ = false;
  uint64_t resends_ = 0;
  uint64_t duplicates_ = 0;
};

}  // namespace flux
