// Messages of the control path as values: what each verb asks and answers, to bytes and back.
//
// encode_message() and decode_message() are one pair per type; api/messages.proto is the format and
// is seen only by the .cc files. A decoder trusts nothing: kCorrupt for bytes that are not such a
// message, kInvalid for values that no honest caller sends; the text says which field.
// A message above kControlBytesMax travels as the payload of an otherwise empty control part.
// Pure functions over values; safe from every thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "flux/api/job_port.h"
#include "flux/api/server_admin.h"
#include "flux/base/status.h"

namespace flux {

constexpr size_t kControlBytesMax = 32U << 10;

// Where the bytes of a message lie: in the control part, or in the payload if that is empty.
inline std::string_view message_bytes(std::string_view control,
                                      std::span<const std::byte> payload) {
  if (!control.empty()) return control;
  return {reinterpret_cast<const char*>(payload.data()), payload.size()};
}

struct EmptyMessage {
  bool operator==(const EmptyMessage&) const = default;
};

// --- at a server, by a worker or another server (push and replicate are in api/wire_data.h)
struct ConfirmRequest {
  uint64_t incarnation = 0;
  uint64_t receipt = 0;
};

// --- at a server, by a coordinator (OpenJob, Holdings and JobTotals are in api/server_admin.h)
struct HoldingsRequest {
  std::string name;
  uint64_t term = 0;
};
struct AssignRequest {
  AdminCall call;
  Assignments places;
};
struct SealRequest {
  AdminCall call;
};
struct CopyRequest {
  AdminCall call;
  ServerId target = 0;
  std::string address;
};
struct StatesReply {
  std::vector<ShardState> shards;
};
struct LoadRequest {
  AdminCall call;
  LoadJob load;
};
struct OpenPassRequest {
  AdminCall call;
  uint32_t pass = 0;
  uint64_t geometry = 0;
};
struct CloseBelowRequest {
  AdminCall call;
  uint32_t pass = 0;
};
struct MarkedRequest {
  AdminCall call;
  BlockId section;
  uint32_t blocks = 0;
  bool any = false;
};
struct MarkedReply {
  std::vector<uint32_t> masks;
};
struct MarkRequest {
  AdminCall call;
  uint64_t geometry = 0;
  std::vector<BatchId> ids;
  Verdict verdict = Verdict::kSkipped;
};
struct VoidMemberRequest {
  AdminCall call;
  uint64_t round = 0;
  BlockId block;
};
struct SaveRequest {
  AdminCall call;
  std::string folder;
  uint64_t number = 0;
  uint64_t committed = 0;
};
struct SaveReply {
  std::vector<SavedShard> shards;
};
struct TotalsRequest {
  AdminCall call;
  bool rows = false;
  std::vector<ExpectedCount> expected;
};
struct CloseJobRequest {
  AdminCall call;
};

// --- at a coordinator
struct LeaveRequest {
  LeaseRequest last;
  WorkerReport report;
  Status why;
};
struct ReportRequest {
  WorkerId worker = 0;
  WorkerReport report;
};
struct GeometryRequest {
  uint64_t hash = 0;
};
struct GeometryReply {
  std::string json;
};
struct ServerReportReply {
  bool over = false;
};

#define FLUX_WIRE_MESSAGE(Type)                    \
  std::string encode_message(const Type& message); \
  Status decode_message(std::string_view bytes, Type* out)
FLUX_WIRE_MESSAGE(EmptyMessage);
FLUX_WIRE_MESSAGE(ConfirmRequest);
FLUX_WIRE_MESSAGE(OpenJob);
FLUX_WIRE_MESSAGE(HoldingsRequest);
FLUX_WIRE_MESSAGE(Holdings);
FLUX_WIRE_MESSAGE(AssignRequest);
FLUX_WIRE_MESSAGE(SealRequest);
FLUX_WIRE_MESSAGE(CopyRequest);
FLUX_WIRE_MESSAGE(StatesReply);
FLUX_WIRE_MESSAGE(LoadRequest);
FLUX_WIRE_MESSAGE(OpenPassRequest);
FLUX_WIRE_MESSAGE(CloseBelowRequest);
FLUX_WIRE_MESSAGE(MarkedRequest);
FLUX_WIRE_MESSAGE(MarkedReply);
FLUX_WIRE_MESSAGE(MarkRequest);
FLUX_WIRE_MESSAGE(VoidMemberRequest);
FLUX_WIRE_MESSAGE(SaveRequest);
FLUX_WIRE_MESSAGE(SaveReply);
FLUX_WIRE_MESSAGE(TotalsRequest);
FLUX_WIRE_MESSAGE(JobTotals);
FLUX_WIRE_MESSAGE(CloseJobRequest);
FLUX_WIRE_MESSAGE(JoinRequest);
FLUX_WIRE_MESSAGE(JoinReply);
FLUX_WIRE_MESSAGE(LeaseRequest);
FLUX_WIRE_MESSAGE(LeaseAnswer);
FLUX_WIRE_MESSAGE(ReportRequest);
FLUX_WIRE_MESSAGE(ReportAnswer);
FLUX_WIRE_MESSAGE(ClusterMap);
FLUX_WIRE_MESSAGE(GeometryRequest);
FLUX_WIRE_MESSAGE(GeometryReply);
FLUX_WIRE_MESSAGE(LeaveRequest);
FLUX_WIRE_MESSAGE(ServerJoin);
FLUX_WIRE_MESSAGE(ServerJoinReply);
FLUX_WIRE_MESSAGE(ServerReport);
FLUX_WIRE_MESSAGE(ServerReportReply);
#undef FLUX_WIRE_MESSAGE

}  // namespace flux
