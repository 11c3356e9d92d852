#include "flux/cluster/sync_rounds.h"

#include <algorithm>

namespace flux {

void SyncRounds::add_worker(WorkerId worker, uint32_t lanes) {
  for (uint32_t lane = 0; lane < lanes; ++lane) lanes_.try_emplace({worker, lane});
}

std::vector<SyncRounds::Voided> SyncRounds::remove_worker(WorkerId worker) {
  std::vector<Voided> voided;
  const auto begin = lanes_.lower_bound({worker, 0});
  auto end = begin;
  for (; end != lanes_.end() && end->first.first == worker; ++end)
    if (end->second.holds) voided.push_back({end->second.round, end->second.block});
  lanes_.erase(begin, end);
  return voided;
}

std::optional<SyncRounds::Voided> SyncRounds::remove_block(const BlockId& block) {
  for (auto& [key, lane] : lanes_) {
    if (!lane.holds || lane.block != block) continue;
    lane.holds = false;
    lane.out = true;
    return Voided{lane.round, block};
  }
  return std::nullopt;
}

void SyncRounds::adopt(WorkerId worker, uint32_t lane, const SyncRound& round,
                       const BlockId& block) {
  const auto at = lanes_.find({worker, lane});
  if (at == lanes_.end() || round.id == 0 || at->second.waits) return;
  const auto [members, is_new] = unclaimed_.try_emplace(round.id);
  if (is_new)
    for (const RoundMember& member : round.members) members->second.insert(member.block);
  members->second.erase(block);
  at->second.holds = true;
  at->second.out = false;
  at->second.block = block;
  at->second.round = round.id;
}

std::vector<SyncRounds::Voided> SyncRounds::take_unclaimed() {
  std::vector<Voided> voided;
  for (const auto& [round, blocks] : unclaimed_)
    for (const BlockId& block : blocks) voided.push_back({round, block});
  unclaimed_.clear();
  return voided;
}

bool SyncRounds::wait(WorkerId worker, uint32_t lane) {
  const auto at = lanes_.find({worker, lane});
  if (at == lanes_.end()) return false;
  at->second.waits = true;
  at->second.holds = false;
  at->second.out = false;
  return true;
}

bool SyncRounds::ready() const {
  size_t waiting = 0;
  for (const auto& [key, lane] : lanes_) {
    if (!lane.waits && !lane.out) return false;
    waiting += lane.waits ? 1 : 0;
  }
  return waiting > 0;
}

std::vector<std::pair<WorkerId, uint32_t>> SyncRounds::missing() const {
  std::vector<std::pair<WorkerId, uint32_t>> lanes;
  for (const auto& [key, lane] : lanes_)
    if (!lane.waits && !lane.out) lanes.push_back(key);
  return lanes;
}

std::vector<SyncRounds::Given> SyncRounds::form(BlockQueue* queue, TimeNs now, SyncRound* round) {
  *round = SyncRound{};
  std::vector<Given> given;
  if (!ready()) return given;
  for (auto& [key, lane] : lanes_) {
    BlockLease lease;
    if (!lane.waits || !queue->lease(key.first, now, &lease)) continue;
    lane.waits = false;
    lane.holds = true;
    lane.block = lease.id;
    lane.round = last_round_ + 1;
    given.push_back({key.first, key.second, lease});
    round->members.push_back({lease.id, lease.batches, lease.skip_mask});
  }
  if (given.empty()) return given;
  round->id = ++last_round_;
  round->lanes = static_cast<uint32_t>(lanes_.size());
  std::sort(round->members.begin(), round->members.end(),
            [](const RoundMember& a, const RoundMember& b) { return a.block < b.block; });
  return given;
}

}  // namespace flux
