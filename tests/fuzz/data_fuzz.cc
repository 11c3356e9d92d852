// Pulls, pushes, forwards and answers: whatever is decoded can be read and written to its ends.
// links: api base
#include <numeric>

#include "flux/api/wire_data.h"
#include "flux/api/wire_replica.h"
#include "tests/fuzz/fuzz_input.h"

namespace {

const flux::ModelShape kShape{4, {3, 1}, 20000};  // two dense shards: 4 and 5

const flux::ModelShape* shape_of(uint64_t incarnation) {
  return incarnation == 7 ? &kShape : nullptr;
}

double sum_of(const float* values, uint64_t n) {
  return std::accumulate(values, values + n, 0.0);
}

void read_rows(const flux::PushRequest& r) {
  volatile double sum = 0;
  for (const flux::ShardId shard : r.shards) {
    if (shard >= kShape.sparse_shards) {
      const uint32_t d = shard - kShape.sparse_shards;
      sum = sum + sum_of(r.dense_parts[d], kShape.dense_size(d));
      continue;
    }
    if (r.keys.begin[shard] > r.keys.begin[shard + 1] || r.keys.begin[shard + 1] > r.keys.limit)
      __builtin_trap();
    for (uint32_t i = r.keys.begin[shard]; i < r.keys.begin[shard + 1]; ++i) {
      sum = sum + static_cast<double>(r.keys.keys[i]) + r.counts[i] +
            sum_of(r.tables[0] + i * 3, 3) + r.tables[1][i];
    }
  }
  if (!flux::is_lr_scale(r.lr_scale)) __builtin_trap();
}

void read_push(const flux::FuzzInput& input) {
  flux::WirePush push;
  if (!flux::decode_push(input.control, input.payload.span(), shape_of, &push).is_ok()) return;
  read_rows(push.request);
  if (push.request.epochs.size() != push.request.shards.size()) __builtin_trap();
}

// What was decoded can be sent on as it is.
void read_replicate(const flux::FuzzInput& input) {
  flux::WireReplicate first, second;
  if (!flux::decode_replicate(input.control, input.payload.span(), shape_of, &first).is_ok())
    return;
  const flux::ReplicateRequest& r = first.request;
  const size_t shards = r.push.shards.size();
  if (r.push.epochs.size() != shards || r.ops.size() != shards || r.hashes.size() != shards)
    __builtin_trap();
  if (flux::has_rows(r)) read_rows(r.push);
  for (const flux::ShardId shard : r.push.shards)
    if (shard >= kShape.all_shards()) __builtin_trap();
  flux::Buffer<uint16_t> halves;
  const auto again = flux::encode_replicate(r, kShape, &halves);
  if (!again.is_ok()) __builtin_trap();
  size_t bytes = 0;
  for (const auto& span : again.value().payload) bytes += span.size();
  if (bytes != input.payload.size()) __builtin_trap();
}

void read_install(const flux::FuzzInput& input) {
  flux::InstallRequest first, second;
  if (!flux::decode_install(input.control, input.payload.span(), &first).is_ok()) return;
  if (!flux::decode_install(flux::encode_install(first), first.bytes, &second).is_ok())
    __builtin_trap();
  if (second.part >= second.parts || second.bytes.size() != input.payload.size()) __builtin_trap();
}

void read_replicate_reply(const flux::FuzzInput& input) {
  flux::ReplicateReply reply, again;
  if (!flux::decode_replicate_reply(input.control, &reply).is_ok()) return;
  if (!flux::decode_replicate_reply(flux::encode_replicate_reply(reply), &again).is_ok())
    __builtin_trap();
  if (again.refused.size() != reply.refused.size()) __builtin_trap();
}

void answer_pull(const flux::FuzzInput& input) {
  flux::WirePull pull;
  if (!flux::decode_pull(input.control, input.payload.span(), shape_of, &pull).is_ok()) return;
  flux::Buffer<std::byte> floats(pull.float_bytes()), packed(pull.reply_bytes());
  pull.write_to(floats.data());
  for (uint64_t i = 0; i < pull.keys; ++i) {
    std::fill_n(pull.request.tables[0] + i * 3, 3, 1.0F);
    pull.request.tables[1][i] = static_cast<float>(pull.request.keys.keys[i]);
  }
  for (uint32_t d = 0; d < kShape.dense_shards(); ++d)
    if (pull.request.dense_parts[d] != nullptr)
      std::fill_n(pull.request.dense_parts[d], kShape.dense_size(d), 2.0F);
  if (pull.value != flux::WireValue::kFp32) pull.pack(floats.data(), packed.data());
}

void read_reply(const flux::FuzzInput& input) {
  flux::PushReply reply, again;
  if (!flux::decode_push_reply(input.control, &reply).is_ok()) return;
  if (!flux::decode_push_reply(flux::encode_push_reply(reply), &again).is_ok()) __builtin_trap();
  if (again.answers.size() != reply.answers.size()) __builtin_trap();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const flux::FuzzInput input(data, size);
  // New ones at the end: the corpus names them by number.
  constexpr void (*kReaders[])(const flux::FuzzInput&) = {
      answer_pull, read_push, read_reply, read_replicate, read_install, read_replicate_reply,
  };
  kReaders[input.choice % std::size(kReaders)](input);
  return 0;
}
