#include "flux/server/server.h"

#include <algorithm>

#include "flux/base/hash.h"

namespace flux {

Result<std::unique_ptr<Server>> Server::create(const ServerOptions& options) {
  if (options.shards < 1 || options.shards > 65536)
    return invalid("shards: {} is not between 1 and 65536", options.shards);
  std::unique_ptr<Server> server(new Server(options));
  for (const TableOptions& table : options.tables) {
    FLUX_ASSIGN_OR_RETURN(auto rule, make_optimizer(table.optimizer));
    server->table_rules_.push_back(std::move(rule));
    server->dims_.push_back(table.dim);
  }
  FLUX_ASSIGN_OR_RETURN(server->dense_rule_, make_optimizer(options.dense_optimizer));
  server->build_shards();
  return server;
}

void Server::build_shards() {
  std::vector<std::shared_ptr<RowArena>> arenas;
  for (const TableOptions& table : options_.tables) arenas.push_back(make_row_arena(table));
  for (ShardId s = 0; s < options_.shards; ++s) {
    auto shard = std::make_unique<Shard>();
    shard->replica = ShardReplica(s, options_.incarnation, options_.epoch);
    for (size_t t = 0; t < options_.tables.size(); ++t)
      shard->tables.emplace_back(options_.tables[t], table_rules_[t].get(), arenas[t]);
    shards_.push_back(std::move(shard));
  }
  const uint32_t dense_shards = dense_shard_count(options_.parameters);
  for (uint32_t d = 0; d < dense_shards; ++d) {
    auto shard = std::make_unique<Shard>();
    shard->replica = ShardReplica(options_.shards + d, options_.incarnation, options_.epoch);
    shard->dense_begin = options_.parameters * d / dense_shards;
    shard->dense_size = options_.parameters * (d + 1) / dense_shards - shard->dense_begin;
    shard->dense =
        std::make_unique<DenseShard>(dense_rule_.get(), shard->dense_begin, shard->dense_size);
    shards_.push_back(std::move(shard));
  }
}

void Server::init_dense(std::span<const float> parameters) {
  FLUX_CHECK(parameters.size() == options_.parameters, "{} initial parameters for {}",
             parameters.size(), options_.parameters);
  for (const auto& shard : shards_)
    if (shard->dense) shard->dense->init(parameters.subspan(shard->dense_begin, shard->dense_size));
}

ServerTotals Server::totals() const {
  ServerTotals sum;
  sum.occurrences.resize(options_.tables.size());
  bool first = true;
  for (const auto& shard : shards_) {
    const std::lock_guard lock(shard->mutex);
    for (size_t t = 0; t < shard->tables.size(); ++t) {
      sum.rows += shard->tables[t].size();
      sum.memory_bytes += shard->tables[t].memory_bytes();
      sum.occurrences[t] += shard->tables[t].count_sum();
    }
    if (!shard->dense) continue;
    const uint64_t examples = shard->dense->examples();
    sum.dense_examples_min = first ? examples : std::min(sum.dense_examples_min, examples);
    sum.dense_examples_max = std::max(sum.dense_examples_max, examples);
    first = false;
  }
  return sum;
}

uint64_t Server::content_hash() const {
  uint64_t sum = 0;
  for (size_t s = 0; s < shards_.size(); ++s) {
    for (size_t t = 0; t < shards_[s]->tables.size(); ++t)
      sum += hash_pair(shards_[s]->tables[t].content_hash(), t);
    if (shards_[s]->dense) sum += hash_pair(shards_[s]->dense->content_hash(), s);
  }
  return sum;
}

}  // namespace flux
