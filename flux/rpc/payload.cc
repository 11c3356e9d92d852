#include "flux/rpc/payload.h"

#include <algorithm>
#include <cstring>

namespace flux {

uint64_t total_bytes(std::span<const ByteSpan> spans) {
  uint64_t total = 0;
  for (const ByteSpan span : spans) total += span.size();
  return total;
}

uint64_t total_bytes(std::span<const MutableByteSpan> spans) {
  uint64_t total = 0;
  for (const MutableByteSpan span : spans) total += span.size();
  return total;
}

void gather(std::span<const ByteSpan> from, std::byte* out) {
  for (const ByteSpan span : from) {
    if (!span.empty()) std::memcpy(out, span.data(), span.size());
    out += span.size();
  }
}

void copy_spans(std::span<const ByteSpan> from, std::span<const MutableByteSpan> to) {
  size_t at = 0, offset = 0;
  for (ByteSpan span : from) {
    while (!span.empty()) {
      if (offset == to[at].size()) {
        ++at;
        offset = 0;
        continue;
      }
      const size_t size = std::min(span.size(), to[at].size() - offset);
      std::memcpy(to[at].data() + offset, span.data(), size);
      offset += size;
      span = span.subspan(size);
    }
  }
}

Status check_placed(std::span<const MutableByteSpan> spans, uint64_t bytes) {
  const uint64_t room = total_bytes(spans);
  if (room == bytes) return Status::ok();
  return invalid("the caller made room for {} bytes, the reply has {}", room, bytes);
}

}  // namespace flux
