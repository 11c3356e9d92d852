// The shards of one request, shared among the threads of whoever asks in this process.
#include "flux/server/server.h"

namespace flux {

// Where runs of shards begin, and the end: runs of about the same work, several for each member.
std::vector<uint32_t> Server::cut_shards(const Asked& asked, uint32_t members) const {
  constexpr uint64_t kRunsEach = 12;
  const auto work_of = [&](ShardId id) -> uint64_t {
    if (id >= slots_.size()) return 1;
    if (is_dense(id)) return 1 + ShardSlot::keys_of_dense(dense_size(id));
    if (asked.keys.begin == nullptr) return 1;
    return uint64_t{1} + asked.keys.begin[id + 1] - asked.keys.begin[id];
  };
  uint64_t all = 0, run = 0;
  for (const ShardId id : asked.shards) all += work_of(id);
  std::vector<uint32_t> cuts = {0};
  for (uint32_t i = 0; i < asked.shards.size(); ++i) {
    run += work_of(asked.shards[i]);
    if (run * members * kRunsEach < all) continue;
    cuts.push_back(i + 1);
    run = 0;
  }
  if (run > 0) cuts.push_back(static_cast<uint32_t>(asked.shards.size()));
  return cuts;
}

void Server::for_shards(Team* team, const Asked& asked,
                        const std::function<void(size_t i)>& one) const {
  const auto run = [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      prefetch_ahead(asked.keys, asked.shards.subspan(begin, end - begin), i - begin, asked.phase);
      one(i);
    }
  };
  if (team == nullptr || team->members() == 1) return run(0, asked.shards.size());
  const std::vector<uint32_t> cuts = cut_shards(asked, team->members());
  const auto runs = static_cast<uint32_t>(cuts.size() - 1);
  // The last ones first: dense shards are the largest.
  team->run(runs,
            [&](uint32_t block, uint32_t) { run(cuts[runs - 1 - block], cuts[runs - block]); });
}

}  // namespace flux
