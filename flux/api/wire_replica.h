// What one server says to another as bytes: replicate and install (api/replica_port.h).
//
// An operation with rows has the payload of a push (api/wire_data.h), where nobody copies; others
// have none. A part of a copy is the payload of install, as it lies. Decoders trust nothing, as
// those of a push: what was decoded is safe to give to a Server of that shape.
// Pure but for memory. Objects are reusable; not thread-safe. Failure: as in api/wire_data.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "flux/api/replica_port.h"
#include "flux/api/wire_data.h"

namespace flux {

constexpr uint32_t kInstallPartsMax = 1U << 20;

// Whether this operation carries rows.
inline bool has_rows(const ReplicateRequest& request) {
  return request.kind == OpKind::kPush && request.push.claim.verdict == Verdict::kApplied;
}

// --- the sender's side

// `halves` holds gradients that came as 16 bits; it must live as long as the spans.
Result<WireRequest> encode_replicate(const ReplicateRequest& request, const ModelShape& shape,
                                     Buffer<uint16_t>* halves);
Status decode_replicate_reply(std::string_view control, ReplicateReply* reply);
// The control part; the payload is `bytes` of the request.
std::string encode_install(const InstallRequest& request);

// --- the receiver's side

struct WireReplicate {
  ReplicateRequest request;  // points into this object and the payload

 private:
  friend Status decode_replicate(std::string_view, std::span<const std::byte>, const ShapeOf&,
                                 WireReplicate*);
  WirePush push_;
  std::vector<uint64_t> ops_, hashes_;
};
Status decode_replicate(std::string_view control, std::span<const std::byte> payload,
                        const ShapeOf& shape_of, WireReplicate* out);
std::string encode_replicate_reply(const ReplicateReply& reply);
// `bytes` of the result points at the payload.
Status decode_install(std::string_view control, std::span<const std::byte> payload,
                      InstallRequest* out);

}  // namespace flux
