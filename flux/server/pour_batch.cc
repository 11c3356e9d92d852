#include "flux/server/pour_batch.h"

namespace flux {

PourBatch::PourBatch(Replicator* replicator, size_t tables, uint32_t sparse_shards,
                     uint32_t all_shards)
    : replicator_(replicator),
      tables_(tables),
      sparse_shards_(sparse_shards),
      all_shards_(all_shards),
      merger_(tables) {}

PourBatch::Group* PourBatch::group(const PushClaim& claim, Weight weight, ShardId shard) {
  for (Group& known : groups_)
    if (known.claim.ids == claim.ids && known.claim.geometry == claim.geometry &&
        known.weight == weight && known.last < shard) {
      known.last = shard;
      return &known;
    }
  Group& made = groups_.emplace_back(replicator_);
  made.claim = claim;
  made.weight = weight;
  made.last = shard;
  made.memory->begin.assign(sparse_shards_ + 1, 0);
  made.memory->tables.resize(tables_);
  made.memory->dense.resize(all_shards_ - sparse_shards_);
  return &made;
}

Outbox* PourBatch::add_rows(const PushClaim& claim, Weight weight, ShardId shard) {
  Group* to = group(claim, weight, shard);
  Memory& memory = *to->memory;
  for (; to->filled < shard; ++to->filled)
    memory.begin[to->filled + 1] = static_cast<uint32_t>(memory.keys.size());
  const size_t n = merger_.keys().size();
  const std::span<const uint32_t> dims = merger_.dims();
  memory.keys.insert(memory.keys.end(), merger_.keys().begin(), merger_.keys().end());
  memory.counts.insert(memory.counts.end(), merger_.counts(), merger_.counts() + n);
  for (size_t t = 0; t < dims.size(); ++t)
    memory.tables[t].insert(memory.tables[t].end(), merger_.table(t),
                            merger_.table(t) + n * dims[t]);
  memory.begin[shard + 1] = static_cast<uint32_t>(memory.keys.size());
  to->filled = shard + 1;
  return &to->outbox;
}

Outbox* PourBatch::add_dense(const PushClaim& claim, Weight weight, ShardId shard, size_t floats) {
  Group* to = group(claim, weight, shard);
  to->memory->dense[shard - sparse_shards_].assign(merger_.dense(), merger_.dense() + floats);
  return &to->outbox;
}

void PourBatch::send() {
  for (Group& one : groups_) {
    if (!one.outbox.has_forwards()) continue;
    Memory& memory = *one.memory;
    for (; one.filled < sparse_shards_; ++one.filled)
      memory.begin[one.filled + 1] = static_cast<uint32_t>(memory.keys.size());
    for (const auto& table : memory.tables) memory.table_list.push_back(table.data());
    for (const auto& part : memory.dense)
      memory.dense_list.push_back(part.empty() ? nullptr : part.data());
    ReplicateRequest request;
    request.push.claim = one.claim;
    request.push.examples = one.weight.examples;
    request.push.lr_scale = one.weight.lr_scale;
    request.push.keys = {memory.keys.data(), memory.begin.data()};
    request.push.counts = memory.counts.data();
    request.push.tables = memory.table_list;
    request.push.dense_parts = memory.dense_list;
    request.push.memory = one.memory;
    // Those who pushed get a receipt of their own, for all shards of their push.
    replicator_->send(&one.outbox, request);
  }
  groups_.clear();
}

}  // namespace flux
