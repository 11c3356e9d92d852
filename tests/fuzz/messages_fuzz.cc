// Every control message: what a decoder takes, it takes again from its own encoding.
// links: api base
#include "flux/api/wire_message.h"
#include "tests/fuzz/fuzz_input.h"

namespace {

template <typename T>
void check(std::string_view bytes) {
  T first, second;
  if (!flux::decode_message(bytes, &first).is_ok()) return;
  const std::string again = flux::encode_message(first);
  if (!flux::decode_message(again, &second).is_ok()) __builtin_trap();
  if (flux::encode_message(second).size() != again.size()) __builtin_trap();
}

using Check = void (*)(std::string_view);
// New ones at the end: the corpus names them by number.
constexpr Check kChecks[] = {
    check<flux::EmptyMessage>,      check<flux::OpenJob>,           check<flux::LoadRequest>,
    check<flux::OpenPassRequest>,   check<flux::CloseBelowRequest>, check<flux::MarkedRequest>,
    check<flux::MarkedReply>,       check<flux::MarkRequest>,       check<flux::VoidMemberRequest>,
    check<flux::SaveRequest>,       check<flux::SaveReply>,         check<flux::TotalsRequest>,
    check<flux::JobTotals>,         check<flux::CloseJobRequest>,   check<flux::JoinRequest>,
    check<flux::JoinReply>,         check<flux::LeaseRequest>,      check<flux::LeaseAnswer>,
    check<flux::ReportRequest>,     check<flux::ReportAnswer>,      check<flux::ClusterMap>,
    check<flux::GeometryRequest>,   check<flux::GeometryReply>,     check<flux::LeaveRequest>,
    check<flux::ServerJoin>,        check<flux::ServerJoinReply>,   check<flux::ServerReport>,
    check<flux::ServerReportReply>, check<flux::ConfirmRequest>,    check<flux::HoldingsRequest>,
    check<flux::Holdings>,          check<flux::AssignRequest>,     check<flux::SealRequest>,
    check<flux::CopyRequest>,       check<flux::StatesReply>,
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const flux::FuzzInput input(data, size);
  kChecks[input.choice % std::size(kChecks)](input.control);
  return 0;
}
