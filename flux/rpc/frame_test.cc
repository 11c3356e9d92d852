// Frames: their bytes never change, and no damage goes unseen.
#include "flux/rpc/frame.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "flux/base/random.h"
#include "flux/rpc/frame_input.h"
#include "flux/rpc/payload.h"

namespace flux {
namespace {

ByteSpan bytes_of(std::string_view text) {
  return std::as_bytes(std::span<const char>(text.data(), text.size()));
}

std::string frame_bytes(FrameHeader header, const std::string& control,
                        const std::string& payload = {}) {
  const std::vector<ByteSpan> spans = {bytes_of(payload)};
  const FrameHeader made = make_header(header.kind, control, spans);
  header.control_bytes = made.control_bytes;
  header.payload_bytes = made.payload_bytes;
  header.control_check = made.control_check;
  header.payload_check = made.payload_check;
  const FrameHeaderBytes head = encode_header(header);
  return std::string(reinterpret_cast<const char*>(head.data()), head.size()) + control + payload;
}

FrameHeader request_header(uint64_t call = 7) {
  FrameHeader h;
  h.kind = FrameKind::kRequest;
  h.verb = 2;
  h.call = call;
  return h;
}
FrameHeader reply_header(uint64_t call) {
  FrameHeader h;
  h.kind = FrameKind::kReply;
  h.call = call;
  return h;
}
FrameHeader error_header(uint64_t call) {
  FrameHeader h;
  h.kind = FrameKind::kError;
  h.code = Code::kStale;
  h.call = call;
  return h;
}

// Collects frames; places payloads in spans of `piece` bytes, named late if `late`.
class Collector final : public FrameSink {
 public:
  explicit Collector(size_t piece = 1000, bool late = false) : piece_(piece), late_(late) {}
  Status on_header(const FrameHeader& header, FrameTarget* target) override {
    control_.assign(header.control_bytes, '?');
    payload_.assign(header.payload_bytes, '?');
    target->control = std::as_writable_bytes(std::span<char>(control_));
    if (late_) {
      target->after_control = true;
    } else {
      place(target);
    }
    return Status::ok();
  }
  Status on_control(const FrameHeader&, FrameTarget* target) override {
    if (control_ == "discard") {
      target->discard = true;
    } else {
      place(target);
    }
    return Status::ok();
  }
  Status on_frame(const FrameHeader& header) override {
    frames.push_back(frame_bytes(header, control_, payload_));
    return Status::ok();
  }
  std::vector<std::string> frames;

 private:
  void place(FrameTarget* target) {
    auto room = std::as_writable_bytes(std::span<char>(payload_));
    for (; !room.empty(); room = room.subspan(std::min(piece_, room.size())))
      target->payload.push_back(room.first(std::min(piece_, room.size())));
  }
  size_t piece_;
  bool late_;
  std::string control_, payload_;
};

// Gives the bytes to the input as a socket would, at most `most` at a time.
Status feed(FrameInput* input, std::string_view bytes, size_t most) {
  std::vector<iovec> parts;
  while (!bytes.empty()) {
    input->want(16, &parts);
    EXPECT_FALSE(parts.empty());
    size_t moved = 0;
    for (const iovec& part : parts) {
      const size_t size = std::min({part.iov_len, most - moved, bytes.size()});
      std::memcpy(part.iov_base, bytes.data(), size);
      bytes.remove_prefix(size);
      moved += size;
    }
    FLUX_RETURN_IF_ERROR(input->advance(moved));
  }
  return Status::ok();
}

std::string hex(std::string_view bytes) {
  std::string out;
  for (const unsigned char c : bytes) out += fmt::format("{:02x}", c);
  return out;
}

TEST(Frame, BytesNeverChange) {
  std::map<std::string, std::string> golden;
  std::ifstream file(std::string(FLUX_SOURCE_DIR) + "/tests/golden/rpc_frames_v1.txt");
  for (std::string name, value; file >> name >> value;) golden[name] = value;
  FrameHeader ping;
  ping.kind = FrameKind::kPing;
  EXPECT_EQ(golden["request"], hex(frame_bytes(request_header(), "control", "payload!")));
  EXPECT_EQ(golden["reply"], hex(frame_bytes(reply_header(1ULL << 40U), "", "r")));
  EXPECT_EQ(golden["error"], hex(frame_bytes(error_header(3), "old epoch")));
  EXPECT_EQ(golden["ping"], hex(frame_bytes(ping, "")));
}

// A request whose control part has hashes of the payload: the frame does not look at it again.
TEST(Frame, APayloadWithItsOwnCheckIsLeftToItsReceiver) {
  const std::string control = "hashes", payload = "keys and gradients";
  const std::vector<ByteSpan> spans = {bytes_of(payload)};
  FrameHeader header = make_header(FrameKind::kRequest, control, spans, PayloadCheck::kItsOwn);
  header.call = 1;
  EXPECT_EQ(header.payload_check, kNoCheck);
  const FrameHeaderBytes head = encode_header(header);
  const std::string begin = std::string(reinterpret_cast<const char*>(head.data()), head.size());
  for (const size_t most : {size_t{1}, size_t{1000}}) {
    Collector collector(5);
    FrameInput input(collector, {});
    ASSERT_TRUE(feed(&input, begin + control + "keys and gradientS", most).is_ok());
    ASSERT_EQ(collector.frames.size(), 1U);
    EXPECT_TRUE(collector.frames[0].ends_with("keys and gradientS"));
    EXPECT_EQ(feed(&input, begin + "hasheS" + payload, most).code(), Code::kCorrupt);
  }
}

TEST(Frame, LayoutIsTheDocumentedOne) {
  const std::string bytes = frame_bytes(request_header(0x0102030405060708ULL), "abc", "wxyz");
  EXPECT_EQ(bytes.substr(0, 4), "FLXR");
  EXPECT_EQ(hex(bytes.substr(4, 4)), "01060200");           // version, kind, verb
  EXPECT_EQ(hex(bytes.substr(8, 8)), "0300000000000000");   // control length, code
  EXPECT_EQ(hex(bytes.substr(16, 8)), "0807060504030201");  // call
  EXPECT_EQ(hex(bytes.substr(24, 8)), "0400000000000000");  // payload length
  EXPECT_EQ(bytes.substr(kFrameHeaderBytes), "abcwxyz");
}

TEST(Frame, AnySplitGivesTheSameFrames) {
  Random random(4);
  std::string stream;
  std::vector<std::string> sent;
  for (uint64_t i = 1; i <= 30; ++i) {
    std::string control(random.below(40), 'c'), payload(random.below(3000), 'p');
    for (char& c : payload) c = static_cast<char>(random.next());
    sent.push_back(i % 7 == 0 ? frame_bytes(error_header(i), control)
                              : frame_bytes(reply_header(i), control, payload));
    stream += sent.back();
  }
  for (const bool late : {false, true}) {
    for (const size_t most : {1UL, 7UL, 56UL, 57UL, 1000UL, 100'000UL}) {
      Collector sink(113, late);
      FrameInput input(sink, {});
      ASSERT_TRUE(feed(&input, stream, most).is_ok());
      EXPECT_TRUE(sink.frames == sent) << most;
      EXPECT_FALSE(input.mid_frame());
    }
  }
}

TEST(Frame, DamageToAnyBitIsSeen) {
  const std::string good = frame_bytes(request_header(), "control", "payload of the frame");
  for (size_t bit = 0; bit < 8 * good.size(); ++bit) {
    for (const bool late : {false, true}) {
      std::string bad = good;
      bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << (bit % 8)));
      Collector sink(5, late);
      FrameInput input(sink, {});
      const Status status = feed(&input, bad, 1000);
      EXPECT_EQ(status.code(), Code::kCorrupt) << "bit " << bit;
      EXPECT_TRUE(sink.frames.empty());
    }
  }
  for (size_t size = 0; size < good.size(); ++size) {  // cut: no frame, no failure, but mid-frame
    Collector sink;
    FrameInput input(sink, {});
    EXPECT_TRUE(feed(&input, std::string_view(good).substr(0, size), 1000).is_ok());
    EXPECT_TRUE(sink.frames.empty());
    EXPECT_EQ(input.mid_frame(), size > 0);
  }
}

TEST(Frame, AThrownAwayPayloadDoesNotDisturbTheNextFrame) {
  Collector sink(1000, true);
  FrameInput input(sink, {});
  const std::string big(200'000, 'b');
  const std::string after = frame_bytes(reply_header(2), "next", "n");
  ASSERT_TRUE(feed(&input, frame_bytes(reply_header(1), "discard", big) + after, 90'000).is_ok());
  ASSERT_EQ(sink.frames.size(), 2U);
  EXPECT_EQ(sink.frames[1], after);
}

TEST(Frame, HeadersThatLieAreRefused) {
  const auto parse = [](const FrameHeader& h, const FrameLimits& limits = {}) {
    const FrameHeaderBytes bytes = encode_header(h);
    return parse_header(bytes, limits);
  };
  const auto message = [&](const FrameHeader& h, const FrameLimits& limits = {}) {
    const auto parsed = parse(h, limits);
    return parsed.is_ok() ? "ok" : parsed.status().message();
  };
  EXPECT_EQ(message(request_header()), "ok");
  FrameHeader h = request_header();
  h.control_bytes = (16U << 20U) + 1;
  EXPECT_EQ(message(h), "frame with 16777217 control bytes; at most 16777216");
  h = request_header();
  h.payload_bytes = (1ULL << 30U) + 1;
  EXPECT_EQ(message(h), "frame with 1073741825 payload bytes; at most 1073741824");
  h.payload_bytes = 1;
  EXPECT_EQ(message(h, kHandshakeLimits), "frame with 1 payload bytes; at most 0");
  h = request_header();
  h.version = 9;
  EXPECT_EQ(message(h), "frame of version 9; this end speaks 1 to 1");
  h = request_header();
  h.kind = static_cast<FrameKind>(99);
  EXPECT_EQ(message(h), "frame of unknown kind 99");
  h = request_header();
  h.code = static_cast<Code>(77);
  EXPECT_EQ(message(h), "frame with unknown code 77");
  for (const auto& spoil : std::vector<void (*)(FrameHeader*)>{
           [](FrameHeader* f) { f->call = 0; }, [](FrameHeader* f) { f->code = Code::kIo; },
           [](FrameHeader* f) { f->kind = FrameKind::kPing; },
           [](FrameHeader* f) { f->kind = FrameKind::kReply; },
           [](FrameHeader* f) { f->kind = FrameKind::kError; }}) {
    h = request_header();
    spoil(&h);
    EXPECT_EQ(message(h).substr(0, 17), "bad frame header:");
  }
}

TEST(Frame, ForeignProtocolsAreNamed) {
  const auto says = [](std::string_view text) { return check_magic(bytes_of(text)).message(); };
  EXPECT_EQ(says("GET / HTTP/1.1\r\n"), "the peer speaks HTTP; this is a flux rpc port");
  EXPECT_EQ(says("HT"), "the peer speaks HTTP; this is a flux rpc port");
  EXPECT_NE(says("\x16\x03\x01").find("speaks TLS"), std::string::npos);
  EXPECT_NE(says("\x15\x03\x03").find("TLS alert"), std::string::npos);
  EXPECT_NE(says("SSH-2.0").find("bad magic"), std::string::npos);
  EXPECT_EQ(says("FL"), "");
}

TEST(Frame, AConnectionKeepsItsVersion) {
  Collector sink;
  FrameInput input(sink, {});
  input.set_version(2);
  EXPECT_EQ(feed(&input, frame_bytes(request_header(), ""), 100).message(),
            "frame of version 1 on a connection of version 2");
}

TEST(Payload, SpansAreCopiedAcrossTheirBorders) {
  const std::string a = "abc", b = "defgh";
  char x[1], y[4], z[3];
  const std::vector<ByteSpan> from = {bytes_of(a), {}, bytes_of(b)};
  const std::vector<MutableByteSpan> to = {std::as_writable_bytes(std::span(x)),
                                           {},
                                           std::as_writable_bytes(std::span(y)),
                                           std::as_writable_bytes(std::span(z))};
  copy_spans(from, to);
  EXPECT_EQ(std::string(x, 1) + std::string(y, 4) + std::string(z, 3), "abcdefgh");
  EXPECT_TRUE(check_placed(to, 8).is_ok());
  EXPECT_EQ(check_placed(to, 9).message(), "the caller made room for 8 bytes, the reply has 9");
}

}  // namespace
}  // namespace flux
