// The verb pull as bytes.
#include <cstring>

#include "flux/api/wire_data.h"
#include "flux/api/wire_parts.h"
#include "flux/api/wire_values.h"

namespace flux {
namespace {

// After the data of a section; a section without data may lie nowhere.
void zero_padding(std::byte* section, uint64_t bytes) {
  if (padded(bytes) > bytes) std::memset(section + bytes, 0, padded(bytes) - bytes);
}

}  // namespace

Result<WireRequest> encode_pull(const PullRequest& request, const ModelShape& shape,
                                WireValue value) {
  WireRequest out;
  wire::Pull control;
  FLUX_ASSIGN_OR_RETURN(const PhaseView phase, find_phase("pull", shape, request.phase));
  FLUX_RETURN_IF_ERROR(
      plan_part(request.shards, request.keys, shape, phase, control.mutable_keys(), &out.part));
  const bool want_dense = request.dense != nullptr || !request.dense_parts.empty();
  for (const uint32_t d : out.part.dense)
    if (want_dense && dense_at(request, d, 0) == nullptr)
      return invalid("pull: dense shard {} has no place to go", d);
  if (request.tables.size() != shape.dims.size())
    return invalid("pull: rows of {} tables, the model has {}", request.tables.size(),
                   shape.dims.size());
  control.set_incarnation(request.incarnation);
  put_shape(shape, control.mutable_shape());
  control.set_value(static_cast<wire::Value>(value));
  control.set_want_dense(want_dense);
  control.set_phase(request.phase);
  control.mutable_shards()->Assign(request.shards.begin(), request.shards.end());
  out.control = control.SerializeAsString();
  gather_section(request.keys.keys, sizeof(uint64_t), out.part, &out.payload);
  return out;
}

uint64_t pull_reply_bytes(const WirePart& part, const ModelShape& shape, WireValue value,
                          bool want_dense, uint32_t phase) {
  uint64_t bytes = 0;
  const PhaseView view = shape.phase(phase);
  for (size_t t = 0; t < view.dims.size(); ++t)
    bytes += padded(part.of_table(t).keys * view.dims[t] * value_bytes(value));
  if (want_dense)
    for (const uint32_t d : part.dense) bytes += padded(shape.dense_size(d) * value_bytes(value));
  return bytes;
}

std::vector<std::span<std::byte>> pull_reply_targets(const WirePart& part, const ModelShape& shape,
                                                     const PullRequest& request,
                                                     std::span<std::byte, kSectionAlign> padding) {
  std::vector<std::span<std::byte>> targets;
  const auto pad = [&](uint64_t bytes) {
    if (padded(bytes) > bytes) targets.push_back(padding.first(padded(bytes) - bytes));
  };
  const PhaseView phase = shape.phase(request.phase);
  for (size_t t = 0; t < phase.dims.size(); ++t) {
    if (!phase.has_table(t)) continue;
    const uint64_t row = uint64_t{phase.dims[t]} * sizeof(float);
    auto* base = reinterpret_cast<std::byte*>(request.tables[t]);
    const WireRuns& rows = part.of_table(t);
    for (const auto& [begin, end] : rows.runs)
      targets.emplace_back(base + (begin - rows.first) * row, (end - begin) * row);
    pad(rows.keys * row);
  }
  if (request.dense == nullptr && request.dense_parts.empty()) return targets;
  for (const uint32_t d : part.dense) {
    const uint64_t bytes = shape.dense_size(d) * sizeof(float);
    float* to = dense_at(request, d, shape.dense_begin(d) - phase.dense_begin);
    targets.emplace_back(reinterpret_cast<std::byte*>(to), bytes);
    pad(bytes);
  }
  return targets;
}

std::string encode_pull_mark(const AgeMark& mark) {
  wire::PullReply out;
  if (mark.clock == 0) return "";
  out.mutable_mark()->set_clock(mark.clock);
  out.mutable_mark()->set_examples(mark.examples);
  return out.SerializeAsString();
}

Status decode_pull_mark(std::string_view control, AgeMark* mark) {
  wire::PullReply in;
  FLUX_RETURN_IF_ERROR(parse_message(control, "answer of pull", &in));
  *mark = {in.mark().clock(), in.mark().examples()};
  return Status::ok();
}

void read_pull_reply(const std::byte* reply, WireValue value, const WirePart& part,
                     const ModelShape& shape, const PullRequest& request) {
  uint64_t at = 0;
  const PhaseView phase = shape.phase(request.phase);
  for (size_t t = 0; t < phase.dims.size(); ++t) {
    const uint64_t dim = phase.dims[t];
    const auto* in = reinterpret_cast<const uint16_t*>(reply + at);
    const WireRuns& rows = part.of_table(t);
    for (const auto& [begin, end] : rows.runs) {
      const uint64_t floats = (end - begin) * dim;
      from_halves(in, value, request.tables[t] + (begin - rows.first) * dim, floats);
      in += floats;
    }
    at += padded(rows.keys * dim * value_bytes(value));
  }
  if (request.dense == nullptr && request.dense_parts.empty()) return;
  for (const uint32_t d : part.dense) {
    from_halves(reinterpret_cast<const uint16_t*>(reply + at), value,
                dense_at(request, d, shape.dense_begin(d) - phase.dense_begin),
                shape.dense_size(d));
    at += padded(shape.dense_size(d) * value_bytes(value));
  }
}

Status decode_pull(std::string_view control, std::span<const std::byte> payload,
                   const ShapeOf& shape_of, WirePull* out) {
  wire::Pull in;
  FLUX_RETURN_IF_ERROR(parse_message(control, "pull", &in));
  FLUX_ASSIGN_OR_RETURN(const ModelShape* shape,
                        find_shape("pull", in.incarnation(), in.shape(), shape_of));
  FLUX_RETURN_IF_ERROR(take_value("pull", in.value(), &out->value));
  FLUX_ASSIGN_OR_RETURN(const PhaseView phase, find_phase("pull", *shape, in.phase()));
  FLUX_RETURN_IF_ERROR(take_shards("pull", in.shards(), in.keys(), payload.size() / 8, *shape,
                                   phase, &out->shards_, &out->begin_, &out->dense_));
  out->keys = out->begin_.back();
  FLUX_RETURN_IF_ERROR(check_payload("pull", payload, padded(out->keys * sizeof(uint64_t))));
  if (!in.want_dense()) out->dense_.clear();
  out->table_floats_.clear();
  for (size_t t = 0; t < phase.dims.size(); ++t)
    out->table_floats_.push_back(keys_of_table(*shape, t, out->begin_) * phase.dims[t]);
  out->dense_floats_.clear();
  for (const uint32_t d : out->dense_) out->dense_floats_.push_back(shape->dense_size(d));
  out->reply_bytes_ = out->float_bytes_ = 0;
  out->for_each_section([&](uint64_t floats) {
    out->reply_bytes_ += padded(floats * value_bytes(out->value));
    out->float_bytes_ += padded(floats * sizeof(float));
  });
  if (out->float_bytes_ > kPullReplyBytesMax)
    return invalid("pull: the rows of {} keys are {} bytes, at most {} at once; pull fewer",
                   out->keys, out->float_bytes_, kPullReplyBytesMax);
  out->tables_.assign(shape->dims.size(), nullptr);
  out->dense_parts_.assign(shape->dense_shards(), nullptr);
  out->request = {};
  out->request.incarnation = in.incarnation();
  out->request.phase = in.phase();
  out->request.shards = out->shards_;
  out->request.keys = {reinterpret_cast<const uint64_t*>(payload.data()), out->begin_.data(),
                       static_cast<uint32_t>(out->keys)};
  out->request.tables = out->tables_;
  out->request.dense_parts = out->dense_parts_;
  return Status::ok();
}

template <typename Visit>
void WirePull::for_each_section(Visit visit) const {
  for (const uint64_t floats : table_floats_) visit(floats);
  for (const uint64_t floats : dense_floats_) visit(floats);
}

void WirePull::write_to(std::byte* memory) {
  uint64_t at = 0;
  size_t section = 0;
  for_each_section([&](uint64_t floats) {
    auto* here = reinterpret_cast<float*>(memory + at);
    if (section < tables_.size())
      tables_[section] = here;
    else
      dense_parts_[dense_[section - tables_.size()]] = here;
    ++section;
    const uint64_t bytes = floats * sizeof(float);
    zero_padding(memory + at, bytes);
    at += padded(bytes);
  });
}

void WirePull::pack(const std::byte* floats, std::byte* reply) const {
  for_each_section([&](uint64_t n) {
    to_halves(reinterpret_cast<const float*>(floats), value, reinterpret_cast<uint16_t*>(reply), n);
    const uint64_t bytes = n * value_bytes(value);
    zero_padding(reply, bytes);
    floats += padded(n * sizeof(float));
    reply += padded(bytes);
  });
}

}  // namespace flux
