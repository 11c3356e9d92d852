#include "flux/testing/watched_server.h"

#include <optional>

namespace flux {
namespace {
constexpr uint32_t kLooksMax = 2;
}

struct WatchedServer::Seen {
  PushClaim claim;
  std::vector<ShardId> shards;
  std::vector<ShardEpoch> epochs;
  std::vector<ShardEpoch> then;  // of the shards, when it came
  std::optional<SyncStep> step;
  bool stale = false;
  bool known = false;  // the incarnation, when it came
  uint32_t looks = 0;  // in a row that found it waiting for nothing
};

void WatchedServer::pull(const PullRequest& request, std::function<void(const PullReply&)> done) {
  const Server* server = find_(request.incarnation);
  if (server == nullptr || facts_->pushes % 16 != 0) return inner_->pull(request, std::move(done));
  const uint64_t before = server->content_hash();
  inner_->pull(request, [this, server, before, done = std::move(done)](const PullReply& reply) {
    if (server->content_hash() != before) facts_->fail("a pull changed rows");
    done(reply);
  });
}

void WatchedServer::push(const PushRequest& request, std::function<void(const PushReply&)> done) {
  Seen seen{request.claim,
            {request.shards.begin(), request.shards.end()},
            {request.epochs.begin(), request.epochs.end()},
            {},
            request.step == nullptr ? std::nullopt : std::optional(*request.step),
            facts_->stale,
            false,
            0};
  const Server* server = find_(request.claim.incarnation);
  seen.known = server != nullptr;
  for (const ShardId shard : request.shards)
    seen.then.push_back(server == nullptr ? ShardEpoch{} : server->state(shard).epoch);
  const auto kept = std::make_shared<Seen>(std::move(seen));
  const uint64_t number = ++last_;
  if (kept->step) waiting_[number] = kept;
  inner_->push(request, [this, number, kept, done = std::move(done)](const PushReply& reply) {
    waiting_.erase(number);
    check(*kept, reply);
    done(reply);
  });
}

bool WatchedServer::waits(const Seen& push, ShardId shard, const BatchId& id) const {
  for (const auto& [number, other] : waiting_) {
    const bool same = other->claim.incarnation == push.claim.incarnation &&
                      other->step->round == push.step->round &&
                      other->step->step == push.step->step;
    for (size_t i = 0; same && i < other->shards.size(); ++i)
      if (other->shards[i] == shard && other->epochs[i] == other->then[i] &&
          other->claim.ids == std::vector<BatchId>{id})
        return true;
  }
  return false;
}

bool WatchedServer::is_whole(const Seen& push, const Server& server) const {
  for (size_t i = 0; i < push.shards.size(); ++i) {
    const ShardState state = server.state(push.shards[i]);
    if (state.role != ReplicaRole::kPrimary || state.sealed || state.epoch != push.epochs[i])
      return false;
    const ShardReplica replica = server.replica(push.shards[i]);
    for (const BatchId& id : push.step->ids)
      if (!replica.ledger().find(id) && !waits(push, push.shards[i], id)) return false;
  }
  return true;
}

std::string WatchedServer::look() {
  for (const auto& [number, push] : waiting_) {
    const Server* server = find_(push->claim.incarnation);
    push->looks = server != nullptr && is_whole(*push, *server) ? push->looks + 1 : 0;
    if (push->looks > kLooksMax)
      return fmt::format("step {} of round {} waits, though every batch of it is there",
                         push->step->step, push->step->round);
  }
  return "";
}

void WatchedServer::confirm(uint64_t incarnation, uint64_t receipt,
                            std::function<void(Status)> done) {
  inner_->confirm(
      incarnation, receipt,
      [this, key = std::pair(incarnation, receipt), done = std::move(done)](const Status& status) {
        if (status.is_ok()) {
          const auto at = receipts_.find(key);
          if (at == receipts_.end()) {
            facts_->fail("a receipt was confirmed that nobody got");
          } else {
            for (const Receipt::Part& part : at->second.shards)
              told(key.first, part, at->second.ids);
          }
        }
        done(status);
      });
}

void WatchedServer::told(uint64_t incarnation, const Receipt::Part& part,
                         std::span<const BatchId> ids) {
  const Server* server = find_(incarnation);
  const ShardState state = server == nullptr ? ShardState{} : server->state(part.shard);
  const bool followed = server != nullptr && state.backup != kNoServer;
  if (followed && state.epoch == part.epoch && state.replicated < part.op)
    return facts_->fail(fmt::format("shard {}: operation {} was told replicated, its backup has {}",
                                    part.shard, part.op, state.replicated));
  facts_->replicas.acknowledged(incarnation, part.shard, part.epoch, followed && part.followed,
                                ids);
}

void WatchedServer::check(const Seen& seen, const PushReply& reply) {
  if (reply.answers.size() != seen.shards.size())
    return facts_->fail(fmt::format("a push to {} shards got {} answers", seen.shards.size(),
                                    reply.answers.size()));
  Receipt receipt;
  for (size_t i = 0; i < reply.answers.size(); ++i) {
    const ShardAnswer& answer = reply.answers[i];
    ++facts_->pushes;
    if (answer.shard != seen.shards[i])
      return facts_->fail(fmt::format("shard {} answered for {}", answer.shard, seen.shards[i]));
    if (answer.answer == Answer::kPartial)
      return facts_->fail(fmt::format("shard {} has a part of one batch", answer.shard));
    if (answer.answer == Answer::kDuplicate) ++facts_->duplicates;
    if (answer.answer != Answer::kApplied && answer.answer != Answer::kDuplicate) {
      ++facts_->refused;
      continue;
    }
    if (!seen.known || seen.stale)
      return facts_->fail("a write of an older incarnation was accepted");
    if (seen.epochs[i] != seen.then[i])
      return facts_->fail(
          fmt::format("shard {}: a write of an older epoch was accepted", answer.shard));
    // A sync push is answered when the last shard has it; the first may have changed hands since.
    const Server* server = find_(seen.claim.incarnation);
    const ShardState state = server == nullptr ? ShardState{} : server->state(answer.shard);
    const bool same = server != nullptr && state.epoch == seen.then[i];
    if (same && state.role != ReplicaRole::kPrimary)
      return facts_->fail(fmt::format("shard {} answered from elsewhere", answer.shard));
    if (same) check_applied(seen, answer, server->replica(answer.shard));
    check_sealed(seen.claim.incarnation, answer, seen.epochs[i]);
    const Receipt::Part part{answer.shard, seen.epochs[i], answer.op,
                             same && state.backup != kNoServer};
    if (reply.receipt == 0)
      told(seen.claim.incarnation, part, seen.claim.ids);
    else
      receipt.shards.push_back(part);
  }
  if (receipt.shards.empty()) return;
  receipt.ids = seen.claim.ids;
  receipts_[{seen.claim.incarnation, reply.receipt}] = std::move(receipt);
}

void WatchedServer::check_applied(const Seen& seen, const ShardAnswer& answer,
                                  const ShardReplica& replica) {
  for (const BatchId& id : seen.claim.ids) {
    if (!replica.ledger().find(id))
      return facts_->fail(fmt::format("shard {} answered {} for {}, which its ledger lacks",
                                      answer.shard, answer_name(answer.answer), to_string(id)));
  }
  if (seen.step && answer.answer == Answer::kApplied) check_step(seen, replica);
}

void WatchedServer::check_sealed(uint64_t incarnation, const ShardAnswer& answer,
                                 ShardEpoch epoch) {
  const auto at = facts_->sealed.find({incarnation, answer.shard, epoch});
  if (answer.answer == Answer::kApplied && at != facts_->sealed.end() && answer.op > at->second)
    facts_->fail(fmt::format("shard {}: operation {} under an epoch that was sealed at {}",
                             answer.shard, answer.op, at->second));
}

void WatchedServer::check_step(const Seen& seen, const ShardReplica& replica) {
  for (const BatchId& id : seen.step->ids) {
    const auto gone = std::make_tuple(seen.claim.incarnation, seen.step->round, id.block);
    if (!replica.ledger().find(id) && !facts_->voided.contains(gone))
      return facts_->fail(fmt::format("shard {} poured step {} of round {} without {}",
                                      replica.shard(), seen.step->step, seen.step->round,
                                      to_string(id)));
  }
}

}  // namespace flux
