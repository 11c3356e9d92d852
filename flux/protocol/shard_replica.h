// ShardReplica: the protocol state of one shard, apart from its rows, threads and sockets.
//
// It decides what to do with a push (apply, answer "already applied", refuse) and keeps the
// ledger and the operation log: every change of the shard has a number and moves a running hash of
// the stream, so that two histories can be compared. The driver holds the shard's lock and does:
//     decision = replica.judge(push);
//     if (decision.answer == Answer::kApplied) { apply the rows; replica.commit(push); }
// so that rows and ledger change together or not at all.
// Threads: none inside. Failure: answers, never exceptions; nothing from the wire can break it.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "flux/base/bytes.h"
#include "flux/base/status.h"
#include "flux/protocol/batch_id.h"
#include "flux/protocol/ledger.h"

namespace flux {

using ShardId = uint32_t;

// Never used twice; `term` belongs to one coordinator, `n` counts its changes of the shard map.
struct ShardEpoch {
  uint64_t term = 0;
  uint64_t n = 0;
  auto operator<=>(const ShardEpoch&) const = default;
};

// A server process: (name, boot); see docs/design/replication.md. An index into the list of
// servers.
using ServerId = uint32_t;
constexpr ServerId kNoServer = ~0U;

enum class ReplicaRole : uint8_t { kNone, kPrimary, kBackup, kLearner };
const char* role_name(ReplicaRole role);

// What a write claims about the world; the shard refuses it unless all of it is exactly true.
struct PushClaim {
  uint64_t incarnation = 0;  // changed only by a load (restore, --fresh); random
  uint64_t geometry = 0;     // hash of the pass's frozen geometry
  std::vector<BatchId> ids;  // one batch, or the set that a merged push sums up; one pass
  Verdict verdict = Verdict::kApplied;
};

enum class Answer : uint8_t {
  kApplied,           // was new; is applied now
  kDuplicate,         // had all of it before
  kPartial,           // has a part of the set: nothing applied, `already` lists the part
  kStaleIncarnation,  // the sender belongs to another life of the job: it must stop
  kStaleEpoch,        // the shard moved: fetch the map, send again
  kStaleGeometry,     // another cut of the data: the sender must fetch the geometry
  kNotServing,        // sealed for a move: send again after the map changes
  kMalformed,         // a claim that no honest sender makes
  kStaleRound,        // sync: this member of the round was voided; its worker was taken for dead
};
constexpr uint32_t kAnswerKinds = 9;
const char* answer_name(Answer answer);

struct ShardAnswer {
  ShardId shard = 0;
  Answer answer = Answer::kApplied;
  uint64_t op = 0;               // log head after the decision
  std::vector<BatchId> already;  // for kPartial
  ShardEpoch epoch = {};         // that it was earned under; filled in by whoever sent the push
};

// What a follower does with a forwarded operation.
enum class FollowAnswer : uint8_t {
  kApply,        // it is the next one
  kHave,         // had it before
  kHold,         // comes too early: keep it until the ones before are here. In an answer: there is
                 // no room to keep it, send it again
  kOlderEpoch,   // the sender's epoch has passed: it must step down
  kNewerEpoch,   // the sender knows an epoch that this replica was not told yet: send again
  kNotFollower,  // no complete backup or learner of this shard is here
};

// One entry of the operation log. kProbe is none: it asks a follower whether it has operation `op`
// with that stream hash, and is answered when it has. kCompare is a probe that also has the hash of
// the primary's rows after that operation.
enum class OpKind : uint8_t { kPush = 1, kOpenPass = 2, kClosePass = 3, kProbe = 4, kCompare = 5 };
constexpr uint32_t kOpKinds = 5;
inline bool is_probe(OpKind kind) {
  return kind == OpKind::kProbe || kind == OpKind::kCompare;
}

class ShardReplica {
 public:
  ShardReplica() = default;
  ShardReplica(ShardId shard, uint64_t incarnation, ShardEpoch epoch)
      : shard_(shard), incarnation_(incarnation), epoch_(epoch) {}

  // Pure: what a backup or learner does with operation `op` of a primary under `epoch`.
  FollowAnswer judge_follow(ShardEpoch epoch, uint64_t op) const;
  // Pure: whether a push that the primary applied can be applied here too. Anything but kApplied
  // means that the two histories differ.
  Answer judge_forwarded(const PushClaim& claim) const;
  // False if the stream hash after operation `op` is known here and is another one.
  bool agrees(uint64_t op, uint64_t stream_hash) const;

  // Pure: what would happen to this push now.
  ShardAnswer judge(const PushClaim& claim, ShardEpoch epoch) const;
  // Records a push that judge() answered with kApplied and whose rows are applied; `payload_hash`
  // covers keys, gradients and counts. Returns the operation's number.
  uint64_t commit(const PushClaim& claim, uint64_t payload_hash);

  // A pass may be written only after it is opened with its geometry; opening it again with the
  // same geometry is a no-op, with another kStale.
  Status open_pass(uint32_t pass, uint64_t geometry);
  // After a manifest closed all passes below `pass`. Idempotent.
  void close_below(uint32_t pass);

  void seal() { sealed_ = true; }
  bool sealed() const { return sealed_; }
  // A new life after a load: everything sent by the former one is refused from now on.
  void set_incarnation(uint64_t incarnation) { incarnation_ = incarnation; }
  void set_epoch(ShardEpoch epoch);
  // Only a primary serves; a new replica is one unless told otherwise.
  void set_role(ReplicaRole role) { role_ = role; }
  ReplicaRole role() const { return role_; }

  ShardId shard() const { return shard_; }
  uint64_t incarnation() const { return incarnation_; }
  ShardEpoch epoch() const { return epoch_; }
  uint64_t op() const { return op_; }
  uint64_t stream_hash() const { return stream_hash_; }
  const Ledger& ledger() const { return ledger_; }
  // 0 when the pass is not open.
  uint64_t geometry(uint32_t pass) const;
  const std::map<uint32_t, uint64_t>& passes() const { return geometry_; }  // open ones

  void encode(ByteWriter* out) const;
  static Result<ShardReplica> decode(ByteReader* in);

 private:
  static constexpr size_t kHashesKept = 64;
  void append(OpKind kind, uint64_t content_hash);
  // Of what is new to the ledger, or not.
  Answer judge_ids(const PushClaim& claim, std::vector<BatchId>* already) const;

  ShardId shard_ = 0;
  uint64_t incarnation_ = 0;
  ShardEpoch epoch_;
  uint64_t op_ = 0;           // number of the last operation
  uint64_t stream_hash_ = 0;  // over all operations so far
  bool sealed_ = false;
  ReplicaRole role_ = ReplicaRole::kPrimary;  // not saved: whoever loads it says
  std::map<uint32_t, uint64_t> geometry_;     // open passes
  Ledger ledger_;
  // Stream hashes of the last operations, by op modulo; not saved. 0: not known.
  std::array<uint64_t, kHashesKept> recent_{};
};

}  // namespace flux
