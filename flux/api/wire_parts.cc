#include "flux/api/wire_parts.h"

#include <algorithm>

#include "flux/base/half.h"

namespace flux {
namespace {
alignas(kSectionAlign) constexpr std::byte kZeros[kSectionAlign] = {};

// The runs of one table: those of the keys, as far as its shards go.
WireRuns runs_of_table(const WirePart& part, const ShardedKeys& keys, ShardRange shards) {
  WireRuns out;
  out.first = keys.begin[shards.begin];
  const uint32_t last = keys.begin[shards.end];
  for (const auto& [begin, end] : part.runs) {
    const uint32_t from = std::max(begin, out.first), to = std::min(end, last);
    if (from >= to) continue;
    out.runs.emplace_back(from, to);
    out.keys += to - from;
  }
  return out;
}

}  // namespace

Result<WireValue> parse_wire_value(std::string_view name) {
  if (name == "fp32") return WireValue::kFp32;
  if (name == "fp16") return WireValue::kFp16;
  if (name == "bf16") return WireValue::kBf16;
  return invalid("wire: '{}' is none of fp32, fp16, bf16", name);
}

void put_shape(const ModelShape& shape, wire::Shape* out) {
  out->set_sparse_shards(shape.sparse_shards);
  out->mutable_dims()->Assign(shape.dims.begin(), shape.dims.end());
  out->set_parameters(shape.parameters);
  if (shape.groups != 1) {
    out->set_groups(shape.groups);
    out->mutable_table_groups()->Assign(shape.table_groups.begin(), shape.table_groups.end());
  }
  for (const PhaseShape& phase : shape.phases) {
    wire::PhaseShape* one = out->add_phases();
    one->mutable_dims()->Assign(phase.dims.begin(), phase.dims.end());
    one->set_parameters(phase.parameters);
  }
}

namespace {

// At most so much of what a stranger says is kept for the message.
constexpr int kShownMax = 64;

PhaseShape phase_shape(const wire::PhaseShape& in) {
  PhaseShape out;
  out.dims.assign(in.dims().begin(), in.dims().begin() + std::min(in.dims_size(), kShownMax));
  out.parameters = in.parameters();
  return out;
}

bool same_phases(const wire::Shape& theirs, const ModelShape& shape) {
  if (static_cast<size_t>(theirs.phases_size()) != shape.phases.size()) return false;
  for (int p = 0; p < theirs.phases_size(); ++p) {
    const PhaseShape& ours = shape.phases[static_cast<size_t>(p)];
    const wire::PhaseShape& other = theirs.phases(p);
    if (other.parameters() != ours.parameters ||
        !std::equal(other.dims().begin(), other.dims().end(), ours.dims.begin(), ours.dims.end()))
      return false;
  }
  return true;
}

}  // namespace

Result<PhaseView> find_phase(const char* verb, const ModelShape& shape, uint32_t phase) {
  if (!shape.has_phase(phase))
    return invalid("{}: phase {}; the job has {}", verb, phase, shape.phases.size());
  return shape.phase(phase);
}

Result<PhaseView> find_phase(const char* verb, const ModelShape& shape,
                             const PushRequest& request) {
  for (const BatchId& id : request.claim.ids)
    if (!shape.phases.empty() && id.block.phase != phase_of(request))
      return invalid("{}: batches of phase {} and {} in one", verb, phase_of(request),
                     id.block.phase);
  return find_phase(verb, shape, phase_of(request));
}

Result<const ModelShape*> find_shape(const char* verb, uint64_t incarnation,
                                     const wire::Shape& theirs, const ShapeOf& shape_of) {
  const ModelShape* shape = shape_of(incarnation);
  if (shape == nullptr)
    return error(Code::kStale, "{}: this server has no job of incarnation {:016x}", verb,
                 incarnation);
  const auto equal = [](const auto& a, const auto& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  };
  const uint32_t groups = std::max(theirs.groups(), 1U);
  const bool same = theirs.sparse_shards() == shape->sparse_shards &&
                    theirs.parameters() == shape->parameters && equal(theirs.dims(), shape->dims) &&
                    groups == shape->groups &&
                    (groups == 1 || equal(theirs.table_groups(), shape->table_groups)) &&
                    same_phases(theirs, *shape);
  if (same) return shape;
  const auto some = [](const auto& list) {
    return std::vector<uint32_t>(list.begin(), list.begin() + std::min(list.size(), kShownMax));
  };
  ModelShape other{theirs.sparse_shards(), some(theirs.dims()), theirs.parameters(), groups,
                   some(theirs.table_groups())};
  for (int p = 0; p < std::min(theirs.phases_size(), kShownMax); ++p)
    other.phases.push_back(phase_shape(theirs.phases(p)));
  return invalid("{}: the sender's model has {}; this job has {}", verb, to_string(other),
                 to_string(*shape));
}

Status take_value(const char* verb, int number, WireValue* out) {
  if (number < 0 || number > static_cast<int>(WireValue::kBf16))
    return invalid("{}: value type {}; 0 is fp32, 1 fp16, 2 bf16", verb, number);
  *out = static_cast<WireValue>(number);
  return Status::ok();
}

Status plan_part(std::span<const ShardId> shards, const ShardedKeys& keys, const ModelShape& shape,
                 const PhaseView& phase, WireNumbers* keys_of, WirePart* part) {
  const uint32_t all = shape.all_shards();
  keys_of->Reserve(static_cast<int>(shards.size()));
  for (size_t i = 0; i < shards.size(); ++i) {
    const ShardId shard = shards[i];
    if (shard >= all || (i > 0 && shard <= shards[i - 1]))
      return invalid("shard {} at place {}: shards rise and are below {}", shard, i, all);
    if (shard >= shape.sparse_shards) {
      const uint32_t d = shard - shape.sparse_shards;
      if (phase.has_dense(d)) part->dense.push_back(d);
      continue;
    }
    const uint32_t begin = keys.begin[shard], end = keys.begin[shard + 1];
    if (end < begin) return invalid("shard {}: its keys end before they begin", shard);
    keys_of->Add(end - begin);
    if (begin == end) continue;
    part->keys += end - begin;
    if (!part->runs.empty() && part->runs.back().second == begin)
      part->runs.back().second = end;
    else
      part->runs.emplace_back(begin, end);
  }
  for (size_t t = 0; t < shape.dims.size() && shape.groups > 1 && part->keys > 0; ++t)
    part->tables.push_back(runs_of_table(*part, keys, shape.table_shards(t)));
  return Status::ok();
}

uint64_t keys_of_table(const ModelShape& shape, size_t t, const std::vector<uint32_t>& begin) {
  const ShardRange shards = shape.table_shards(t);
  return begin[shards.end] - begin[shards.begin];
}

void add_padding(uint64_t bytes, std::vector<std::span<const std::byte>>* out) {
  if (padded(bytes) > bytes) out->emplace_back(kZeros, padded(bytes) - bytes);
}

void gather_section(const void* base, uint64_t element_bytes, const WireRuns& part,
                    std::vector<std::span<const std::byte>>* out) {
  const auto* bytes = static_cast<const std::byte*>(base);
  for (const auto& [begin, end] : part.runs)
    out->emplace_back(bytes + (begin - part.first) * element_bytes, (end - begin) * element_bytes);
  add_padding(part.keys * element_bytes, out);
}

Status take_shards(const char* verb, const WireNumbers& shards, const WireNumbers& keys_of,
                   uint64_t keys_max, const ModelShape& shape, const PhaseView& phase,
                   std::vector<ShardId>* out, std::vector<uint32_t>* begin,
                   std::vector<uint32_t>* dense) {
  const uint32_t all = shape.all_shards();
  out->assign(shards.begin(), shards.end());
  begin->assign(size_t{shape.sparse_shards} + 1, 0);
  dense->clear();
  uint64_t keys = 0;
  uint32_t next = 0;  // sparse shards below this have their begin
  int sparse = 0;
  for (size_t i = 0; i < out->size(); ++i) {
    const ShardId shard = (*out)[i];
    if (shard >= all || (i > 0 && shard <= (*out)[i - 1]))
      return invalid("{}: shard {} at place {}; shards rise and are below {}", verb, shard, i, all);
    if (shard >= shape.sparse_shards) {
      const uint32_t d = shard - shape.sparse_shards;
      if (phase.has_dense(d)) dense->push_back(d);
      continue;
    }
    if (sparse >= keys_of.size())
      return invalid("{}: says the number of keys of {} shards and names more", verb, sparse);
    for (; next <= shard; ++next) (*begin)[next] = static_cast<uint32_t>(keys);
    keys += keys_of[sparse++];
    if (keys > keys_max || keys > UINT32_MAX)
      return invalid("{}: {} keys up to shard {}, the payload has room for {}", verb, keys, shard,
                     keys_max);
  }
  if (sparse != keys_of.size())
    return invalid("{}: {} numbers of keys for {} sparse shards", verb, keys_of.size(), sparse);
  for (; next <= shape.sparse_shards; ++next) (*begin)[next] = static_cast<uint32_t>(keys);
  return Status::ok();
}

Status check_payload(const char* verb, std::span<const std::byte> payload, uint64_t expected) {
  if (payload.size() != expected)
    return invalid("{}: a payload of {} bytes, {} by what its head says", verb, payload.size(),
                   expected);
  if (reinterpret_cast<uintptr_t>(payload.data()) % alignof(uint64_t) != 0)
    return invalid("{}: the payload is not aligned in memory", verb);
  return Status::ok();
}

void to_halves(const float* in, WireValue value, uint16_t* out, uint64_t n) {
  if (value == WireValue::kFp16)
    floats_to_fp16(in, out, n);
  else
    floats_to_bf16(in, out, n);
}

void from_halves(const uint16_t* in, WireValue value, float* out, uint64_t n) {
  if (value == WireValue::kFp16)
    fp16_to_floats(in, out, n);
  else
    bf16_to_floats(in, out, n);
}

}  // namespace flux
