#include "flux/rpc/client_link.h"

#include <algorithm>
#include <utility>

#include "flux/base/hash.h"
#include "flux/rpc/payload.h"

namespace flux {
namespace {

MutableByteSpan bytes_of(std::string& text) {
  return std::as_writable_bytes(std::span<char>(text.data(), text.size()));
}

}  // namespace

ClientLink::ClientLink(IoLoop& loop, Address address, SocketChannelOptions options,
                       std::shared_ptr<TlsContext> tls)
    : loop_(loop),
      address_(std::move(address)),
      options_(std::move(options)),
      tls_(std::move(tls)),
      timer_(loop.context()) {}

// --- calls ---------------------------------------------------------------------------------------

uint64_t ClientLink::call(RpcCall call) {
  const uint64_t id = ++last_id_;
  Call record;
  record.deadline_ns = loop_.now_ns() + std::max<TimeNs>(call.timeout_ns, 0);
  const Status sound = check_call(call);
  record.bytes = call.control.size() + total_bytes(std::span<const ByteSpan>(call.payload));
  record.call = std::move(call);
  Call& placed = calls_.emplace(id, std::move(record)).first->second;
  if (!sound.is_ok()) {
    finish_later(id, sound);
  } else if (phase_ == Phase::kReady && waiting_.empty() && has_room(placed.bytes)) {
    send(id, placed);
  } else if (waiting_.size() >= options_.waiting_max) {
    finish_later(id,
                 error(Code::kUnavailable, "{}: {} calls wait already", peer(), waiting_.size()));
  } else {
    waiting_.push_back(id);
    if (phase_ == Phase::kIdle) connect();
  }
  arm(placed.deadline_ns);
  return id;
}

Status ClientLink::check_call(const RpcCall& call) const {
  const uint64_t bytes = total_bytes(std::span<const ByteSpan>(call.payload));
  if (call.control.size() > options_.limits.control_max)
    return invalid("{}: verb {}: {} control bytes; at most {}", peer(), call.verb,
                   call.control.size(), options_.limits.control_max);
  if (bytes > options_.limits.payload_max)
    return invalid("{}: verb {}: {} payload bytes; at most {}", peer(), call.verb, bytes,
                   options_.limits.payload_max);
  return Status::ok();
}

bool ClientLink::has_room(uint64_t bytes) const {
  if (in_flight_ == 0) return true;
  return in_flight_ < options_.in_flight_max &&
         in_flight_bytes_ + bytes <= options_.in_flight_bytes_max;
}

void ClientLink::send(uint64_t id, Call& call) {
  call.in_flight = true;
  ++in_flight_;
  in_flight_bytes_ += call.bytes;
  OutFrame frame;
  FrameHeader header =
      make_header(FrameKind::kRequest, call.call.control, call.call.payload,
                  call.call.checks_itself ? PayloadCheck::kItsOwn : PayloadCheck::kByFrame);
  header.version = handshake_->version();
  header.verb = call.call.verb;
  header.call = id;
  frame.header = encode_header(header);
  frame.control = std::move(call.call.control);
  frame.payload = std::move(call.call.payload);
  frame.id = id;
  wire_->send(std::move(frame));
}

void ClientLink::pump() {
  while (phase_ == Phase::kReady && wire_->is_open() && !waiting_.empty()) {
    const auto it = calls_.find(waiting_.front());
    if (it != calls_.end()) {
      if (!has_room(it->second.bytes)) return;
      send(it->first, it->second);
    }
    waiting_.pop_front();
  }
}

void ClientLink::cancel(uint64_t id) {
  loop_.post(0, [weak = weak_from_this(), id] {
    if (const auto self = weak.lock())
      self->end_early(id, Status(Code::kCancelled, "the call was cancelled"));
  });
}

void ClientLink::finish_later(uint64_t id, const Status& status) {
  loop_.post(0, [weak = weak_from_this(), id, status] {
    if (const auto self = weak.lock()) self->finish(id, status);
  });
}

void ClientLink::finish(uint64_t id, const Status& status, RpcReply reply) {
  const auto it = calls_.find(id);
  if (closed_ || it == calls_.end()) return;
  Call call = std::move(it->second);
  calls_.erase(it);
  if (call.in_flight) {
    --in_flight_;
    in_flight_bytes_ -= call.bytes;
    pump();
  } else {
    std::erase(waiting_, id);
  }
  if (call.call.done) call.call.done(status, std::move(reply));
}

// By cancel or time-out: memory that the connection may still touch ends the connection.
void ClientLink::end_early(uint64_t id, const Status& status) {
  const auto self = shared_from_this();
  const auto it = calls_.find(id);
  if (closed_ || it == calls_.end()) return;
  const bool begun = it->second.in_flight && wire_ &&
                     (id == reading_ || wire_->abandon(id) == Wire::Abandoned::kBegun);
  if (!begun) return finish(id, status);
  wire_->close();  // nothing touches the memory from here on
  finish(id, status);
  if (!closed_) {
    on_broken(error(Code::kUnavailable,
                    "the connection was closed because a call ended while it was half sent or half "
                    "read"));
  }
}

void ClientLink::fail_all(const std::vector<uint64_t>& ids, const Status& status) {
  for (const uint64_t id : ids) {
    if (closed_) return;
    finish(id, status);
  }
}

void ClientLink::close() {
  closed_ = true;
  phase_ = Phase::kIdle;
  drop_connection();
  timer_.cancel();
  const Calls calls = std::move(calls_);  // their owners' memory goes now, outside of our own
  calls_.clear();
  waiting_.clear();
}

// --- replies -------------------------------------------------------------------------------------

Status ClientLink::on_header(const FrameHeader& header, FrameTarget* target) {
  control_.resize(header.control_bytes);
  target->control = bytes_of(control_);
  memory_.reset();
  place_failure_ = Status::ok();
  if (phase_ == Phase::kReady && header.kind == FrameKind::kReply)
    return begin_reply(header, target);
  return Status::ok();
}

Status ClientLink::begin_reply(const FrameHeader& header, FrameTarget* target) {
  const auto it = calls_.find(header.call);
  if (header.call > last_id_) return {Code::kCorrupt, "a reply to a call that was never made"};
  if (it == calls_.end()) {
    target->discard = true;  // its caller has given up
  } else if (it->second.call.place) {
    target->after_control = true;
  } else {
    memory_ = pool_.take(0, header.payload_bytes);
    target->payload.push_back(memory_->payload.span());
  }
  return Status::ok();
}

Status ClientLink::on_control(const FrameHeader& header, FrameTarget* target) {
  const auto self = shared_from_this();
  const auto it = calls_.find(header.call);
  target->discard = true;
  if (it == calls_.end()) return Status::ok();
  const PlacePayload place = it->second.call.place;  // it may end the call or the channel
  auto spans = place(control_, header.payload_bytes);
  if (closed_ || !calls_.contains(header.call)) return Status::ok();
  place_failure_ =
      spans.is_ok() ? check_placed(spans.value(), header.payload_bytes) : spans.status();
  if (!place_failure_.is_ok()) return Status::ok();
  target->payload = std::move(spans).value();
  target->discard = false;
  reading_ = header.call;
  return Status::ok();
}

Status ClientLink::on_frame(const FrameHeader& header) {
  const auto self = shared_from_this();
  if (std::exchange(ping_ns_, 0) != 0) arm(loop_.now_ns() + options_.keep_alive_ns);
  if (phase_ == Phase::kHandshaking) return receive_handshake(header);
  switch (header.kind) {
    case FrameKind::kReply:
    case FrameKind::kError:
      return end_reply(header);
    case FrameKind::kPing:
      wire_->send(make_frame(FrameKind::kPong, {}, handshake_->version()));
      return Status::ok();
    case FrameKind::kPong:
      return Status::ok();
    case FrameKind::kGoaway:
      goaway_ = std::exchange(control_, {});
      return Status::ok();
    case FrameKind::kRefuse:
      return {Code::kUnavailable, "the peer closed the connection: " + control_};
    default:
      return error(Code::kCorrupt, "a frame of kind {} at the wrong time",
                   static_cast<int>(header.kind));
  }
}

Status ClientLink::end_reply(const FrameHeader& header) {
  reading_ = 0;
  const auto it = calls_.find(header.call);
  if (it == calls_.end()) {
    if (header.call <= last_id_) return Status::ok();
    return {Code::kCorrupt, "an answer to a call that was never made"};
  }
  if (!it->second.in_flight || wire_->abandon(header.call) != Wire::Abandoned::kNotThere)
    return {Code::kCorrupt, "an answer before the request was sent"};
  RpcReply reply;
  reply.answered = true;
  if (header.kind == FrameKind::kError) {
    finish(header.call, Status(header.code, std::exchange(control_, {})), std::move(reply));
    return Status::ok();
  }
  if (!place_failure_.is_ok()) {
    finish(header.call, std::exchange(place_failure_, Status::ok()), std::move(reply));
    return Status::ok();
  }
  reply.control = std::exchange(control_, {});
  if (memory_) {
    reply.payload = memory_->payload.span();
    reply.memory = std::move(memory_);
  }
  finish(header.call, Status::ok(), std::move(reply));
  return Status::ok();
}

}  // namespace flux
