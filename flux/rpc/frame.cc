#include "flux/rpc/frame.h"

#include <algorithm>
#include <cstring>

#include "flux/base/hash.h"

namespace flux {
namespace {

constexpr char kMagic[4] = {'F', 'L', 'X', 'R'};
constexpr size_t kCheckedBytes = kFrameHeaderBytes - sizeof(uint64_t);

template <typename T>
void put(std::byte* out, size_t at, T value) {
  std::memcpy(out + at, &value, sizeof value);
}
template <typename T>
T get(const std::byte* in, size_t at) {
  T value;
  std::memcpy(&value, in + at, sizeof value);
  return value;
}

template <typename... Args>
Status corrupt(fmt::format_string<Args...> format, Args&&... args) {
  return Status(Code::kCorrupt, fmt::format(format, std::forward<Args>(args)...));
}

bool starts_with_any(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(), [&](std::string_view word) {
    const size_t size = std::min(text.size(), word.size());
    return text.substr(0, size) == word.substr(0, size);
  });
}

// What only some kinds may carry.
Status check_kind(const FrameHeader& h) {
  const bool call =
      h.kind == FrameKind::kRequest || h.kind == FrameKind::kReply || h.kind == FrameKind::kError;
  const bool payload = h.kind == FrameKind::kRequest || h.kind == FrameKind::kReply;
  const bool code = h.kind == FrameKind::kError || h.kind == FrameKind::kRefuse;
  const bool bad = (call != (h.call != 0)) || (!payload && h.payload_bytes != 0) ||
                   (code != (h.code != Code::kOk)) ||
                   (h.verb != 0 && h.kind != FrameKind::kRequest);
  if (!bad) return Status::ok();
  return corrupt("bad frame header: fields that kind {} may not have", static_cast<int>(h.kind));
}

}  // namespace

FrameHeaderBytes encode_header(const FrameHeader& h) {
  FrameHeaderBytes out;
  std::memcpy(out.data(), kMagic, sizeof kMagic);
  put(out.data(), 4, h.version);
  put(out.data(), 5, h.kind);
  put(out.data(), 6, h.verb);
  put(out.data(), 8, h.control_bytes);
  put(out.data(), 12, static_cast<uint32_t>(h.code));
  put(out.data(), 16, h.call);
  put(out.data(), 24, h.payload_bytes);
  put(out.data(), 32, h.control_check);
  put(out.data(), 40, h.payload_check);
  put(out.data(), kCheckedBytes, hash_bytes(out.data(), kCheckedBytes));
  return out;
}

FrameHeader make_header(FrameKind kind, std::string_view control, std::span<const ByteSpan> payload,
                        PayloadCheck check) {
  FrameHeader h;
  h.kind = kind;
  h.control_bytes = static_cast<uint32_t>(control.size());
  h.control_check = hash_bytes(control);
  for (const ByteSpan span : payload) h.payload_bytes += span.size();
  if (check == PayloadCheck::kItsOwn && h.payload_bytes > 0) {
    h.payload_check = kNoCheck;
  } else if (payload.size() == 1) {
    h.payload_check = hash_span(payload[0]);
  } else if (h.payload_bytes == 0) {
    h.payload_check = hash_bytes(nullptr, 0);
  } else {
    StreamHasher hasher;
    for (const ByteSpan span : payload) hasher.update(span.data(), span.size());
    h.payload_check = hasher.digest();
  }
  return h;
}

Status check_magic(std::span<const std::byte> bytes) {
  const size_t size = std::min(bytes.size(), sizeof kMagic);
  if (std::memcmp(bytes.data(), kMagic, size) == 0) return Status::ok();
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (starts_with_any(text, {"GET ", "POST", "PUT ", "HEAD", "OPTI", "DELE", "PATC", "HTTP"}))
    return corrupt("the peer speaks HTTP; this is a flux rpc port");
  if (text[0] == '\x16' && (size == 1 || text[1] == '\x03'))
    return corrupt("the peer speaks TLS; this end has no certificates");
  if (text[0] == '\x15' && (size == 1 || text[1] == '\x03'))
    return corrupt("the peer sent a TLS alert; it wants TLS, this end has no certificates");
  return corrupt("the peer does not speak the flux rpc protocol (bad magic)");
}

Result<FrameHeader> parse_header(std::span<const std::byte, kFrameHeaderBytes> bytes,
                                 const FrameLimits& limits) {
  FLUX_RETURN_IF_ERROR(check_magic(bytes));
  const std::byte* in = bytes.data();
  FrameHeader h;
  h.version = get<uint8_t>(in, 4);
  if (h.version < kFrameVersionMin || h.version > kFrameVersionMax)
    return corrupt("frame of version {}; this end speaks {} to {}", h.version, kFrameVersionMin,
                   kFrameVersionMax);
  if (get<uint64_t>(in, kCheckedBytes) != hash_bytes(in, kCheckedBytes))
    return corrupt("bad frame header checksum");
  const auto kind = get<uint8_t>(in, 5);
  const auto code = get<uint32_t>(in, 12);
  if (kind < static_cast<uint8_t>(FrameKind::kHello) ||
      kind > static_cast<uint8_t>(FrameKind::kGoaway))
    return corrupt("frame of unknown kind {}", kind);
  if (code > static_cast<uint32_t>(Code::kCancelled))
    return corrupt("frame with unknown code {}", code);
  h.kind = static_cast<FrameKind>(kind);
  h.code = static_cast<Code>(code);
  h.verb = get<Verb>(in, 6);
  h.control_bytes = get<uint32_t>(in, 8);
  h.call = get<uint64_t>(in, 16);
  h.payload_bytes = get<uint64_t>(in, 24);
  h.control_check = get<uint64_t>(in, 32);
  h.payload_check = get<uint64_t>(in, 40);
  FLUX_RETURN_IF_ERROR(check_kind(h));
  if (h.control_bytes > limits.control_max)
    return corrupt("frame with {} control bytes; at most {}", h.control_bytes, limits.control_max);
  if (h.payload_bytes > limits.payload_max)
    return corrupt("frame with {} payload bytes; at most {}", h.payload_bytes, limits.payload_max);
  return h;
}

Status check_part(const char* part, uint64_t expected, uint64_t found) {
  if (expected == found) return Status::ok();
  return corrupt("bad frame checksum ({})", part);
}

}  // namespace flux
