// Hostile bytes for what reads a connection: frames, and the handshakes of both ends.
//
// links: rpc base
//
// The first byte chooses: raw bytes into FrameInput; frames whose headers carry good checks and
// fields of the fuzzer's choice, so that it gets past them; or frames into the two handshakes.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "flux/base/bytes.h"
#include "flux/rpc/frame.h"
#include "flux/rpc/frame_input.h"
#include "flux/rpc/handshake.h"

namespace {

using flux::ByteReader;
using flux::Code;
using flux::FrameHeader;
using flux::FrameInput;
using flux::FrameKind;
using flux::FrameLimits;
using flux::FrameTarget;
using flux::HandshakeFrame;
using flux::MutableByteSpan;
using flux::Status;

constexpr FrameLimits kLimits{4096, 1U << 16U};

// Takes what it is given, in one of the ways that a listener or a channel does.
class Sink final : public flux::FrameSink {
 public:
  explicit Sink(uint8_t way) : way_(way) {}
  Status on_header(const FrameHeader& header, FrameTarget* target) override {
    FLUX_CHECK(header.control_bytes <= kLimits.control_max, "a limit was not kept");
    FLUX_CHECK(header.payload_bytes <= kLimits.payload_max, "a limit was not kept");
    control_.resize(header.control_bytes);
    payload_.resize(header.payload_bytes);
    target->control = std::as_writable_bytes(std::span<char>(control_));
    target->after_control = way_ % 2 == 1;
    target->discard = way_ % 4 == 2;
    if (!target->after_control && !target->discard) place(target);
    return Status::ok();
  }
  Status on_control(const FrameHeader&, FrameTarget* target) override {
    target->discard = way_ % 8 == 5;
    if (!target->discard) place(target);
    return Status::ok();
  }
  Status on_frame(const FrameHeader& header) override {
    if (header.call == 13) return Status(Code::kInvalid, "as the sink likes");
    return Status::ok();
  }

 private:
  void place(FrameTarget* target) {
    auto room = std::as_writable_bytes(std::span<char>(payload_));
    const size_t piece = way_ + 1;
    for (; !room.empty(); room = room.subspan(std::min(piece, room.size())))
      target->payload.push_back(room.first(std::min(piece, room.size())));
  }
  uint8_t way_;
  std::string control_, payload_;
};

void feed(std::string_view bytes, uint8_t way) {
  Sink sink(way);
  FrameInput input(sink, kLimits);
  std::vector<iovec> parts;
  const size_t most = way * 7U + 1;
  while (!bytes.empty()) {
    input.want(8, &parts);
    FLUX_CHECK(!parts.empty(), "a reader without room");
    size_t moved = 0;
    for (const iovec& part : parts) {
      const size_t size = std::min({part.iov_len, most - moved, bytes.size()});
      std::memcpy(part.iov_base, bytes.data(), size);
      bytes.remove_prefix(size);
      moved += size;
    }
    if (!input.advance(moved).is_ok()) return;
  }
}

// Frames with sound headers made of the fuzzer's numbers; lengths and checks may lie.
std::string make_frames(std::string_view bytes) {
  ByteReader in(bytes);
  std::string out;
  while (in.left() > 8) {
    FrameHeader header;
    const auto lies = in.get<uint8_t>();
    header.kind = static_cast<FrameKind>(in.get<uint8_t>() % 14);
    header.verb = in.get<uint8_t>() % 3;
    header.code = static_cast<Code>(in.get<uint8_t>() % 10);
    header.call = in.get<uint8_t>();
    const size_t control_size = std::min<size_t>(in.get<uint8_t>(), in.left());
    const std::string control(in.take(control_size), control_size);
    const size_t payload_size = std::min<size_t>(in.get<uint8_t>(), in.left());
    const std::string payload(payload_size > 0 ? in.take(payload_size) : "", payload_size);
    const std::vector<flux::ByteSpan> spans = {std::as_bytes(std::span<const char>(payload))};
    FrameHeader made = make_header(header.kind, control, spans);
    made.verb = header.verb;
    made.code = header.code;
    made.call = header.call;
    if ((lies & 1U) != 0) made.control_bytes += lies;
    if ((lies & 2U) != 0) made.payload_bytes = static_cast<uint64_t>(lies) << (lies % 60);
    if ((lies & 4U) != 0) made.payload_check ^= lies;
    if ((lies & 8U) != 0) made.control_check ^= lies;
    if ((lies & 16U) != 0) made.version = lies;
    const flux::FrameHeaderBytes head = encode_header(made);
    out.append(reinterpret_cast<const char*>(head.data()), head.size());
    out += control + payload;
  }
  return out;
}

void shake_hands(std::string_view bytes, uint8_t way) {
  const std::string token = way % 2 == 0 ? "" : "token";
  flux::ServerHandshake server("server", token, {});
  flux::ClientHandshake client({flux::PeerRole::kWorker, "worker"}, token, {});
  HandshakeFrame answer;
  bool answered = false;
  ByteReader in(bytes);
  while (in.left() > 2) {
    const auto kind = static_cast<FrameKind>(in.get<uint8_t>() % 12);
    const size_t size = std::min<size_t>(in.get<uint8_t>(), in.left());
    const std::string control = size > 0 ? std::string(in.take(size), size) : std::string();
    if (way % 4 < 2) {
      const bool was_done = server.done();
      if (!server.receive(kind, control, &answer).is_ok()) return;
      FLUX_CHECK(token.empty() || was_done || !server.done(), "let in without a proof");
    } else {
      if (!client.receive(kind, Code::kInvalid, control, &answer, &answered).is_ok()) return;
      FLUX_CHECK(token.empty() || !client.done(), "a listener was believed without a proof");
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 2, size - 2);
  switch (data[0] % 3) {
    case 0:
      feed(rest, data[1]);
      break;
    case 1:
      feed(make_frames(rest), data[1]);
      break;
    default:
      shake_hands(rest, data[1]);
  }
  return 0;
}
