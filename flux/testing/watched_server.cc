#include "flux/testing/watched_server.h"

#include <cstring>
#include <optional>

#include "flux/api/verbs.h"

namespace flux {

// --- the watch ---

struct WatchedServer::Seen {
  PushClaim claim;
  std::vector<ShardId> shards;
  std::vector<ShardEpoch> epochs;
  std::vector<ShardEpoch> then;  // of the shards, when it came
  std::optional<SyncStep> step;
  bool stale = false;
  bool known = false;  // the incarnation, when it came
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
            false};
  const Server* server = find_(request.claim.incarnation);
  seen.known = server != nullptr;
  for (const ShardId shard : request.shards)
    seen.then.push_back(server == nullptr ? ShardEpoch{} : server->state(shard).epoch);
  inner_->push(request,
               [this, seen = std::move(seen), done = std::move(done)](const PushReply& reply) {
                 check(seen, reply);
                 done(reply);
               });
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
    if (answer.answer == Answer::kPartial) {
      ++facts_->partials;
      facts_->replicas.said(answer.shard, answer.already);
    }
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

void WatchedServer::check_step(const Seen& seen, const ShardReplica& replica) {
  for (const BatchId& id : seen.step->ids) {
    const auto gone = std::make_tuple(seen.claim.incarnation, seen.step->round, id.block);
    if (!replica.ledger().find(id) && !facts_->voided.contains(gone))
      return facts_->fail(fmt::format("shard {} poured step {} of round {} without {}",
                                      replica.shard(), seen.step->step, seen.step->round,
                                      to_string(id)));
  }
}

// --- planted bugs ---

namespace {

// A push with memory of its own. Tables have one float per row here.
struct OwnedPush {
  explicit OwnedPush(const PushRequest& r, uint32_t sparse_shards) : request(r) {
    shards.assign(r.shards.begin(), r.shards.end());
    epochs.assign(r.epochs.begin(), r.epochs.end());
    begin.assign(r.keys.begin, r.keys.begin + sparse_shards + 1);
    const uint32_t count = begin.back();
    keys.assign(r.keys.keys, r.keys.keys + count);
    counts.assign(r.counts, r.counts + count);
    for (const float* table : r.tables) gradients.emplace_back(table, table + count);
    for (const auto& table : gradients) tables.push_back(table.data());
    if (r.step != nullptr) step = *r.step;
    request.shards = shards;
    request.epochs = epochs;
    request.keys.keys = keys.data();
    request.keys.begin = begin.data();
    request.counts = counts.data();
    request.tables = tables;
    if (r.step != nullptr) request.step = &*step;
  }
  OwnedPush(const OwnedPush&) = delete;
  OwnedPush& operator=(const OwnedPush&) = delete;
  PushRequest request;
  std::vector<ShardId> shards;
  std::vector<ShardEpoch> epochs;
  std::vector<uint64_t> keys;
  std::vector<uint32_t> begin, counts;
  std::vector<std::vector<float>> gradients;
  std::vector<const float*> tables;
  std::optional<SyncStep> step;
};

// The same request for some of its shards.
struct PartOfPush {
  PartOfPush(const PushRequest& r, const std::function<bool(size_t)>& keep) : request(r) {
    for (size_t i = 0; i < r.shards.size(); ++i) {
      if (!keep(i)) continue;
      shards.push_back(r.shards[i]);
      epochs.push_back(r.epochs[i]);
    }
    request.shards = shards;
    request.epochs = epochs;
  }
  PartOfPush(const PartOfPush&) = delete;
  PartOfPush& operator=(const PartOfPush&) = delete;
  PushRequest request;
  std::vector<ShardId> shards;
  std::vector<ShardEpoch> epochs;
};

bool is_primary(const Server* server, ShardId shard) {
  return server->state(shard).role == ReplicaRole::kPrimary;
}

// Whether an honest server would look at the batches at all.
bool is_current(const Server* server, const PushRequest& request) {
  for (size_t i = 0; server != nullptr && i < request.shards.size(); ++i)
    if (!is_primary(server, request.shards[i]) ||
        server->replica(request.shards[i]).epoch() != request.epochs[i])
      return false;
  return server != nullptr;
}

PushReply forged(const PushRequest& request) {
  PushReply reply;
  for (const ShardId shard : request.shards)
    reply.answers.push_back({shard, Answer::kApplied, 1, {}});
  return reply;
}

}  // namespace

void BuggyServer::pull(const PullRequest& request, std::function<void(const PullReply&)> done) {
  inner_->pull(request, std::move(done));
}

void BuggyServer::push(const PushRequest& request, std::function<void(const PushReply&)> done) {
  switch (bug_) {
    case ClusterBug::kAckBeforeApply:
      if (node_->world()->random().chance(0.2)) return push_later(request, done);
      break;
    case ClusterBug::kNoIncarnationCheck:  // an epoch of a former life means nothing in this one
      if (facts_->stale) return push_fenceless(request, done);
      break;
    case ClusterBug::kNoEpochCheck:
      return push_fenceless(request, done);
    case ClusterBug::kEmptyShardsUnmarked:
      return push_without_empty(request, done);
    case ClusterBug::kDuplicatesApplied:
      return push_duplicates(request, done);
    case ClusterBug::kFencedServes:
      return push_fenced(request, done);
    case ClusterBug::kSyncNotAwaited:
      if (request.step != nullptr) return push_alone(request, done);
      break;
    default:
      break;
  }
  inner_->push(request, std::move(done));
}

void BuggyServer::confirm(uint64_t incarnation, uint64_t receipt,
                          std::function<void(Status)> done) {
  if (bug_ == ClusterBug::kEarlyReplicated) return done(Status::ok());
  if (bug_ != ClusterBug::kVoidConfirmed) return inner_->confirm(incarnation, receipt, done);
  inner_->confirm(incarnation, receipt, [done](const Status& status) {
    done(status.code() == Code::kStale ? Status::ok() : status);
  });
}

// A primary that was told of its successor goes on answering.
void BuggyServer::push_fenced(const PushRequest& request, const PushDone& done) {
  inner_->push(request, [ids = request.claim.ids, done](const PushReply& reply) {
    PushReply bent = reply;
    for (ShardAnswer& answer : bent.answers)
      if (answer.answer == Answer::kNotServing) answer.answer = Answer::kDuplicate;
    done(bent);
  });
}

void BuggyServer::push_later(const PushRequest& request, const PushDone& done) {
  const Server* server = find_(request.claim.incarnation);
  if (!is_current(server, request)) return inner_->push(request, done);
  const auto owned = std::make_shared<OwnedPush>(request, server->sparse_shards());
  // Dense gradients are not copied: those shards are asked at once, the others later.
  const auto sparse = std::make_shared<PartOfPush>(owned->request, [owned, server](size_t i) {
    return owned->shards[i] < server->sparse_shards();
  });
  node_->post(node_->world()->draw(0, kSecond), [this, owned, sparse] {
    inner_->push(sparse->request, [owned, sparse](const PushReply&) {});
  });
  const PartOfPush dense(request, [&request, server](size_t i) {
    return request.shards[i] >= server->sparse_shards();
  });
  const auto answered = [early = forged(request), done](const PushReply& real) {
    PushReply reply = early;
    for (ShardAnswer& answer : reply.answers)
      for (const ShardAnswer& known : real.answers)
        if (known.shard == answer.shard) answer = known;
    done(reply);
  };
  if (dense.shards.empty()) return answered({});
  inner_->push(dense.request, answered);
}

// Takes what a message says about the past for the present.
void BuggyServer::push_fenceless(const PushRequest& request, const PushDone& done) {
  PushRequest asked = request;
  const Server* server = find_(asked.claim.incarnation);
  std::vector<ShardEpoch> epochs(request.epochs.begin(), request.epochs.end());
  for (size_t i = 0; i < epochs.size() && server != nullptr; ++i)
    if (is_primary(server, request.shards[i]))
      epochs[i] = server->replica(request.shards[i]).epoch();
  asked.epochs = epochs;
  inner_->push(asked, done);
}

void BuggyServer::push_without_empty(const PushRequest& request, const PushDone& done) {
  const Server* server = find_(request.claim.incarnation);
  if (!is_current(server, request)) return inner_->push(request, done);
  const PartOfPush rest(request, [&request, server](size_t i) {
    const ShardId s = request.shards[i];
    return s >= server->sparse_shards() || request.keys.begin[s] != request.keys.begin[s + 1];
  });
  const auto answered = [all = forged(request), done](const PushReply& real) {
    PushReply reply = all;
    for (ShardAnswer& answer : reply.answers)
      for (const ShardAnswer& known : real.answers)
        if (known.shard == answer.shard) answer = known;
    done(reply);
  };
  if (rest.shards.empty()) return answered({});
  inner_->push(rest.request, answered);
}

void BuggyServer::push_duplicates(const PushRequest& request, const PushDone& done) {
  const auto whole = std::make_shared<PartOfPush>(request, [](size_t) { return true; });
  whole->request.step = nullptr;
  inner_->push(request, [this, whole, done](const PushReply& reply) {
    const PartOfPush again(whole->request, [&reply](size_t i) {
      return reply.answers[i].answer == Answer::kDuplicate;
    });
    if (again.shards.empty()) return done(reply);
    PushRequest other = again.request;
    for (BatchId& id : other.claim.ids)
      id.block.epoch = static_cast<uint16_t>(id.block.epoch + 100);
    inner_->push(other, [done, reply](const PushReply&) { done(reply); });
  });
}

void BuggyServer::push_alone(const PushRequest& request, const PushDone& done) {
  SyncStep step = *request.step;
  step.ids = request.claim.ids;
  PushRequest asked = request;
  asked.step = &step;
  inner_->push(asked, done);
}

void FencelessService::handle(RpcRequest request, Responder respond) {
  constexpr size_t kHead = 1 + sizeof(uint64_t);  // field 1 of both messages, fixed64
  const auto verb = static_cast<ApiVerb>(request.verb);
  const bool data = verb == ApiVerb::kPull || verb == ApiVerb::kPush;
  if (!data || request.control.size() < kHead || request.control[0] != 0x09 || current_() == 0)
    return inner_->handle(std::move(request), std::move(respond));
  uint64_t said = 0;
  std::memcpy(&said, request.control.data() + 1, sizeof said);
  const uint64_t now = current_();
  struct Kept {
    std::string control;
    std::shared_ptr<const void> memory;
  };
  const auto kept = std::make_shared<Kept>(Kept{std::string(request.control), request.memory});
  std::memcpy(kept->control.data() + 1, &now, sizeof now);
  request.control = kept->control;
  request.memory = kept;
  facts_->stale = said != now;
  inner_->handle(std::move(request), std::move(respond));
  facts_->stale = false;
}

}  // namespace flux
