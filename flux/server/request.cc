// Whether what a request says about one shard can be used. A request that was decoded from a frame
// carries the number of its keys (ShardedKeys::limit); every range is checked against it, and every
// key that is to be written, because one in the wrong shard would spoil its checkpoint for ever.
#include <algorithm>

#include "flux/api/lr_scale.h"
#include "flux/base/hash.h"
#include "flux/base/key.h"
#include "flux/server/server.h"

namespace flux {

bool Server::range_is_good(const ShardedKeys& keys, ShardId shard) const {
  if (keys.begin == nullptr) return false;
  const uint32_t begin = keys.begin[shard];
  const uint32_t end = keys.begin[shard + 1];
  return begin <= end && end <= keys.limit && (begin == end || keys.keys != nullptr);
}

bool Server::keys_are_good(const ShardedKeys& keys, ShardId shard) const {
  if (!range_is_good(keys, shard)) return false;
  if (keys.limit == ShardedKeys::kTrusted) return true;
  bool good = true;
  const uint32_t group = shape_.group_of(shard);
  for (uint32_t i = keys.begin[shard]; i < keys.begin[shard + 1]; ++i)
    good &= shape_.shard_of_key(keys.keys[i], group) == shard;
  return good;
}

bool Server::phase_is_good(const PushClaim& claim) const {
  if (shape_.phases.empty()) return true;
  return std::all_of(claim.ids.begin(), claim.ids.end(), [&](const BatchId& id) {
    return shape_.has_phase(id.block.phase) && id.block.phase == claim.ids.front().block.phase;
  });
}

const float* Server::dense_of(const PushRequest& request, ShardId id) const {
  const uint32_t d = id - options_.shards;
  const PhaseView phase = shape_.phase(phase_of(request));
  if (!phase.has_dense(d)) return nullptr;
  if (!request.dense_parts.empty())
    return d < request.dense_parts.size() ? request.dense_parts[d] : nullptr;
  return request.dense == nullptr ? nullptr : request.dense + (dense_begin(id) - phase.dense_begin);
}

bool Server::gradient_is_good(const PushRequest& request, ShardId id) const {
  if (request.claim.verdict != Verdict::kApplied) return true;  // it has none
  if (!is_lr_scale(request.lr_scale) || !phase_is_good(request.claim)) return false;
  const PhaseView phase = shape_.phase(phase_of(request));
  if (is_dense(id))
    return !phase.has_dense(id - options_.shards) || dense_of(request, id) != nullptr;
  if (!keys_are_good(request.keys, id)) return false;
  if (request.keys.begin[id] == request.keys.begin[id + 1]) return true;
  if (request.counts == nullptr || request.tables.size() != shape_.dims.size()) return false;
  for (size_t t = 0; t < phase.dims.size(); ++t)
    if (request.tables[t] == nullptr && phase.has_table(t)) return false;
  return true;
}

uint64_t Server::gradient_bytes(const PushRequest& request, ShardId id) const {
  if (request.claim.verdict != Verdict::kApplied) return 0;
  if (is_dense(id)) return dense_of(request, id) == nullptr ? 0 : dense_size(id) * sizeof(float);
  uint64_t row = sizeof(Key) + sizeof(uint32_t);
  for (const uint32_t width : widths(phase_of(request), id)) row += width * sizeof(float);
  return (request.keys.begin[id + 1] - request.keys.begin[id]) * row;
}

uint64_t Server::payload_hash(const PushRequest& request, ShardId id) const {
  if (request.claim.verdict != Verdict::kApplied) return 0;
  if (is_dense(id)) {
    const float* gradient = dense_of(request, id);
    if (gradient == nullptr) return 0;
    return with_lr_scale(hash_bytes(gradient, dense_size(id) * sizeof(float)), request.lr_scale);
  }
  const uint32_t begin = request.keys.begin[id];
  const uint32_t n = request.keys.begin[id + 1] - begin;
  if (n == 0) return 0;
  uint64_t h = hash_bytes(request.keys.keys + begin, n * sizeof(uint64_t));
  h = hash_bytes(request.counts + begin, n * sizeof(uint32_t), h);
  const std::vector<uint32_t>& width = widths(phase_of(request), id);
  for (size_t t = 0; t < width.size(); ++t)
    if (width[t] > 0)
      h = hash_bytes(request.tables[t] + row_at(request.keys, t, begin),
                     static_cast<size_t>(n) * width[t] * sizeof(float), h);
  return with_lr_scale(h, request.lr_scale);
}

namespace {

struct OwnedPush {
  std::vector<uint64_t> keys;
  std::vector<uint32_t> begin, counts;
  std::vector<std::vector<float>> tables;
  std::vector<const float*> table_list, part_list;
  std::vector<float> dense;
  std::vector<std::vector<float>> parts;
};

}  // namespace

PushRequest Server::with_memory(const PushRequest& request) const {
  if (request.memory != nullptr || request.claim.verdict != Verdict::kApplied) return request;
  const auto own = std::make_shared<OwnedPush>();
  PushRequest copy = request;
  if (request.keys.begin != nullptr) {
    own->begin.assign(request.keys.begin, request.keys.begin + options_.shards + 1);
    const size_t n = std::min(own->begin.back(), request.keys.limit);
    if (request.keys.keys != nullptr) own->keys.assign(request.keys.keys, request.keys.keys + n);
    if (request.counts != nullptr) own->counts.assign(request.counts, request.counts + n);
    const PhaseView phase = shape_.phase(phase_of(request));
    for (size_t t = 0; t < request.tables.size(); ++t) {
      const float* from = phase.has_table(t) ? request.tables[t] : nullptr;
      const size_t last = std::min<size_t>(own->begin[shape_.table_shards(t).end], n);
      const size_t floats = row_at(request.keys, t, static_cast<uint32_t>(last));
      own->tables.emplace_back(from, from == nullptr ? from : from + floats);
      own->table_list.push_back(own->tables.back().data());
    }
    copy.keys.begin = own->begin.data();
    copy.keys.keys = own->keys.data();
    copy.counts = own->counts.data();
    copy.tables = own->table_list;
  }
  if (request.dense != nullptr) {
    const uint64_t floats = shape_.phase(phase_of(request)).parameters();
    own->dense.assign(request.dense, request.dense + floats);
    copy.dense = own->dense.data();
  }
  for (size_t d = 0; d < request.dense_parts.size(); ++d) {
    const float* from = request.dense_parts[d];
    const auto id = static_cast<ShardId>(options_.shards + d);
    if (from == nullptr || id >= slots_.size()) {
      own->part_list.push_back(nullptr);
      continue;
    }
    own->parts.emplace_back(from, from + dense_size(id));
    own->part_list.push_back(own->parts.back().data());
  }
  copy.dense_parts = own->part_list;
  copy.memory = own;
  return copy;
}

Status Server::check_pull(const PullRequest& request) const {
  if (request.incarnation != options_.incarnation)
    return error(Code::kStale, "pull of another incarnation");
  if (!shape_.has_phase(request.phase))
    return invalid("pull of phase {}, the job has {}", request.phase, shape_.phases.size());
  const PhaseView phase = shape_.phase(request.phase);
  for (const ShardId id : request.shards) {
    if (id >= slots_.size()) return invalid("pull of shard {}, the job has {}", id, slots_.size());
    if (is_dense(id)) continue;
    if (!range_is_good(request.keys, id)) return invalid("pull of shard {}: bad keys", id);
    if (request.keys.begin[id] == request.keys.begin[id + 1]) continue;
    bool tables_are_good = request.tables.size() == shape_.dims.size();
    for (size_t t = 0; tables_are_good && t < phase.dims.size(); ++t)
      tables_are_good = request.tables[t] != nullptr || !phase.has_table(t);
    if (!tables_are_good)
      return invalid("pull of shard {}: rows of {} tables, the job has {}", id,
                     request.tables.size(), shape_.dims.size());
  }
  return Status::ok();
}

}  // namespace flux
