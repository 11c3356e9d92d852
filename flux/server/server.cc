#include "flux/server/server.h"

#include <algorithm>
#include <numeric>

#include "flux/base/hash.h"

namespace flux {
Status Server::check_options(const ServerOptions& options) {
  if (options.shards < 1 || options.shards > 65536)
    return invalid("shards: {} is not between 1 and 65536", options.shards);
  const uint64_t total = options.shards + uint64_t{dense_shard_count(options.parameters)};
  const std::vector<ShardId> owned = options.owned.value_or(std::vector<ShardId>());
  for (size_t i = 0; i < owned.size(); ++i) {
    if (owned[i] >= total)
      return invalid("shard {} for a server of a job with {} shards", owned[i], total);
    if (i > 0 && owned[i - 1] >= owned[i])
      return invalid("the shards of a server must rise; {} follows {}", owned[i], owned[i - 1]);
  }
  return Status::ok();
}

Result<std::unique_ptr<Server>> Server::create(const ServerOptions& options) {
  FLUX_RETURN_IF_ERROR(check_options(options));
  std::unique_ptr<Server> server(new Server(options));
  if (options.files == nullptr) server->options_.files = &real_files();
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
  shards_.resize(options_.shards + dense_shard_count(options_.parameters));
  owned_.resize(shards_.size());
  std::iota(owned_.begin(), owned_.end(), 0U);
  if (options_.owned) owned_ = *options_.owned;
  for (const ShardId id : owned_) shards_[id] = build_shard(id, arenas);
}

std::unique_ptr<Server::Shard> Server::build_shard(
    ShardId id, std::span<const std::shared_ptr<RowArena>> arenas) const {
  auto shard = std::make_unique<Shard>();
  shard->replica = ShardReplica(id, options_.incarnation, options_.epoch);
  if (id < options_.shards) {
    for (size_t t = 0; t < options_.tables.size(); ++t)
      shard->tables.emplace_back(options_.tables[t], table_rules_[t].get(), arenas[t]);
    return shard;
  }
  const uint32_t d = id - options_.shards;
  shard->dense_begin = dense_shard_begin(options_.parameters, d);
  shard->dense_size = dense_shard_begin(options_.parameters, d + 1) - shard->dense_begin;
  shard->dense =
      std::make_unique<DenseShard>(dense_rule_.get(), shard->dense_begin, shard->dense_size);
  return shard;
}

void Server::init_dense(std::span<const float> parameters) {
  FLUX_CHECK(parameters.size() == options_.parameters, "{} initial parameters for {}",
             parameters.size(), options_.parameters);
  for (const ShardId id : owned_) {
    Shard& shard = *shards_[id];
    if (shard.dense) shard.dense->init(parameters.subspan(shard.dense_begin, shard.dense_size));
  }
}

ServerTotals Server::totals() const {
  ServerTotals sum;
  sum.occurrences.resize(options_.tables.size());
  sum.pulls = pulls_.load(std::memory_order_relaxed);
  sum.pushes = pushes_.load(std::memory_order_relaxed);
  for (const ShardId id : owned_) {
    const Shard& shard = *shards_[id];
    const std::lock_guard lock(shard.mutex);
    for (size_t t = 0; t < shard.tables.size(); ++t) {
      sum.rows += shard.tables[t].size();
      sum.memory_bytes += shard.tables[t].memory_bytes();
      sum.occurrences[t] += shard.tables[t].count_sum();
    }
    if (!shard.dense) continue;
    const uint64_t examples = shard.dense->examples();
    sum.dense_examples_min = sum.has_dense ? std::min(sum.dense_examples_min, examples) : examples;
    sum.dense_examples_max = std::max(sum.dense_examples_max, examples);
    sum.has_dense = true;
  }
  return sum;
}

uint64_t Server::content_hash() const {
  uint64_t sum = 0;
  for (const ShardId id : owned_) {
    const Shard& shard = *shards_[id];
    for (size_t t = 0; t < shard.tables.size(); ++t)
      sum += hash_pair(shard.tables[t].content_hash(), t);
    if (shard.dense) sum += hash_pair(shard.dense->content_hash(), id);
  }
  return sum;
}

}  // namespace flux
