// Parts that pull and push share: which positions belong to a request, sections, checks. Private to
// the encoders of api/. Pure; failures are kInvalid or kCorrupt and begin with the verb's name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "flux/api/wire_data.h"
#include "flux/api/wire_values.h"

namespace flux {

void put_shape(const ModelShape& shape, wire::Shape* out);
// The shape of the job of this incarnation, if the sender has the same.
Result<const ModelShape*> find_shape(const char* verb, uint64_t incarnation,
                                     const wire::Shape& theirs, const ShapeOf& shape_of);
Status take_value(const char* verb, int number, WireValue* out);
Result<PhaseView> find_phase(const char* verb, const ModelShape& shape, uint32_t phase);
// Of a push: all its batches must have the same.
Result<PhaseView> find_phase(const char* verb, const ModelShape& shape, const PushRequest& request);

// Where the range of dense shard `d`, which begins at `begin` of the phase's, lies; null: nowhere.
template <typename Request>
auto dense_at(const Request& request, uint32_t d, uint64_t begin) {
  if (!request.dense_parts.empty())
    return d < request.dense_parts.size() ? request.dense_parts[d] : nullptr;
  return request.dense != nullptr ? request.dense + begin : nullptr;
}

// Sender: `shards` against the caller's keys; fills the keys of each sparse shard.
// Dense shards of other phases have no part in it.
Status plan_part(std::span<const ShardId> shards, const ShardedKeys& keys, const ModelShape& shape,
                 const PhaseView& phase, WireNumbers* keys_of, WirePart* part);
// Adds the spans of a section of elements of this size, and its padding.
void gather_section(const void* base, uint64_t element_bytes, const WireRuns& part,
                    std::vector<std::span<const std::byte>>* out);
void add_padding(uint64_t bytes, std::vector<std::span<const std::byte>>* out);

// The control part of a push: what it claims, and (if it has any) what rows it has; then its bytes.
Status put_claim(const PushRequest& request, const ModelShape& shape, wire::Push* out);
Status put_rows(const PushRequest& request, const ModelShape& shape, WireValue value,
                wire::Push* out, WirePart* part);
void gather_push(const PushRequest& request, const ModelShape& shape, WireValue value,
                 Buffer<uint16_t>* halves, WireRequest* out);

// Receiver: shards rise and exist, keys of each add up to at most `keys_max`. `begin` gets one
// entry per sparse shard of the model and one more, `dense` the phase's dense shards, counted from
// 0.
Status take_shards(const char* verb, const WireNumbers& shards, const WireNumbers& keys_of,
                   uint64_t keys_max, const ModelShape& shape, const PhaseView& phase,
                   std::vector<ShardId>* out, std::vector<uint32_t>* begin,
                   std::vector<uint32_t>* dense);
// Of these keys, those that have rows in table t.
uint64_t keys_of_table(const ModelShape& shape, size_t t, const std::vector<uint32_t>& begin);
Status check_payload(const char* verb, std::span<const std::byte> payload, uint64_t expected);

void to_halves(const float* in, WireValue value, uint16_t* out, uint64_t n);
void from_halves(const uint16_t* in, WireValue value, float* out, uint64_t n);

}  // namespace flux
