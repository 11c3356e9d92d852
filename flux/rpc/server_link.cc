#include "flux/rpc/server_link.h"

#include <algorithm>
#include <utility>

#include <asio/post.hpp>

#include "flux/rpc/payload.h"
#include "flux/rpc/tls_session.h"

namespace flux {
namespace {

MutableByteSpan bytes_of(std::string& text) {
  return std::as_writable_bytes(std::span<char>(text.data(), text.size()));
}

}  // namespace

void ListenerCore::log(const std::string& line) {
  if (!options.log) return;
  const std::lock_guard lock(log_mutex);
  options.log(line);
}

ListenLoop::ListenLoop(IoLoop* given)
    : own(given == nullptr ? std::make_unique<IoLoop>() : nullptr),
      loop(given == nullptr ? *own : *given),
      sweep(loop.context()) {}

ServerLink::ServerLink(std::shared_ptr<ListenerCore> core, std::shared_ptr<ListenLoop> loop,
                       StreamSocket socket, std::string peer, std::string refusal)
    : core_(std::move(core)),
      loop_(std::move(loop)),
      peer_(std::move(peer)),
      refusal_(std::move(refusal)),
      id_(core_->next_connection.fetch_add(1)),
      since_ns_(steady_now_ns()),
      handshake_(core_->options.name, core_->options.security.token, random_nonce()) {
  std::unique_ptr<TlsSession> session;
  if (core_->tls) session = core_->tls->accept(socket.native_handle());
  wire_ = std::make_shared<Wire>(std::move(socket), std::move(session), *this, kHandshakeLimits,
                                 loop_->counters);
}

void ServerLink::start() {
  wire_->start();
}

// --- the end -------------------------------------------------------------------------------------

void ServerLink::on_broken(const Status& reason) {
  const auto self = shared_from_this();
  const bool let_in = handshake_.done();
  const bool clean =
      reason.code() == Code::kUnavailable && !wire_->mid_frame() && wire_->idle_out();
  if (!let_in) AtomicRpcCounters::add(loop_->counters->refused, 1);
  if (!let_in || !clean)
    core_->log(fmt::format("{}: {}; connection closed", peer_, reason.message()));
  if (reason.code() != Code::kUnavailable || !refusal_.empty()) {
    const uint8_t version = let_in ? handshake_.version() : kFrameVersionMin;
    wire_->send(make_frame(FrameKind::kRefuse, reason.message(), version, reason.code()));
    wire_->close_after_sending();
  } else {
    wire_->close();
  }
  leave();
}

void ServerLink::go_away(const std::string& why) {
  const auto self = shared_from_this();
  if (handshake_.done()) wire_->send(make_frame(FrameKind::kGoaway, why, handshake_.version()));
  wire_->close();
  leave();
}

void ServerLink::leave() {
  memory_.reset();
  if (loop_->links.erase(id_) == 0) return;
  core_->connections.fetch_sub(1);
  if (handshake_.done()) core_->service.closed(id_);
}

void ServerLink::check_time(TimeNs now) {
  const ListenerOptions& o = core_->options;
  const auto late = [&](TimeNs since, TimeNs timeout) { return now - since > timeout; };
  const auto give_up = [&](const char* what, TimeNs timeout) {
    on_broken(error(Code::kUnavailable, "{} for {} ms", what, timeout / kMillisecond));
  };
  if (!handshake_.done()) {
    if (late(since_ns_, o.handshake_timeout_ns))
      give_up("the handshake is not over", o.handshake_timeout_ns);
  } else if (!wire_->idle_out() && late(wire_->last_write_ns(), o.stall_timeout_ns)) {
    give_up("the peer takes no bytes", o.stall_timeout_ns);
  } else if (!slowed_ && wire_->mid_frame() && late(wire_->last_read_ns(), o.stall_timeout_ns)) {
    give_up("no byte in the middle of a frame", o.stall_timeout_ns);
  } else if (in_flight_ == 0 && late(wire_->last_read_ns(), o.idle_timeout_ns)) {
    go_away("no request for too long");
  }
}

// --- the beginning -------------------------------------------------------------------------------

Status ServerLink::on_connected() {
  if (wire_->tls() == nullptr) return Status::ok();
  FLUX_ASSIGN_OR_RETURN(certified_, wire_->tls()->peer_role());
  return Status::ok();
}

Status ServerLink::receive_handshake(const FrameHeader& header) {
  if (header.kind == FrameKind::kRefuse)
    return error(Code::kUnavailable, "the peer refused: {}", control_);
  HandshakeFrame answer;
  if (!refusal_.empty()) return {Code::kUnavailable, refusal_};
  FLUX_RETURN_IF_ERROR(handshake_.receive(header.kind, control_, &answer));
  if (certified_ && handshake_.peer().role != *certified_)
    return invalid("the peer says it is a {}, its certificate is that of a {}",
                   peer_role_name(handshake_.peer().role), peer_role_name(*certified_));
  if (handshake_.done()) {
    AtomicRpcCounters::add(loop_->counters->connections, 1);
    wire_->input().set_limits(core_->options.limits);
    wire_->input().set_version(handshake_.version());
  }
  wire_->send(make_frame(answer.kind, std::move(answer.control)));
  return Status::ok();
}

// --- requests ------------------------------------------------------------------------------------

Status ServerLink::on_header(const FrameHeader& header, FrameTarget* target) {
  if (handshake_.done() && header.kind == FrameKind::kRequest) {
    if (header.call <= last_call_) return {Code::kCorrupt, "the number of a call was used twice"};
    last_call_ = header.call;
    memory_ = pool_.take(header.control_bytes, header.payload_bytes);
    target->control = bytes_of(memory_->control);
    target->payload.push_back(memory_->payload.span());
    return Status::ok();
  }
  control_.resize(header.control_bytes);
  target->control = bytes_of(control_);
  target->discard = header.payload_bytes > 0;
  return Status::ok();
}

Status ServerLink::on_control(const FrameHeader&, FrameTarget*) {
  return Status::ok();
}

Status ServerLink::on_frame(const FrameHeader& header) {
  const auto self = shared_from_this();
  if (!handshake_.done()) return receive_handshake(header);
  switch (header.kind) {
    case FrameKind::kRequest:
      handle_request(header);
      return Status::ok();
    case FrameKind::kPing:
      wire_->send(make_frame(FrameKind::kPong, {}, handshake_.version()));
      return Status::ok();
    case FrameKind::kPong:
      return Status::ok();
    default:
      return error(Code::kCorrupt, "a frame of kind {} at the wrong time",
                   static_cast<int>(header.kind));
  }
}

void ServerLink::handle_request(const FrameHeader& header) {
  const uint64_t bytes = header.control_bytes + header.payload_bytes;
  ++in_flight_;
  in_flight_bytes_ += bytes;
  RpcRequest request;
  request.verb = header.verb;
  request.role = handshake_.peer().role;
  request.peer = peer_;
  request.connection = id_;
  request.control = memory_->control;
  request.payload = memory_->payload.span();
  request.memory = std::move(memory_);
  Responder respond = make_responder(header.call, bytes);
  slow_down();
  Status allowed = check_allowed(core_->service, request.role, request.verb);
  if (!allowed.is_ok()) return respond.fail(std::move(allowed));
  core_->service.handle(std::move(request), std::move(respond));
}

Responder ServerLink::make_responder(uint64_t call, uint64_t bytes) {
  return Responder(
      [weak = weak_from_this(), loop = loop_, call, bytes](Status status, RpcAnswer answer) {
        if (loop->context().get_executor().running_in_this_thread()) {
          if (const auto self = weak.lock())
            self->answer(call, bytes, std::move(status), std::move(answer));
          return;
        }
        asio::post(loop->context(), [weak, call, bytes, status = std::move(status),
                                     answer = std::move(answer)]() mutable {
          if (const auto self = weak.lock())
            self->answer(call, bytes, std::move(status), std::move(answer));
        });
      });
}

void ServerLink::answer(uint64_t call, uint64_t bytes, Status status, RpcAnswer answer) {
  if (!wire_->is_open()) return;
  in_flight_bytes_ -= bytes;
  const FrameLimits& limits = core_->options.limits;
  if (status.is_ok() &&
      (answer.control.size() > limits.control_max ||
       total_bytes(std::span<const ByteSpan>(answer.payload)) > limits.payload_max)) {
    status = invalid("the answer is too large: more than {} control or {} payload bytes",
                     limits.control_max, limits.payload_max);
  }
  OutFrame frame;
  if (status.is_ok()) {
    frame.control = std::move(answer.control);
    frame.payload = std::move(answer.payload);
    frame.memory = std::move(answer.memory);
  } else {
    frame.control = status.message().substr(0, kHandshakeLimits.control_max);
  }
  FrameHeader header = make_header(status.is_ok() ? FrameKind::kReply : FrameKind::kError,
                                   frame.control, frame.payload);
  header.version = handshake_.version();
  header.code = status.code();
  header.call = call;
  frame.header = encode_header(header);
  frame.id = call;
  in_flight_bytes_ += frame.bytes();
  wire_->send(std::move(frame));
}

void ServerLink::on_sent(uint64_t id, uint64_t bytes) {
  if (id == 0) return;
  --in_flight_;
  in_flight_bytes_ -= bytes;
  slow_down();
}

// A connection with too much in flight is not read until some of it is answered.
void ServerLink::slow_down() {
  const ListenerOptions& o = core_->options;
  const bool full = in_flight_ >= o.in_flight_max || in_flight_bytes_ >= o.in_flight_bytes_max;
  if (full == slowed_) return;
  slowed_ = full;
  if (full) {
    wire_->pause_reading();
  } else {
    wire_->resume_reading();
  }
}

}  // namespace flux
