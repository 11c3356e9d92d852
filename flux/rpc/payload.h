// Small helpers for payloads that lie in several spans.
// Pure functions over caller's memory; PayloadMemory is a value that owns its bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "flux/base/buffer.h"
#include "flux/base/status.h"
#include "flux/rpc/channel.h"

namespace flux {

uint64_t total_bytes(std::span<const ByteSpan> spans);
uint64_t total_bytes(std::span<const MutableByteSpan> spans);

// A message in memory of its own: the control part and a payload that is 64-byte aligned.
struct PayloadMemory {
  std::string control;
  Buffer<std::byte> payload;
};

// Copies the spans, one after the other, to `out`, which is large enough.
void gather(std::span<const ByteSpan> from, std::byte* out);
// Copies spans to spans; both add up to the same number of bytes.
void copy_spans(std::span<const ByteSpan> from, std::span<const MutableByteSpan> to);

// kInvalid unless what `place` returned adds up to `bytes`.
Status check_placed(std::span<const MutableByteSpan> spans, uint64_t bytes);

}  // namespace flux
