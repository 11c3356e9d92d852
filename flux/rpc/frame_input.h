// FrameInput: bytes of one connection in, whole checked frames out; no sockets, no copies.
//
// It names the memory the next bytes go to (want), is told how many arrived (advance), and asks its
// sink where the parts of a frame shall lie. In one read it takes the rest of a frame and the
// header of the next. Nothing that a peer sends is believed before its check. Threads: one.
// Failure: advance() returns kCorrupt for bad bytes or what the sink refused; the connection is
// then useless. A sink must not destroy its FrameInput while it is called.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <sys/uio.h>

#include "flux/base/hash.h"
#include "flux/base/status.h"
#include "flux/rpc/channel.h"
#include "flux/rpc/frame.h"

namespace flux {

// Where the parts of a frame go.
struct FrameTarget {
  MutableByteSpan control;               // exactly control_bytes
  std::vector<MutableByteSpan> payload;  // adds up to payload_bytes, unless `discard`
  bool discard = false;                  // the payload is thrown away
  bool after_control = false;            // on_control() will name the payload's place
};

class FrameSink {
 public:
  virtual ~FrameSink() = default;
  // The header is sound and within the limits.
  virtual Status on_header(const FrameHeader& header, FrameTarget* target) = 0;
  // The control part is here and sound; fill in payload or discard.
  virtual Status on_control(const FrameHeader& header, FrameTarget* target) = 0;
  // The whole frame is here and sound (a discarded payload is not looked at).
  virtual Status on_frame(const FrameHeader& header) = 0;
};

class FrameInput {
 public:
  FrameInput(FrameSink& sink, const FrameLimits& limits) : sink_(sink), limits_(limits) {
    begin_header();
  }
  FrameInput(const FrameInput&) = delete;
  FrameInput& operator=(const FrameInput&) = delete;

  void set_limits(const FrameLimits& limits) { limits_ = limits; }
  // Frames of another version are refused from now on.
  void set_version(uint8_t version) { version_ = version; }
  // Fills `out` with the places of the next bytes, at most `max` of them; never empty.
  void want(size_t max, std::vector<iovec>* out);
  // So many bytes have been put there.
  Status advance(size_t bytes);
  // Some, not all bytes of a frame are here.
  bool mid_frame() const { return stage_ != Stage::kHeader || parts_[0].iov_len < header_.size(); }

 private:
  enum class Stage : uint8_t { kHeader, kControl, kBody, kDiscard };
  void begin_header();
  Status begin_frame();
  Status begin_body(bool with_control);
  Status end_stage();
  Status end_control();
  Status end_frame();
  size_t consume(size_t bytes);
  void hash_payload(const std::byte* data, size_t size);
  bool stage_done() const;

  FrameSink& sink_;
  FrameLimits limits_;
  std::optional<uint8_t> version_;
  Stage stage_ = Stage::kHeader;
  FrameHeaderBytes header_{};
  FrameHeader frame_;
  FrameTarget target_;
  std::vector<iovec> parts_;  // what is still to come of this stage, from at_ on
  size_t at_ = 0;
  size_t payload_from_ = 0;  // index of the first part that is payload
  uint64_t discard_left_ = 0;
  uint64_t hashed_ = 0;  // payload bytes that went into the hasher
  uint64_t payload_check_ = 0;
  StreamHasher hasher_;
  std::vector<std::byte> scratch_;
};

}  // namespace flux
