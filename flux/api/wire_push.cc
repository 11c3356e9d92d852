// The verb push as bytes.
#include <algorithm>

#include "flux/api/wire_data.h"
#include "flux/api/wire_parts.h"
#include "flux/api/wire_values.h"
#include "flux/protocol/ledger.h"

namespace flux {
namespace {

// Gradients one after the other, each section padded, as halves.
void gather_halves(const PushRequest& request, const ModelShape& shape, WireValue value,
                   const WirePart& part, Buffer<uint16_t>* halves,
                   std::vector<std::span<const std::byte>>* out) {
  uint64_t total = 0;
  const PhaseView phase = shape.phase(phase_of(request));
  for (size_t t = 0; t < phase.dims.size(); ++t)
    total += padded(part.of_table(t).keys * phase.dims[t] * 2);
  for (const uint32_t d : part.dense) total += padded(shape.dense_size(d) * 2);
  halves->resize_discard(total / 2);
  uint16_t* to = halves->data();
  const auto finish = [&](uint16_t* section, uint64_t n) {
    to = section + n;
    while ((to - halves->data()) % (kSectionAlign / 2) != 0) *to++ = 0;
  };
  for (size_t t = 0; t < phase.dims.size(); ++t) {
    uint16_t* section = to;
    uint64_t n = 0;
    const WireRuns& rows = part.of_table(t);
    for (const auto& [begin, end] : rows.runs) {
      const uint64_t floats = uint64_t{end - begin} * phase.dims[t];
      to_halves(request.tables[t] + uint64_t{begin - rows.first} * phase.dims[t], value,
                section + n, floats);
      n += floats;
    }
    finish(section, n);
  }
  for (const uint32_t d : part.dense) {
    to_halves(dense_at(request, d, shape.dense_begin(d) - phase.dense_begin), value, to,
              shape.dense_size(d));
    finish(to, shape.dense_size(d));
  }
  out->push_back(std::as_bytes(halves->span()));
}

void gather_floats(const PushRequest& request, const ModelShape& shape, const WirePart& part,
                   std::vector<std::span<const std::byte>>* out) {
  const PhaseView phase = shape.phase(phase_of(request));
  for (size_t t = 0; t < phase.dims.size(); ++t)
    if (phase.has_table(t))
      gather_section(request.tables[t], uint64_t{phase.dims[t]} * sizeof(float), part.of_table(t),
                     out);
  for (const uint32_t d : part.dense) {
    const uint64_t n = shape.dense_size(d);
    const float* from = dense_at(request, d, shape.dense_begin(d) - phase.dense_begin);
    out->push_back(std::as_bytes(std::span(from, n)));
    add_padding(n * sizeof(float), out);
  }
}

}  // namespace

Status put_rows(const PushRequest& request, const ModelShape& shape, WireValue value,
                wire::Push* out, WirePart* part) {
  FLUX_ASSIGN_OR_RETURN(const PhaseView phase, find_phase("push", shape, request));
  FLUX_RETURN_IF_ERROR(
      plan_part(request.shards, request.keys, shape, phase, out->mutable_keys(), part));
  if (request.tables.size() != shape.dims.size())
    return invalid("push: {} tables for {}", request.tables.size(), shape.dims.size());
  for (const uint32_t d : part->dense)
    if (dense_at(request, d, 0) == nullptr)
      return invalid("push: dense shard {} without a gradient", d);
  out->set_value(static_cast<wire::Value>(value));
  return Status::ok();
}

Status put_claim(const PushRequest& request, const ModelShape& shape, wire::Push* out) {
  if (request.epochs.size() != request.shards.size())
    return invalid("push: {} epochs for {} shards", request.epochs.size(), request.shards.size());
  out->set_incarnation(request.claim.incarnation);
  put_shape(shape, out->mutable_shape());
  out->set_geometry(request.claim.geometry);
  put_batches(request.claim.ids, out->mutable_ids());
  out->set_verdict(static_cast<uint32_t>(request.claim.verdict));
  out->set_examples(request.examples);
  if (request.lr_scale != 1) out->set_lr_scale(request.lr_scale);
  out->mutable_shards()->Assign(request.shards.begin(), request.shards.end());
  put_epochs(request.epochs, out->mutable_epochs(), out->mutable_epoch_of());
  if (request.step != nullptr) {
    wire::Step* step = out->mutable_step();
    step->set_round(request.step->round);
    step->set_step(request.step->step);
    put_batches(request.step->ids, step->mutable_ids());
    step->set_examples(request.step->examples);
  }
  return Status::ok();
}

void gather_push(const PushRequest& request, const ModelShape& shape, WireValue value,
                 Buffer<uint16_t>* halves, WireRequest* out) {
  gather_section(request.keys.keys, sizeof(uint64_t), out->part, &out->payload);
  gather_section(request.counts, sizeof(uint32_t), out->part, &out->payload);
  if (value == WireValue::kFp32)
    gather_floats(request, shape, out->part, &out->payload);
  else
    gather_halves(request, shape, value, out->part, halves, &out->payload);
}

Result<WireRequest> encode_push(const PushRequest& request, const ModelShape& shape,
                                WireValue value, Buffer<uint16_t>* halves) {
  WireRequest out;
  wire::Push control;
  FLUX_RETURN_IF_ERROR(put_claim(request, shape, &control));
  if (request.pulled.clock != 0) {
    control.mutable_pulled()->set_clock(request.pulled.clock);
    control.mutable_pulled()->set_examples(request.pulled.examples);
  }
  FLUX_RETURN_IF_ERROR(put_rows(request, shape, value, &control, &out.part));
  out.control = control.SerializeAsString();
  gather_push(request, shape, value, halves, &out);
  return out;
}

Status WirePush::bind_payload(const char* verb, std::span<const std::byte> payload,
                              const ModelShape& shape, const PhaseView& phase) {
  uint64_t values = 0, floats = 0;  // bytes of the sections of numbers, as sent and as floats
  const auto add = [&](uint64_t n) {
    values += padded(n * value_bytes(value));
    floats += padded(n * sizeof(float));
  };
  for (size_t t = 0; t < phase.dims.size(); ++t)
    add(keys_of_table(shape, t, begin_) * phase.dims[t]);
  for (const uint32_t d : dense_) add(shape.dense_size(d));
  const uint64_t counts_at = padded(keys * sizeof(uint64_t));
  const uint64_t values_at = counts_at + padded(keys * sizeof(uint32_t));
  FLUX_RETURN_IF_ERROR(check_payload(verb, payload, values_at + values));
  request.keys = {reinterpret_cast<const uint64_t*>(payload.data()), begin_.data(),
                  static_cast<uint32_t>(keys)};
  request.counts = reinterpret_cast<const uint32_t*>(payload.data() + counts_at);
  const std::byte* in = payload.data() + values_at;
  if (value != WireValue::kFp32) floats_.resize_discard(floats / sizeof(float));
  float* out = floats_.data();
  const auto next = [&](uint64_t n) {
    const auto* section = reinterpret_cast<const float*>(in);
    if (value != WireValue::kFp32) {
      from_halves(reinterpret_cast<const uint16_t*>(in), value, out, n);
      section = out;
      out += padded(n * sizeof(float)) / sizeof(float);
    }
    in += padded(n * value_bytes(value));
    return section;
  };
  tables_.clear();
  for (size_t t = 0; t < phase.dims.size(); ++t)
    tables_.push_back(phase.has_table(t) ? next(keys_of_table(shape, t, begin_) * phase.dims[t])
                                         : nullptr);
  dense_parts_.assign(shape.dense_shards(), nullptr);
  for (const uint32_t d : dense_) dense_parts_[d] = next(shape.dense_size(d));
  request.tables = tables_;
  request.dense_parts = dense_parts_;
  return Status::ok();
}

Status WirePush::take_claim(const char* verb, const wire::Push& in) {
  request = {};
  if (in.verdict() >= kVerdicts) return invalid("{}: verdict {}", verb, in.verdict());
  request.claim.incarnation = in.incarnation();
  request.claim.geometry = in.geometry();
  request.claim.verdict = static_cast<Verdict>(in.verdict());
  request.examples = in.examples();
  FLUX_RETURN_IF_ERROR(take_lr_scale(verb, in.lr_scale(), &request.lr_scale));
  request.pulled = {in.pulled().clock(), in.pulled().examples()};
  if (in.has_step()) {
    step_ = {in.step().round(), in.step().step(), {}, in.step().examples()};
    FLUX_RETURN_IF_ERROR(take_batches(in.step().ids(), "step of a push", &step_.ids));
    request.step = &step_;
  }
  return take_batches(in.ids(), verb, &request.claim.ids);
}

Status WirePush::take_rows(const char* verb, const wire::Push& in,
                           std::span<const std::byte> payload, const ModelShape& shape) {
  FLUX_RETURN_IF_ERROR(take_value(verb, in.value(), &value));
  request.as_bf16 = value == WireValue::kBf16;
  request.as_fp16 = value == WireValue::kFp16;
  FLUX_ASSIGN_OR_RETURN(const PhaseView phase, find_phase(verb, shape, request));
  FLUX_RETURN_IF_ERROR(take_shards(verb, in.shards(), in.keys(), payload.size() / 8, shape, phase,
                                   &shards_, &begin_, &dense_));
  keys = begin_.back();
  FLUX_RETURN_IF_ERROR(take_epochs_of(verb, in));
  return bind_payload(verb, payload, shape, phase);
}

Status WirePush::take_no_rows(const char* verb, const wire::Push& in,
                              std::span<const std::byte> payload, const ModelShape& shape) {
  FLUX_RETURN_IF_ERROR(take_rising(verb, in.shards(), &shards_));
  if (!shards_.empty() && shards_.back() >= shape.all_shards())
    return invalid("{}: shard {}; shards are below {}", verb, shards_.back(), shape.all_shards());
  if (!payload.empty() || !in.keys().empty())
    return invalid("{}: rows with an operation that has none", verb);
  begin_.assign(size_t{shape.sparse_shards} + 1, 0);
  dense_.clear();
  keys = 0;
  value = WireValue::kFp32;
  request.keys = {nullptr, begin_.data(), 0};
  return take_epochs_of(verb, in);
}

Status WirePush::take_epochs_of(const char* verb, const wire::Push& in) {
  const Status status = take_epochs(in.epochs(), in.epoch_of(), shards_.size(), &epochs_);
  if (!status.is_ok()) return status.with_context(verb);
  request.shards = shards_;
  request.epochs = epochs_;
  return Status::ok();
}

Status decode_push(std::string_view control, std::span<const std::byte> payload,
                   const ShapeOf& shape_of, WirePush* out) {
  wire::Push in;
  FLUX_RETURN_IF_ERROR(parse_message(control, "push", &in));
  FLUX_ASSIGN_OR_RETURN(const ModelShape* shape,
                        find_shape("push", in.incarnation(), in.shape(), shape_of));
  FLUX_RETURN_IF_ERROR(out->take_claim("push", in));
  // Every other verdict is the coordinator's to give.
  if (out->request.claim.verdict != Verdict::kApplied)
    return invalid("push: verdict {}; a worker claims only applied batches", in.verdict());
  return out->take_rows("push", in, payload, *shape);
}

std::string encode_push_reply(const PushReply& reply) {
  wire::PushReply out;
  const std::vector<ShardAnswer>& answers = reply.answers;
  const auto n = static_cast<int>(answers.size());
  out.mutable_shards()->Reserve(n);
  out.mutable_ops()->Reserve(n);
  bool alike = true;
  for (const ShardAnswer& answer : answers) {
    out.add_shards(answer.shard);
    out.add_ops(answer.op);
    alike = alike && answer.answer == answers[0].answer;
  }
  for (size_t i = 0; i < (alike ? std::min<size_t>(1, answers.size()) : answers.size()); ++i)
    out.add_answers(static_cast<uint32_t>(answers[i].answer));
  for (size_t i = 0; i < answers.size(); ++i) {
    if (answers[i].already.empty()) continue;
    wire::PartOf* part = out.add_partial();
    part->set_at(static_cast<uint32_t>(i));
    put_batches(answers[i].already, part->mutable_already());
  }
  out.set_receipt(reply.receipt);
  if (reply.age) out.set_age(*reply.age);
  return out.SerializeAsString();
}

Status decode_push_reply(std::string_view control, PushReply* reply) {
  wire::PushReply in;
  FLUX_RETURN_IF_ERROR(parse_message(control, "answer of push", &in));
  const int n = in.shards_size();
  if (in.ops_size() != n || (in.answers_size() != n && !(in.answers_size() == 1 && n > 0)))
    return invalid("answer of push: {} shards, {} answers, {} operations", n, in.answers_size(),
                   in.ops_size());
  reply->receipt = in.receipt();
  reply->age = in.has_age() ? std::optional(in.age()) : std::nullopt;
  reply->answers.assign(static_cast<size_t>(n), {});
  for (int i = 0; i < n; ++i) {
    const uint32_t answer = in.answers(in.answers_size() == n ? i : 0);
    if (answer >= kAnswerKinds) return invalid("answer of push: answer {}", answer);
    ShardAnswer& out = reply->answers[static_cast<size_t>(i)];
    out.shard = in.shards(i);
    out.answer = static_cast<Answer>(answer);
    out.op = in.ops(i);
  }
  for (const wire::PartOf& part : in.partial()) {
    if (part.at() >= static_cast<uint32_t>(n))
      return invalid("answer of push: a part for shard number {} of {}", part.at(), n);
    FLUX_RETURN_IF_ERROR(
        take_batches(part.already(), "answer of push", &reply->answers[part.at()].already));
  }
  return Status::ok();
}

}  // namespace flux
