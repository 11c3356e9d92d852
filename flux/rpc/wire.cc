#include "flux/rpc/wire.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

#include <asio/post.hpp>
#include <sys/socket.h>

#include "flux/rpc/payload.h"
#include "flux/rpc/tls_session.h"

namespace flux {
namespace {

constexpr size_t kPartsMax = 1024;             // IOV_MAX of Linux
constexpr uint64_t kReadPerTurn = 16U << 20U;  // then others have their turn
constexpr auto kLinger = std::chrono::seconds(1);

}  // namespace

uint64_t OutFrame::bytes() const {
  return header.size() + control.size() + total_bytes(std::span<const ByteSpan>(payload));
}

OutFrame make_frame(FrameKind kind, std::string control, uint8_t version, Code code) {
  OutFrame frame;
  FrameHeader header = make_header(kind, control);
  header.version = version;
  header.code = code;
  frame.header = encode_header(header);
  frame.control = std::move(control);
  return frame;
}

Wire::Wire(StreamSocket socket, std::unique_ptr<TlsSession> tls, WireOwner& owner,
           const FrameLimits& limits, std::shared_ptr<AtomicRpcCounters> counters)
    : socket_(std::move(socket)),
      transport_(socket_.native_handle(), std::move(tls)),
      owner_(&owner),
      counters_(std::move(counters)),
      input_(*this, limits),
      linger_(socket_.get_executor()) {
  std::error_code ignored;
  socket_.native_non_blocking(true, ignored);
  last_read_ns_ = last_write_ns_ = steady_now_ns();
}

Wire::~Wire() = default;

// --- the owner's side ----------------------------------------------------------------------------

Status Wire::on_header(const FrameHeader& header, FrameTarget* target) {
  return owner_->on_header(header, target);
}

Status Wire::on_control(const FrameHeader& header, FrameTarget* target) {
  FLUX_RETURN_IF_ERROR(owner_->on_control(header, target));
  return is_open() ? Status::ok() : Status(Code::kCancelled, "closed");
}

Status Wire::on_frame(const FrameHeader& header) {
  AtomicRpcCounters::add(counters_->frames_in, 1);
  FLUX_RETURN_IF_ERROR(owner_->on_frame(header));
  return is_open() ? Status::ok() : Status(Code::kCancelled, "closed");
}

void Wire::start() {
  asio::post(socket_.get_executor(), [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->on_event();
  });
}

void Wire::shake_hands() {
  const IoResult io = transport_.handshake();
  if (io.outcome != IoOutcome::kBytes) {
    if (io.outcome == IoOutcome::kEnd || io.outcome == IoOutcome::kFailed) broken(failed(io));
    return wait_for(io.outcome);
  }
  connected_ = true;
  const Status status = owner_->on_connected();
  if (!status.is_ok()) broken(status);
}

void Wire::broken(const Status& reason) {
  if (owner_ == nullptr || failing_) return;
  failing_ = true;
  owner_->on_broken(reason);
}

void Wire::broken_later(const Status& reason) {
  if (failing_) return;
  asio::post(socket_.get_executor(), [weak = weak_from_this(), reason] {
    const auto self = weak.lock();
    if (!self) return;
    self->read_now();  // the peer may have said why
    self->broken(reason);
  });
}

Status Wire::failed(const IoResult& io) const {
  if (io.outcome == IoOutcome::kEnd) {
    if (!connected_) return {Code::kUnavailable, "the peer closed during the TLS handshake"};
    return {Code::kUnavailable, input_.mid_frame() ? "the peer closed in the middle of a frame"
                                                   : "the peer closed the connection"};
  }
  return transport_.failure();
}

void Wire::close() {
  owner_ = nullptr;
  out_.clear();
  std::error_code ignored;
  linger_.cancel();
  socket_.close(ignored);
}

void Wire::close_after_sending() {
  owner_ = nullptr;
  if (!socket_.is_open()) return;
  lingering_ = true;
  failing_ = false;
  if (!connected_ && !transport_.fall_back_to_plain()) out_.clear();
  connected_ = true;
  linger_.expires_after(kLinger);
  linger_.async_wait([self = shared_from_this()](const std::error_code&) { self->close(); });
  flush();
  read_rest();
}

// --- events --------------------------------------------------------------------------------------

void Wire::on_event() {
  if (lingering_) {
    flush();
    return read_rest();
  }
  if (!is_open()) return;
  if (!connected_) {
    shake_hands();
    if (!connected_ || !is_open()) return;
  }
  flush();
  if (is_open() && !paused_ && !read_armed_) read_some();
}

void Wire::wait_for(IoOutcome outcome) {
  if (!socket_.is_open()) return;
  if (outcome == IoOutcome::kWantRead) wait_read();
  if (outcome == IoOutcome::kWantWrite) wait_write();
}

void Wire::wait_read() {
  if (std::exchange(read_armed_, true)) return;
  socket_.async_wait(StreamSocket::wait_read, [weak = weak_from_this()](const std::error_code&) {
    const auto self = weak.lock();
    if (!self) return;
    self->read_armed_ = false;
    self->on_event();
  });
}

void Wire::wait_write() {
  if (std::exchange(write_armed_, true)) return;
  socket_.async_wait(StreamSocket::wait_write, [weak = weak_from_this()](const std::error_code&) {
    const auto self = weak.lock();
    if (!self) return;
    self->write_armed_ = false;
    self->on_event();
  });
}

// --- out -----------------------------------------------------------------------------------------

void Wire::send(OutFrame frame) {
  if (!is_open()) return;
  if (out_.empty()) last_write_ns_ = steady_now_ns();
  out_.push_back(std::move(frame));
  if (connected_ && out_.size() == 1) flush();
}

Wire::Abandoned Wire::abandon(uint64_t id) {
  const uint64_t gone = written_ + transport_.promised();
  uint64_t begin = 0;
  for (size_t i = 0; i < out_.size(); ++i) {
    if (out_[i].id == id) {
      if (begin < gone) return Abandoned::kBegun;
      out_.erase(out_.begin() + static_cast<ptrdiff_t>(i));
      return Abandoned::kRemoved;
    }
    begin += out_[i].bytes();
  }
  return Abandoned::kNotThere;
}

void Wire::gather_parts() {
  parts_.clear();
  uint64_t skip = written_;
  const auto add = [&](const void* data, size_t size) {
    const size_t cut = std::min<uint64_t>(skip, size);
    skip -= cut;
    if (cut == size) return;
    parts_.push_back({static_cast<char*>(const_cast<void*>(data)) + cut, size - cut});
  };
  for (const OutFrame& frame : out_) {
    if (parts_.size() + 2 > kPartsMax) return;
    add(frame.header.data(), frame.header.size());
    add(frame.control.data(), frame.control.size());
    for (const ByteSpan span : frame.payload) {
      if (parts_.size() == kPartsMax) return;
      add(span.data(), span.size());
    }
  }
}

void Wire::consume(uint64_t bytes) {
  AtomicRpcCounters::add(counters_->bytes_out, bytes);
  written_ += bytes;
  last_write_ns_ = steady_now_ns();
  while (!out_.empty() && written_ >= out_.front().bytes()) {
    const uint64_t size = out_.front().bytes(), id = out_.front().id;
    written_ -= size;
    out_.pop_front();
    AtomicRpcCounters::add(counters_->frames_out, 1);
    if (owner_ != nullptr) owner_->on_sent(id, size);
  }
}

void Wire::flush() {
  while (!out_.empty() && !write_armed_ && !failing_ && socket_.is_open()) {
    gather_parts();
    const IoResult io = transport_.write(parts_);
    if (io.outcome == IoOutcome::kBytes) {
      AtomicRpcCounters::add(counters_->payload_bytes_copied, transport_.take_copied());
      consume(io.bytes);
      if (io.drained && !out_.empty()) wait_write();
    } else if (io.outcome == IoOutcome::kFailed || io.outcome == IoOutcome::kEnd) {
      out_.clear();
      return broken_later(failed(io));
    } else {
      return wait_for(io.outcome);
    }
  }
  if (lingering_ && out_.empty() && socket_.is_open()) {
    std::error_code ignored;
    socket_.shutdown(StreamSocket::shutdown_send, ignored);
  }
}

// --- in ------------------------------------------------------------------------------------------

void Wire::resume_reading() {
  if (!std::exchange(paused_, false) || !is_open()) return;
  start();
}

void Wire::read_now() {
  if (is_open() && connected_ && !paused_) read_some();
}

void Wire::read_some() {
  if (std::exchange(in_read_, true)) return;
  const auto self = shared_from_this();
  uint64_t taken = 0;
  IoResult io;
  while (is_open() && !paused_ && !failing_) {
    if (taken > kReadPerTurn) {
      in_read_ = false;
      return start();  // goes on after the others
    }
    input_.want(kPartsMax, &parts_);
    io = transport_.read(parts_);
    if (io.outcome != IoOutcome::kBytes) break;
    taken += io.bytes;
    last_read_ns_ = steady_now_ns();
    AtomicRpcCounters::add(counters_->bytes_in, io.bytes);
    const Status status = input_.advance(io.bytes);
    if (!status.is_ok() && is_open()) broken(status);
    if (io.drained) {
      io.outcome = IoOutcome::kWantRead;
      break;
    }
  }
  in_read_ = false;
  if (!is_open() || paused_ || failing_) return;
  if (io.outcome == IoOutcome::kEnd || io.outcome == IoOutcome::kFailed) return broken(failed(io));
  wait_for(io.outcome);
}

// After a refusal: what the peer still sends is thrown away, so that it can read our last words.
void Wire::read_rest() {
  if (!socket_.is_open() || read_armed_) return;
  char scratch[16384];
  ssize_t got = 1;
  for (int turn = 0; got > 0 && turn < 64; ++turn)
    got = ::recv(socket_.native_handle(), scratch, sizeof scratch, MSG_DONTWAIT);
  if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) return close();
  wait_read();
}

}  // namespace flux
