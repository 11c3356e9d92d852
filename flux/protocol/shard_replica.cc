#include "flux/protocol/shard_replica.h"

#include "flux/base/check.h"
#include "flux/base/hash.h"

namespace flux {
namespace {

bool well_formed(const PushClaim& claim) {
  if (claim.ids.empty() || static_cast<uint32_t>(claim.verdict) >= kVerdicts) return false;
  for (size_t i = 0; i < claim.ids.size(); ++i) {
    const BatchId& id = claim.ids[i];
    if (id.batch >= id.batches_in_block || id.batches_in_block > kBatchesPerBlockMax) return false;
    if (id.block.pass != claim.ids.front().block.pass) return false;
    if (i == 0) continue;
    const BatchId& before = claim.ids[i - 1];
    if (!(before < id)) return false;  // sorted, so no repeats
    // One block has one number of batches; with it, no batch is named twice.
    if (before.block == id.block && before.batches_in_block != id.batches_in_block) return false;
  }
  return true;
}

uint64_t claim_hash(const PushClaim& claim) {
  uint64_t h = hash_pair(claim.geometry, static_cast<uint64_t>(claim.verdict));
  for (const BatchId& id : claim.ids) {
    h = hash_pair(h, (static_cast<uint64_t>(id.block.pass) << 32) | id.block.block);
    h = hash_pair(h, (static_cast<uint64_t>(id.block.phase) << 32) |
                         (static_cast<uint64_t>(id.block.epoch) << 16) | id.batch);
  }
  return h;
}

}  // namespace

const char* answer_name(Answer answer) {
  switch (answer) {
    case Answer::kApplied:
      return "applied";
    case Answer::kDuplicate:
      return "duplicate";
    case Answer::kPartial:
      return "partial";
    case Answer::kStaleIncarnation:
      return "stale incarnation";
    case Answer::kStaleEpoch:
      return "stale epoch";
    case Answer::kStaleGeometry:
      return "stale geometry";
    case Answer::kNotServing:
      return "not serving";
    case Answer::kMalformed:
      return "malformed";
    case Answer::kStaleRound:
      return "stale round";
  }
  return "unknown";
}

const char* role_name(ReplicaRole role) {
  switch (role) {
    case ReplicaRole::kNone:
      return "none";
    case ReplicaRole::kPrimary:
      return "primary";
    case ReplicaRole::kBackup:
      return "backup";
    case ReplicaRole::kLearner:
      return "learner";
  }
  return "unknown";
}

FollowAnswer ShardReplica::judge_follow(ShardEpoch epoch, uint64_t op) const {
  // A replica that was to be forgotten says nothing about who serves the shard.
  if (role_ == ReplicaRole::kNone) return FollowAnswer::kNotFollower;
  if (role_ == ReplicaRole::kPrimary)
    return epoch < epoch_ ? FollowAnswer::kOlderEpoch : FollowAnswer::kNotFollower;
  if (epoch < epoch_) return FollowAnswer::kOlderEpoch;
  if (epoch > epoch_) return FollowAnswer::kNewerEpoch;
  if (op <= op_) return FollowAnswer::kHave;
  return op == op_ + 1 ? FollowAnswer::kApply : FollowAnswer::kHold;
}

ShardAnswer ShardReplica::judge(const PushClaim& claim, ShardEpoch epoch) const {
  ShardAnswer result{shard_, Answer::kApplied, op_, {}};
  const auto answer = [&](Answer a) {
    result.answer = a;
    return result;
  };
  if (!well_formed(claim)) return answer(Answer::kMalformed);
  if (claim.incarnation != incarnation_) return answer(Answer::kStaleIncarnation);
  if (epoch != epoch_) return answer(Answer::kStaleEpoch);
  if (sealed_ || role_ != ReplicaRole::kPrimary) return answer(Answer::kNotServing);
  return answer(judge_ids(claim, &result.already));
}

Answer ShardReplica::judge_ids(const PushClaim& claim, std::vector<BatchId>* already) const {
  const uint32_t pass = claim.ids.front().block.pass;
  if (pass < ledger_.watermark()) return Answer::kDuplicate;
  if (geometry(pass) != claim.geometry || claim.geometry == 0) return Answer::kStaleGeometry;
  for (const BatchId& id : claim.ids)
    if (!ledger_.fits(id)) return Answer::kMalformed;
  for (const BatchId& id : claim.ids)
    if (ledger_.find(id).has_value()) already->push_back(id);
  if (already->empty()) return Answer::kApplied;
  if (already->size() < claim.ids.size()) return Answer::kPartial;
  already->clear();
  return Answer::kDuplicate;
}

Answer ShardReplica::judge_forwarded(const PushClaim& claim) const {
  if (!well_formed(claim)) return Answer::kMalformed;
  if (claim.incarnation != incarnation_) return Answer::kStaleIncarnation;
  std::vector<BatchId> already;
  return judge_ids(claim, &already);
}

bool ShardReplica::agrees(uint64_t op, uint64_t stream_hash) const {
  if (op > op_ || op + kHashesKept <= op_) return true;
  if (op == op_) return stream_hash == stream_hash_;
  const uint64_t known = recent_[op % kHashesKept];
  return known == 0 || known == stream_hash;
}

uint64_t ShardReplica::commit(const PushClaim& claim, uint64_t payload_hash) {
  for (const BatchId& id : claim.ids) ledger_.mark(id, claim.verdict);
  append(OpKind::kPush, hash_pair(claim_hash(claim), payload_hash));
  return op_;
}

Status ShardReplica::open_pass(uint32_t pass, uint64_t geometry_hash) {
  FLUX_CHECK(geometry_hash != 0, "0 means no geometry");
  if (pass < ledger_.watermark())
    return error(Code::kStale, "shard {}: pass {} is closed", shard_, pass);
  const uint64_t known = geometry(pass);
  if (known == geometry_hash) return Status::ok();
  if (known != 0)
    return error(Code::kStale, "shard {}: pass {} is open with another geometry", shard_, pass);
  geometry_[pass] = geometry_hash;
  append(OpKind::kOpenPass, hash_pair(pass, geometry_hash));
  return Status::ok();
}

void ShardReplica::close_below(uint32_t pass) {
  if (pass <= ledger_.watermark()) return;
  ledger_.close_below(pass);
  geometry_.erase(geometry_.begin(), geometry_.lower_bound(pass));
  append(OpKind::kClosePass, pass);
}

void ShardReplica::set_epoch(ShardEpoch epoch) {
  FLUX_CHECK(epoch > epoch_, "an epoch is never used twice");
  epoch_ = epoch;
  sealed_ = false;
}

uint64_t ShardReplica::geometry(uint32_t pass) const {
  const auto at = geometry_.find(pass);
  return at == geometry_.end() ? 0 : at->second;
}

void ShardReplica::append(OpKind kind, uint64_t content_hash) {
  ++op_;
  stream_hash_ =
      hash_pair(hash_pair(stream_hash_, content_hash), (static_cast<uint64_t>(kind) << 56) ^ op_);
  recent_[op_ % kHashesKept] = stream_hash_;
}

void ShardReplica::encode(ByteWriter* out) const {
  out->put(shard_);
  out->put(incarnation_);
  out->put(epoch_.term);
  out->put(epoch_.n);
  out->put(op_);
  out->put(stream_hash_);
  out->put(static_cast<uint32_t>(geometry_.size()));
  for (const auto& [pass, geometry_hash] : geometry_) {
    out->put(pass);
    out->put(geometry_hash);
  }
  ledger_.encode(out);
}

Result<ShardReplica> ShardReplica::decode(ByteReader* in) {
  ShardReplica replica;
  replica.shard_ = in->get<uint32_t>();
  replica.incarnation_ = in->get<uint64_t>();
  replica.epoch_.term = in->get<uint64_t>();
  replica.epoch_.n = in->get<uint64_t>();
  replica.op_ = in->get<uint64_t>();
  replica.stream_hash_ = in->get<uint64_t>();
  const auto passes = in->get<uint32_t>();
  if (passes > in->left() / 12) return error(Code::kCorrupt, "shard state: too many passes");
  for (uint32_t i = 0; i < passes; ++i) {
    const auto pass = in->get<uint32_t>();
    const auto geometry = in->get<uint64_t>();
    if (geometry == 0 || (i > 0 && replica.geometry_.rbegin()->first >= pass))
      return error(Code::kCorrupt, "shard state: impossible pass {}", pass);
    replica.geometry_[pass] = geometry;
  }
  FLUX_ASSIGN_OR_RETURN(replica.ledger_, Ledger::decode(in));
  if (!in->ok()) return error(Code::kCorrupt, "shard state: cut short");
  return replica;
}

}  // namespace flux
