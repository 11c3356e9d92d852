// The verb push as bytes.
#include <algorithm>

#include "flux/api/wire_data.h"
#include "flux/api/wire_parts.h"
#include "flux/api/wire_values.h"

namespace flux {
namespace {

constexpr uint32_t kAnswers = static_cast<uint32_t>(Answer::kMalformed) + 1;

// Gradients one after the other, each section padded, as halves.
void gather_halves(const PushRequest& request, const ModelShape& shape, WireValue value,
                   const WirePart& part, Buffer<uint16_t>* halves,
                   std::vector<std::span<const std::byte>>* out) {
  uint64_t total = 0;
  for (const uint32_t dim : shape.dims) total += padded(part.keys * dim * 2);
  for (const uint32_t d : part.dense) total += padded(shape.dense_size(d) * 2);
  halves->resize_discard(total / 2);
  uint16_t* to = halves->data();
  const auto finish = [&](uint16_t* section, uint64_t n) {
    to = section + n;
    while ((to - halves->data()) % (kSectionAlign / 2) != 0) *to++ = 0;
  };
  for (size_t t = 0; t < shape.dims.size(); ++t) {
    uint16_t* section = to;
    uint64_t n = 0;
    for (const auto& [begin, end] : part.runs) {
      const uint64_t floats = uint64_t{end - begin} * shape.dims[t];
      to_halves(request.tables[t] + uint64_t{begin} * shape.dims[t], value, section + n, floats);
      n += floats;
    }
    finish(section, n);
  }
  for (const uint32_t d : part.dense) {
    to_halves(dense_at(request, d, shape.dense_begin(d)), value, to, shape.dense_size(d));
    finish(to, shape.dense_size(d));
  }
  out->push_back(std::as_bytes(halves->span()));
}

void gather_floats(const PushRequest& request, const ModelShape& shape, const WirePart& part,
                   std::vector<std::span<const std::byte>>* out) {
  for (size_t t = 0; t < shape.dims.size(); ++t)
    gather_section(request.tables[t], uint64_t{shape.dims[t]} * sizeof(float), part, out);
  for (const uint32_t d : part.dense) {
    const uint64_t n = shape.dense_size(d);
    out->push_back(std::as_bytes(std::span(dense_at(request, d, shape.dense_begin(d)), n)));
    add_padding(n * sizeof(float), out);
  }
}

}  // namespace

Result<WireRequest> encode_push(const PushRequest& request, const ModelShape& shape,
                                WireValue value, Buffer<uint16_t>* halves) {
  WireRequest out;
  wire::Push control;
  FLUX_RETURN_IF_ERROR(
      plan_part(request.shards, request.keys, shape, control.mutable_keys(), &out.part));
  if (request.epochs.size() != request.shards.size() ||
      request.tables.size() != shape.dims.size())
    return invalid("push: {} epochs for {} shards, {} tables for {}", request.epochs.size(),
                   request.shards.size(), request.tables.size(), shape.dims.size());
  for (const uint32_t d : out.part.dense)
    if (dense_at(request, d, 0) == nullptr)
      return invalid("push: dense shard {} without a gradient", d);
  control.set_incarnation(request.claim.incarnation);
  put_shape(shape, control.mutable_shape());
  control.set_value(static_cast<wire::Value>(value));
  control.set_geometry(request.claim.geometry);
  put_batches(request.claim.ids, control.mutable_ids());
  control.set_verdict(static_cast<uint32_t>(request.claim.verdict));
  control.set_examples(request.examples);
  control.mutable_shards()->Assign(request.shards.begin(), request.shards.end());
  put_epochs(request.epochs, control.mutable_epochs(), control.mutable_epoch_of());
  if (request.step != nullptr) {
    wire::Step* step = control.mutable_step();
    step->set_round(request.step->round);
    step->set_step(request.step->step);
    put_batches(request.step->ids, step->mutable_ids());
    step->set_examples(request.step->examples);
  }
  out.control = control.SerializeAsString();
  gather_section(request.keys.keys, sizeof(uint64_t), out.part, &out.payload);
  gather_section(request.counts, sizeof(uint32_t), out.part, &out.payload);
  if (value == WireValue::kFp32)
    gather_floats(request, shape, out.part, &out.payload);
  else
    gather_halves(request, shape, value, out.part, halves, &out.payload);
  return out;
}

Status WirePush::bind_payload(std::span<const std::byte> payload, const ModelShape& shape) {
  uint64_t values = 0, floats = 0;  // bytes of the sections of numbers, as sent and as floats
  const auto add = [&](uint64_t n) {
    values += padded(n * value_bytes(value));
    floats += padded(n * sizeof(float));
  };
  for (const uint32_t dim : shape.dims) add(keys * dim);
  for (const uint32_t d : dense_) add(shape.dense_size(d));
  const uint64_t counts_at = padded(keys * sizeof(uint64_t));
  const uint64_t values_at = counts_at + padded(keys * sizeof(uint32_t));
  FLUX_RETURN_IF_ERROR(check_payload("push", payload, values_at + values));
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
  for (const uint32_t dim : shape.dims) tables_.push_back(next(keys * dim));
  dense_parts_.assign(shape.dense_shards(), nullptr);
  for (const uint32_t d : dense_) dense_parts_[d] = next(shape.dense_size(d));
  request.tables = tables_;
  request.dense_parts = dense_parts_;
  return Status::ok();
}

Status decode_push(std::string_view control, std::span<const std::byte> payload,
                   const ShapeOf& shape_of, WirePush* out) {
  wire::Push in;
  FLUX_RETURN_IF_ERROR(parse_message(control, "push", &in));
  FLUX_ASSIGN_OR_RETURN(const ModelShape* shape,
                        find_shape("push", in.incarnation(), in.shape(), shape_of));
  FLUX_RETURN_IF_ERROR(take_value("push", in.value(), &out->value));
  out->request = {};
  PushRequest& request = out->request;
  // Every other verdict is the coordinator's to give.
  if (in.verdict() != static_cast<uint32_t>(Verdict::kApplied))
    return invalid("push: verdict {}; a worker claims only applied batches", in.verdict());
  request.claim.incarnation = in.incarnation();
  request.claim.geometry = in.geometry();
  FLUX_RETURN_IF_ERROR(take_batches(in.ids(), "push", &request.claim.ids));
  request.examples = in.examples();
  FLUX_RETURN_IF_ERROR(take_shards("push", in.shards(), in.keys(), payload.size() / 8, *shape,
                                   &out->shards_, &out->begin_, &out->dense_));
  out->keys = out->begin_.back();
  const Status epochs =
      take_epochs(in.epochs(), in.epoch_of(), out->shards_.size(), &out->epochs_);
  if (!epochs.is_ok()) return epochs.with_context("push");
  request.shards = out->shards_;
  request.epochs = out->epochs_;
  if (in.has_step()) {
    out->step_ = {in.step().round(), in.step().step(), {}, in.step().examples()};
    FLUX_RETURN_IF_ERROR(take_batches(in.step().ids(), "push: step", &out->step_.ids));
    request.step = &out->step_;
  }
  return out->bind_payload(payload, *shape);
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
  return out.SerializeAsString();
}

Status decode_push_reply(std::string_view control, PushReply* reply) {
  wire::PushReply in;
  FLUX_RETURN_IF_ERROR(parse_message(control, "answer of push", &in));
  const int n = in.shards_size();
  if (in.ops_size() != n || (in.answers_size() != n && !(in.answers_size() == 1 && n > 0)))
    return invalid("answer of push: {} shards, {} answers, {} operations", n, in.answers_size(),
                   in.ops_size());
  reply->answers.assign(static_cast<size_t>(n), {});
  for (int i = 0; i < n; ++i) {
    const uint32_t answer = in.answers(in.answers_size() == n ? i : 0);
    if (answer >= kAnswers) return invalid("answer of push: answer {}", answer);
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
