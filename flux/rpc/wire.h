// Wire: one connected socket that carries frames. Private to rpc/ (it shows Asio); channels and
// listeners stand on it.
//
// send() writes at once what the socket takes, straight from the frame's spans; the rest goes when
// the socket has room. Reading starts with start() and puts bytes where the owner says.
// Threads: those of the loop, one. Ownership: held by shared_ptr; close() lets go of the owner and
// of all memory, and nothing is called afterwards. Failure: on_broken() once, never inside send().
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include <asio/generic/stream_protocol.hpp>
#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>

#include "flux/base/executor.h"
#include "flux/rpc/frame_input.h"
#include "flux/rpc/rpc_counters.h"
#include "flux/rpc/transport.h"

namespace flux {

using StreamSocket = asio::generic::stream_protocol::socket;

struct OutFrame {
  FrameHeaderBytes header;
  std::string control;
  std::vector<ByteSpan> payload;
  std::shared_ptr<const void> memory;  // keeps the payload alive
  uint64_t id = 0;                     // for abandon() and on_sent()
  uint64_t bytes() const;
};
OutFrame make_frame(FrameKind kind, std::string control, uint8_t version = kFrameVersionMin,
                    Code code = Code::kOk);

class WireOwner : public FrameSink {
 public:
  // TLS is agreed upon (or was not asked for): frames may be sent.
  virtual Status on_connected() = 0;
  // The connection is useless; the owner closes it.
  virtual void on_broken(const Status& reason) = 0;
  // A frame is in the hands of the kernel.
  virtual void on_sent(uint64_t id, uint64_t bytes) { (void)id, (void)bytes; }
};

class Wire final : public std::enable_shared_from_this<Wire>, private FrameSink {
 public:
  enum class Abandoned : unsigned char { kNotThere, kRemoved, kBegun };

  Wire(StreamSocket socket, std::unique_ptr<TlsSession> tls, WireOwner& owner,
       const FrameLimits& limits, std::shared_ptr<AtomicRpcCounters> counters);
  ~Wire() override;

  // Agrees on TLS if there is any, then calls on_connected() and reads. Not inside start().
  void start();
  void send(OutFrame frame);
  // Takes a frame that has not begun to be sent out of the queue.
  Abandoned abandon(uint64_t id);
  void pause_reading() { paused_ = true; }
  void resume_reading();
  // Reads what is there now, without waiting.
  void read_now();
  void close();
  // Lets go of the owner, sends what is queued, and closes when the peer has, or after a second.
  void close_after_sending();

  FrameInput& input() { return input_; }
  TlsSession* tls() { return transport_.tls(); }
  bool is_open() const { return owner_ != nullptr; }
  bool mid_frame() const { return input_.mid_frame(); }
  bool idle_out() const { return out_.empty(); }
  TimeNs last_read_ns() const { return last_read_ns_; }
  TimeNs last_write_ns() const { return last_write_ns_; }

 private:
  Status on_header(const FrameHeader& header, FrameTarget* target) override;
  Status on_control(const FrameHeader& header, FrameTarget* target) override;
  Status on_frame(const FrameHeader& header) override;

  void shake_hands();
  void flush();
  void gather_parts();
  void consume(uint64_t bytes);
  void read_some();
  void read_rest();
  void wait_read();
  void wait_write();
  void on_event();
  void broken(const Status& reason);
  void broken_later(const Status& reason);
  Status failed(const IoResult& io) const;
  void wait_for(IoOutcome outcome);

  StreamSocket socket_;
  Transport transport_;
  WireOwner* owner_;
  const std::shared_ptr<AtomicRpcCounters> counters_;  // a lingering wire outlives its owner
  FrameInput input_;
  std::deque<OutFrame> out_;
  uint64_t written_ = 0;  // bytes of the first frame that are gone
  std::vector<iovec> parts_;
  asio::steady_timer linger_;
  TimeNs last_read_ns_ = 0;
  TimeNs last_write_ns_ = 0;
  bool connected_ = false;  // TLS agreed
  bool paused_ = false;
  bool in_read_ = false;
  bool lingering_ = false;
  bool failing_ = false;  // a failure is on its way to the owner
  bool read_armed_ = false;
  bool write_armed_ = false;
};

}  // namespace flux
