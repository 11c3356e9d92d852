// Frame: the unit on the wire, drawn in docs/internals/rpc.md. A fixed header, a control part, a
// payload. The header has its own check, so lengths are believed only after it; control and payload
// have a check each, so that control can be used before the payload is here.
// Pure functions over bytes that nobody vouches for: every mistake is a Status kCorrupt that says
// what is wrong. Safe everywhere.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "flux/base/status.h"
#include "flux/rpc/channel.h"

namespace flux {

constexpr size_t kFrameHeaderBytes = 56;
// The versions that this program speaks.
constexpr uint8_t kFrameVersionMin = 1;
constexpr uint8_t kFrameVersionMax = 1;

enum class FrameKind : uint8_t {
  kHello = 1,      // client: versions, role, name, nonce
  kChallenge = 2,  // listener: a nonce; prove that you know the token
  kProof = 3,      // client: the proof
  kHelloOk = 4,    // listener: the chosen version, its own proof
  kRefuse = 5,     // either: code and text; the connection is closed
  kRequest = 6,
  kReply = 7,
  kError = 8,   // listener: code and text instead of a reply
  kPing = 9,    // either
  kPong = 10,   // either
  kGoaway = 11  // listener: text; it is about to close
};

struct FrameHeader {
  uint8_t version = kFrameVersionMax;
  FrameKind kind = FrameKind::kPing;
  Verb verb = 0;               // of a request
  Code code = Code::kOk;       // of an error or a refusal
  uint64_t call = 0;           // of a request, reply or error
  uint32_t control_bytes = 0;  //
  uint64_t payload_bytes = 0;  // of a request or reply
  uint64_t control_check = 0;  // hash_bytes of the control part
  uint64_t payload_check = 0;  // and of the payload; kNoCheck: it has a check of its own
};
// The payload is not looked at: what it is made of carries hashes that its receiver compares.
constexpr uint64_t kNoCheck = 0;

struct FrameLimits {
  uint32_t control_max = 16U << 20U;
  uint64_t payload_max = 1ULL << 30U;
};
// Before a peer has shown who it is.
constexpr FrameLimits kHandshakeLimits{4096, 0};

using FrameHeaderBytes = std::array<std::byte, kFrameHeaderBytes>;

FrameHeaderBytes encode_header(const FrameHeader& header);
// The header of a frame with these parts: lengths and checks filled in.
enum class PayloadCheck : uint8_t { kByFrame, kItsOwn };
FrameHeader make_header(FrameKind kind, std::string_view control,
                        std::span<const ByteSpan> payload = {},
                        PayloadCheck check = PayloadCheck::kByFrame);
Result<FrameHeader> parse_header(std::span<const std::byte, kFrameHeaderBytes> bytes,
                                 const FrameLimits& limits);
// Whether the first bytes of a header (some or all) can be one; says what they look like if not.
Status check_magic(std::span<const std::byte> bytes);
Status check_part(const char* part, uint64_t expected, uint64_t found);

}  // namespace flux
