// Pull and push as bytes: a small control part, and a payload of raw sections that nobody copies.
//
//   pull request   keys
//   pull reply     rows of each table, then the range of each dense shard asked for
//   push request   keys, counts, gradients of each table, gradient of each dense shard's range
//
// Keys are u64, counts u32, the rest fp32, fp16 or bf16; little-endian; shards in rising order;
// each section padded with zeros to 64 bytes, so that a receiver uses it where it lies. The sender
// gathers from the caller's arrays (adjacent shards make one span), a pull's caller scatters the
// reply into its rows. With fp32 no number is touched on the way.
// Decoders trust nothing: a WirePull or WirePush that was decoded is safe to give to a Server of
// that shape. kCorrupt: not such a message; kInvalid: values that do not fit; kStale: no such job.
// Pure but for memory. Objects are reusable; not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "flux/api/model_shape.h"
#include "flux/api/server.h"
#include "flux/base/buffer.h"
#include "flux/base/status.h"

namespace flux {

namespace wire {
class Push;  // generated; seen only by the .cc files
}
struct WireReplicate;  // api/wire_replica.h

enum class WireValue : uint8_t { kFp32 = 0, kFp16 = 1, kBf16 = 2 };
// "fp32", "fp16", "bf16".
Result<WireValue> parse_wire_value(std::string_view name);
constexpr uint64_t value_bytes(WireValue value) {
  return value == WireValue::kFp32 ? 4 : 2;
}

constexpr uint64_t kSectionAlign = 64;
constexpr uint64_t kPullReplyBytesMax = 1ULL << 30;
constexpr uint64_t padded(uint64_t bytes) {
  return (bytes + kSectionAlign - 1) / kSectionAlign * kSectionAlign;
}

// --- the sender's side

// What part of a caller's arrays concerns the shards of one request.
struct WireRuns {
  std::vector<std::pair<uint32_t, uint32_t>> runs;  // ranges of positions, adjacent ones merged
  uint64_t keys = 0;                                // in all runs
  uint32_t first = 0;                               // position that lies at the array's beginning
};
struct WirePart : WireRuns {
  std::vector<uint32_t> dense;   // dense shards, counted from 0
  std::vector<WireRuns> tables;  // the runs of each table; none: they are those of the keys

  const WireRuns& of_table(size_t t) const { return tables.empty() ? *this : tables[t]; }
};

struct WireRequest {
  std::string control;
  std::vector<std::span<const std::byte>> payload;  // into the caller's arrays
  WirePart part;
};

// kInvalid if the caller's lists are not in order.
Result<WireRequest> encode_pull(const PullRequest& request, const ModelShape& shape,
                                WireValue value);
// Bytes of the reply to it.
uint64_t pull_reply_bytes(const WirePart& part, const ModelShape& shape, WireValue value,
                          bool want_dense, uint32_t phase = 0);
// Where an fp32 reply goes, in its order; `padding` takes what is not data.
std::vector<std::span<std::byte>> pull_reply_targets(const WirePart& part, const ModelShape& shape,
                                                     const PullRequest& request,
                                                     std::span<std::byte, kSectionAlign> padding);
// What goes beside the rows of a reply: its mark; empty: none.
std::string encode_pull_mark(const AgeMark& mark);
Status decode_pull_mark(std::string_view control, AgeMark* mark);
// Unpacks a reply of pull_reply_bytes() bytes that is not fp32 into the caller's arrays.
void read_pull_reply(const std::byte* reply, WireValue value, const WirePart& part,
                     const ModelShape& shape, const PullRequest& request);
// `halves` holds the gradients unless they travel as fp32; it must live as long as the spans.
Result<WireRequest> encode_push(const PushRequest& request, const ModelShape& shape,
                                WireValue value, Buffer<uint16_t>* halves);
Status decode_push_reply(std::string_view control, PushReply* reply);

// --- the receiver's side

// The shape of the job of an incarnation; null: no such job here.
using ShapeOf = std::function<const ModelShape*(uint64_t incarnation)>;

struct WirePull {
  PullRequest request;  // points into this object, the payload, and the memory of write_to()
  WireValue value = WireValue::kFp32;
  uint64_t keys = 0;

  uint64_t reply_bytes() const { return reply_bytes_; }
  uint64_t float_bytes() const { return float_bytes_; }  // equal to reply_bytes() with fp32
  // Rows are to be written into `memory` (float_bytes(), 64-byte aligned), in the order of a reply.
  void write_to(std::byte* memory);
  // Makes the reply (reply_bytes()) of what was written; not needed with fp32.
  void pack(const std::byte* floats, std::byte* reply) const;

 private:
  friend Status decode_pull(std::string_view, std::span<const std::byte>, const ShapeOf&,
                            WirePull*);
  template <typename Visit>
  void for_each_section(Visit visit) const;

  std::vector<ShardId> shards_;
  std::vector<uint32_t> begin_;
  std::vector<uint64_t> table_floats_;  // by table: of all its rows
  std::vector<uint32_t> dense_;         // dense shards asked for
  std::vector<uint64_t> dense_floats_;  // their sizes
  std::vector<float*> tables_, dense_parts_;
  uint64_t reply_bytes_ = 0, float_bytes_ = 0;
};
// `payload` is 64-byte aligned and lives as long as the request is used.
Status decode_pull(std::string_view control, std::span<const std::byte> payload,
                   const ShapeOf& shape_of, WirePull* out);

struct WirePush {
  PushRequest request;  // points into this object and the payload
  WireValue value = WireValue::kFp32;
  uint64_t keys = 0;

 private:
  friend Status decode_push(std::string_view, std::span<const std::byte>, const ShapeOf&,
                            WirePush*);
  friend Status decode_replicate(std::string_view, std::span<const std::byte>, const ShapeOf&,
                                 WireReplicate*);
  Status take_claim(const char* verb, const wire::Push& in);
  Status take_rows(const char* verb, const wire::Push& in, std::span<const std::byte> payload,
                   const ModelShape& shape);
  Status take_no_rows(const char* verb, const wire::Push& in, std::span<const std::byte> payload,
                      const ModelShape& shape);
  Status take_epochs_of(const char* verb, const wire::Push& in);
  Status bind_payload(const char* verb, std::span<const std::byte> payload, const ModelShape& shape,
                      const PhaseView& phase);

  std::vector<ShardId> shards_;
  std::vector<ShardEpoch> epochs_;
  std::vector<uint32_t> begin_, dense_;
  std::vector<const float*> tables_, dense_parts_;
  SyncStep step_;
  Buffer<float> floats_;  // gradients that did not travel as fp32
};
Status decode_push(std::string_view control, std::span<const std::byte> payload,
                   const ShapeOf& shape_of, WirePush* out);
std::string encode_push_reply(const PushReply& reply);

}  // namespace flux
