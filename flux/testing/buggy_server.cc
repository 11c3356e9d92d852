#include "flux/testing/buggy_server.h"

#include <cstring>
#include <optional>

#include "flux/api/verbs.h"

namespace flux {
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
    case ClusterBug::kUnkeyedReservoir:
      if (request.step != nullptr) return push_unkeyed(request, done);
      break;
    case ClusterBug::kDuplicatesIgnored:
      if (has_others(request)) return held_.push_back(std::move(done));  // until they come
      break;
    case ClusterBug::kIncarnationInKey:
      return push_former(request, done);
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
  inner_->push(request, [this, whole, done](const PushReply& reply) {
    push_again(
        whole->request,
        [&reply](size_t i) { return reply.answers[i].answer == Answer::kDuplicate; }, reply, done);
  });
}

// The same under another identity, for those shards that `keep` names; they are answered as before.
void BuggyServer::push_again(const PushRequest& request, const std::function<bool(size_t)>& keep,
                             const PushReply& reply, const PushDone& done) {
  const PartOfPush again(request, keep);
  if (again.shards.empty()) return done(reply);
  PushRequest other = again.request;
  other.step = nullptr;
  for (BatchId& id : other.claim.ids) id.block.epoch = static_cast<uint16_t>(id.block.epoch + 100);
  inner_->push(other, [done, reply](const PushReply&) { done(reply); });
}

// Both pushes of a batch that comes again while its step waits are poured.
void BuggyServer::push_unkeyed(const PushRequest& request, const PushDone& done) {
  const Server* server = find_(request.claim.incarnation);
  const auto key = std::make_tuple(request.claim.incarnation, request.step->round,
                                   request.claim.ids.empty() ? BatchId() : request.claim.ids[0]);
  const bool twice = is_current(server, request) && waiting_.contains(key);
  const auto whole = std::make_shared<PartOfPush>(request, [](size_t) { return true; });
  const auto at = waiting_.insert(key);
  inner_->push(request, [this, at, twice, whole, done](const PushReply& reply) {
    waiting_.erase(at);
    push_again(
        whole->request,
        [&](size_t i) { return twice && reply.answers[i].answer == Answer::kApplied; }, reply,
        done);
  });
}

// A batch that a former life of the job has applied is not known, and applied again.
void BuggyServer::push_former(const PushRequest& request, const PushDone& done) {
  const auto whole = std::make_shared<PartOfPush>(request, [](size_t) { return true; });
  inner_->push(request, [this, whole, done](const PushReply& reply) {
    PlantedFacts& planted = facts_->planted;
    const uint64_t life = whole->request.claim.incarnation;
    const auto unknown = [&](size_t i) {
      const auto former = planted.former.find({life, whole->shards[i]});
      if (reply.answers[i].answer != Answer::kDuplicate || former == planted.former.end())
        return false;
      bool is_new = false;
      for (const BatchId& id : whole->request.claim.ids)
        if (former->second.find(id))
          is_new |= planted.redone.insert({{life, whole->shards[i]}, id}).second;
      return is_new;
    };
    push_again(whole->request, unknown, reply, done);
  });
}

bool BuggyServer::has_others(const PushRequest& request) const {
  const Server* server = find_(request.claim.incarnation);
  if (request.step == nullptr || !is_current(server, request)) return false;
  for (const ShardId shard : request.shards) {
    const ShardReplica replica = server->replica(shard);
    bool own = false, others = false;
    for (const BatchId& id : request.claim.ids) own = own || replica.ledger().find(id).has_value();
    for (const BatchId& id : request.step->ids) others = others || replica.ledger().find(id);
    if (others && !own) return true;
  }
  return false;
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
