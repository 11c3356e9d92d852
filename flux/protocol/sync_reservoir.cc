#include "flux/protocol/sync_reservoir.h"

#include <algorithm>

namespace flux {
namespace {

ShardAnswer make_answer(const ShardReplica& replica, Answer answer) {
  return {replica.shard(), answer, replica.op(), {}};
}

// One batch, which is a part of a step that could be.
bool well_formed(const SyncArrival& arrival) {
  const SyncStep& step = *arrival.step;
  if (arrival.claim->ids.size() != 1 || arrival.claim->verdict != Verdict::kApplied) return false;
  if (step.round == 0 || step.step >= kBatchesPerBlockMax) return false;
  if (step.ids.empty() || step.ids.size() > SyncReservoir::kIdsMax) return false;
  if (step.examples == 0 || arrival.examples > step.examples) return false;
  for (size_t i = 0; i < step.ids.size(); ++i) {
    const BatchId& id = step.ids[i];
    if (id.batch >= id.batches_in_block || id.batches_in_block > kBatchesPerBlockMax) return false;
    if (id.block.pass != step.ids.front().block.pass) return false;
    if (i > 0 && step.ids[i - 1].block >= id.block) return false;  // one batch of each member
  }
  return std::binary_search(step.ids.begin(), step.ids.end(), arrival.claim->ids.front());
}

}  // namespace

bool SyncReservoir::is_voided(uint64_t round, const BlockId& block) const {
  const auto at = voided_.find(round);
  return at != voided_.end() && at->second.contains(block);
}

bool SyncReservoir::is_over(const StepKey& key) const {
  const auto& [round, step] = key;
  if (!poured_.empty() && round < poured_.begin()->first && poured_.size() >= kRoundsKept)
    return true;
  const auto at = poured_.find(round);
  return at != poured_.end() && ((at->second >> step) & 1U) != 0;
}

std::optional<ShardAnswer> SyncReservoir::arrive(const ShardReplica& replica,
                                                 const SyncArrival& arrival) {
  const auto answer = [&](Answer a) { return make_answer(replica, a); };
  const PushClaim& claim = *arrival.claim;
  if (!well_formed(arrival)) return answer(Answer::kMalformed);
  const ShardAnswer judged = replica.judge(claim, arrival.epoch);
  if (judged.answer != Answer::kApplied) return judged;
  const BatchId& id = claim.ids.front();
  const StepKey key{arrival.step->round, arrival.step->step};
  auto at = steps_.find(key);
  if (at != steps_.end() &&
      (at->second.ids != arrival.step->ids || at->second.examples != arrival.step->examples))
    return answer(Answer::kMalformed);
  // What has arrived before its member was voided stays; only the rest of the member is gone.
  if (at != steps_.end() && at->second.arrived.contains(id)) {
    Waiting& first = at->second.arrived[id];
    if (first.tickets.size() >= kTicketsMax) return answer(Answer::kNotServing);
    first.tickets.push_back(arrival.ticket);
    return std::nullopt;
  }
  if (is_voided(key.first, id.block) || is_over(key)) return answer(Answer::kStaleRound);
  if (at == steps_.end()) {
    if (steps_.size() >= kStepsMax) return answer(Answer::kNotServing);
    at = steps_.emplace(key, Step{arrival.step->ids, arrival.step->examples, {}}).first;
  }
  at->second.arrived[id] = {claim, arrival.epoch, arrival.examples, {arrival.ticket}};
  return std::nullopt;
}

void SyncReservoir::void_member(uint64_t round, const BlockId& block) {
  voided_[round].insert(block);
}

bool SyncReservoir::is_missing(const ShardReplica& replica, const StepKey& key, const Step& step,
                               const BatchId& id) const {
  return !step.arrived.contains(id) && !is_voided(key.first, id.block) &&
         !replica.ledger().find(id).has_value();
}

bool SyncReservoir::is_complete(const ShardReplica& replica, const StepKey& key,
                                const Step& step) const {
  return std::none_of(step.ids.begin(), step.ids.end(),
                      [&](const BatchId& id) { return is_missing(replica, key, step, id); });
}

bool SyncReservoir::next_pour(const ShardReplica& replica, SyncPour* pour) {
  const auto at = std::find_if(steps_.begin(), steps_.end(), [&](const auto& entry) {
    return is_complete(replica, entry.first, entry.second);
  });
  if (at == steps_.end()) return false;
  const auto node = steps_.extract(at);
  const Step& step = node.mapped();
  *pour = {};
  for (const auto& [id, waiting] : step.arrived) {
    ShardAnswer judged = replica.judge(waiting.claim, waiting.epoch);
    if (judged.answer == Answer::kApplied) {
      if (pour->claim.ids.empty()) {
        pour->claim = waiting.claim;
      } else {
        pour->claim.ids.push_back(id);
      }
      const double weight =
          static_cast<double>(waiting.examples) / static_cast<double>(step.examples);
      pour->shares.push_back(
          {waiting.tickets.front(), waiting.examples, static_cast<float>(weight)});
    }
    for (const SyncTicket& ticket : waiting.tickets) pour->answers.push_back({ticket, judged});
  }
  remember_poured(node.key());
  return true;
}

void SyncReservoir::remember_poured(const StepKey& key) {
  poured_[key.first] |= 1U << key.second;
  while (poured_.size() > kRoundsKept) poured_.erase(poured_.begin());
  if (poured_.size() == kRoundsKept)  // older rounds are over as a whole
    voided_.erase(voided_.begin(), voided_.lower_bound(poured_.begin()->first));
}

std::vector<SyncPour::Reply> SyncReservoir::clear(const ShardReplica& replica, Answer answer) {
  std::vector<SyncPour::Reply> replies;
  for (const auto& [key, step] : steps_)
    for (const auto& [id, waiting] : step.arrived)
      for (const SyncTicket& ticket : waiting.tickets)
        replies.push_back({ticket, make_answer(replica, answer)});
  steps_.clear();
  return replies;
}

std::string SyncReservoir::waits_for(const ShardReplica& replica) const {
  for (const auto& [key, step] : steps_)
    for (const BatchId& id : step.ids)
      if (is_missing(replica, key, step, id))
        return fmt::format("shard {}: step {} of round {} waits for {}", replica.shard(),
                           key.second, key.first, to_string(id));
  return "";
}

}  // namespace flux
