#include "flux/api/wire_replica.h"

#include <utility>

#include "flux/api/wire_message.h"
#include "flux/api/wire_parts.h"
#include "flux/api/wire_values.h"

namespace flux {
namespace {

constexpr uint32_t kFollowAnswers = static_cast<uint32_t>(FollowAnswer::kNotFollower) + 1;

Status take_kind(uint32_t number, OpKind* out) {
  if (number == 0 || number > kOpKinds)
    return invalid("replicate: operation {}; they are 1 to {}", number, kOpKinds);
  *out = static_cast<OpKind>(number);
  return Status::ok();
}

}  // namespace

Result<WireRequest> encode_replicate(const ReplicateRequest& request, const ModelShape& shape,
                                     Buffer<uint16_t>* halves) {
  WireRequest out;
  wire::Replicate control;
  const size_t shards = request.push.shards.size();
  if (request.ops.size() != shards || request.hashes.size() != shards)
    return invalid("replicate: {} ops and {} hashes for {} shards", request.ops.size(),
                   request.hashes.size(), shards);
  control.set_kind(static_cast<uint32_t>(request.kind));
  control.mutable_ops()->Assign(request.ops.begin(), request.ops.end());
  control.mutable_hashes()->Assign(request.hashes.begin(), request.hashes.end());
  control.set_pass(request.pass);
  control.set_geometry(request.geometry);
  control.set_content(request.content);
  control.set_from(request.from == kNoServer ? 0 : request.from + 1);
  FLUX_RETURN_IF_ERROR(put_claim(request.push, shape, control.mutable_push()));
  WireValue value = WireValue::kFp32;
  if (request.push.as_bf16) value = WireValue::kBf16;
  if (request.push.as_fp16) value = WireValue::kFp16;
  if (has_rows(request)) {
    FLUX_RETURN_IF_ERROR(put_rows(request.push, shape, value, control.mutable_push(), &out.part));
    gather_push(request.push, shape, value, halves, &out);
  }
  out.control = control.SerializeAsString();
  return out;
}

Status decode_replicate(std::string_view control, std::span<const std::byte> payload,
                        const ShapeOf& shape_of, WireReplicate* out) {
  constexpr const char* kVerb = "replicate";
  wire::Replicate in;
  FLUX_RETURN_IF_ERROR(parse_message(control, kVerb, &in));
  ReplicateRequest& request = out->request;
  request = {};
  FLUX_RETURN_IF_ERROR(take_kind(in.kind(), &request.kind));
  FLUX_ASSIGN_OR_RETURN(const ModelShape* shape,
                        find_shape(kVerb, in.push().incarnation(), in.push().shape(), shape_of));
  WirePush& push = out->push_;
  FLUX_RETURN_IF_ERROR(push.take_claim(kVerb, in.push()));
  request.push.claim.verdict = push.request.claim.verdict;
  if (has_rows(request)) {
    FLUX_RETURN_IF_ERROR(push.take_rows(kVerb, in.push(), payload, *shape));
  } else {
    FLUX_RETURN_IF_ERROR(push.take_no_rows(kVerb, in.push(), payload, *shape));
  }
  out->ops_.assign(in.ops().begin(), in.ops().end());
  out->hashes_.assign(in.hashes().begin(), in.hashes().end());
  if (out->ops_.size() != push.request.shards.size() || out->hashes_.size() != out->ops_.size())
    return invalid("replicate: {} ops and {} hashes for {} shards", out->ops_.size(),
                   out->hashes_.size(), push.request.shards.size());
  request.push = std::move(push.request);
  request.ops = out->ops_;
  request.hashes = out->hashes_;
  request.pass = in.pass();
  request.geometry = in.geometry();
  request.content = in.content();
  request.from = in.from() == 0 ? kNoServer : in.from() - 1;
  if (request.kind == OpKind::kOpenPass && request.geometry == 0)
    return invalid("replicate: pass {} without a geometry", request.pass);
  return Status::ok();
}

std::string encode_replicate_reply(const ReplicateReply& reply) {
  wire::ReplicateReply out;
  std::vector<ShardEpoch> epochs;
  for (const FollowRefusal& refusal : reply.refused) {
    out.add_shards(refusal.shard);
    out.add_why(static_cast<uint32_t>(refusal.why));
    epochs.push_back(refusal.epoch);
  }
  put_epochs(epochs, out.mutable_epochs(), out.mutable_epoch_of());
  return out.SerializeAsString();
}

Status decode_replicate_reply(std::string_view control, ReplicateReply* reply) {
  wire::ReplicateReply in;
  FLUX_RETURN_IF_ERROR(parse_message(control, "answer of replicate", &in));
  const auto n = static_cast<size_t>(in.shards_size());
  if (static_cast<size_t>(in.why_size()) != n || n > kWireShardsMax)
    return invalid("answer of replicate: {} shards, {} reasons", n, in.why_size());
  std::vector<ShardEpoch> epochs;
  const Status status = take_epochs(in.epochs(), in.epoch_of(), n, &epochs);
  if (!status.is_ok()) return status.with_context("answer of replicate");
  reply->refused.clear();
  for (size_t i = 0; i < n; ++i) {
    const uint32_t why = in.why(static_cast<int>(i));
    if (why >= kFollowAnswers) return invalid("answer of replicate: reason {}", why);
    reply->refused.push_back(
        {in.shards(static_cast<int>(i)), static_cast<FollowAnswer>(why), epochs[i]});
  }
  return Status::ok();
}

std::string encode_install(const InstallRequest& request) {
  wire::Install out;
  out.set_incarnation(request.incarnation);
  out.set_shard(request.shard);
  put_epoch(request.epoch, out.mutable_epoch());
  out.set_copy(request.copy);
  out.set_op(request.op);
  out.set_part(request.part);
  out.set_parts(request.parts);
  return out.SerializeAsString();
}

Status decode_install(std::string_view control, std::span<const std::byte> payload,
                      InstallRequest* out) {
  wire::Install in;
  FLUX_RETURN_IF_ERROR(parse_message(control, "install", &in));
  *out = {in.incarnation(), in.shard(), take_epoch(in.epoch()), in.copy(), in.op(), in.part(),
          in.parts(),       payload};
  if (out->shard >= kWireShardsMax)
    return invalid("install: shard {}, ids are below {}", out->shard, kWireShardsMax);
  if (out->parts > kInstallPartsMax || out->part >= out->parts)
    return invalid("install: part {} of {}; a copy has 1 to {}", out->part, out->parts,
                   kInstallPartsMax);
  return Status::ok();
}

std::string encode_message(const ConfirmRequest& m) {
  wire::Confirm out;
  out.set_incarnation(m.incarnation);
  out.set_receipt(m.receipt);
  return out.SerializeAsString();
}
Status decode_message(std::string_view bytes, ConfirmRequest* m) {
  wire::Confirm in;
  FLUX_RETURN_IF_ERROR(parse_message(bytes, "confirm", &in));
  *m = {in.incarnation(), in.receipt()};
  return Status::ok();
}

}  // namespace flux
