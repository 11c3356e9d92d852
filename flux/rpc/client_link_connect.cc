// ClientLink: connecting, breaking, time.
#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

#include "flux/base/hash.h"
#include "flux/rpc/client_link.h"
#include "flux/rpc/tls_session.h"

namespace flux {

// The kernel repeats a request for a connection more and more rarely; a new one is sent at once.
TimeNs ClientLink::dial_timeout() const {
  return std::min(options_.connect_timeout_ns, kSecond);
}

void ClientLink::connect() {
  const TimeNs now = loop_.now_ns();
  if (now < next_attempt_ns_) {
    phase_ = Phase::kBackoff;
    return arm(next_attempt_ns_);
  }
  phase_ = Phase::kConnecting;
  connect_deadline_ns_ = now + dial_timeout();
  arm(connect_deadline_ns_);
  goaway_.clear();
  ping_ns_ = 0;
  dialer_ = std::make_shared<Dialer>(
      loop_.context(), address_,
      [weak = weak_from_this()](const Status& status, Dialer::Socket socket) {
        if (const auto self = weak.lock()) self->on_dialed(status, std::move(socket));
      });
  dialer_->start();
}

void ClientLink::on_dialed(const Status& status, Dialer::Socket socket) {
  dialer_.reset();
  if (!status.is_ok()) return on_broken(status);
  phase_ = Phase::kHandshaking;
  connect_deadline_ns_ = loop_.now_ns() + options_.connect_timeout_ns;
  std::unique_ptr<TlsSession> session;
  if (tls_) session = tls_->connect(socket.native_handle());
  wire_ = std::make_shared<Wire>(std::move(socket), std::move(session), *this, kHandshakeLimits,
                                 counters_);
  wire_->start();
}

Status ClientLink::on_connected() {
  if (wire_->tls() != nullptr) {
    FLUX_ASSIGN_OR_RETURN(const PeerRole role, wire_->tls()->peer_role());
    if (role == PeerRole::kWorker || role == PeerRole::kViewer)
      return invalid("the listener's certificate is that of a {}, who may not listen",
                     peer_role_name(role));
  }
  HandshakeIdentity self{options_.role, options_.name};
  handshake_.emplace(std::move(self), options_.security.token, random_nonce());
  HandshakeFrame hello = handshake_->hello();
  wire_->send(make_frame(hello.kind, std::move(hello.control)));
  return Status::ok();
}

Status ClientLink::receive_handshake(const FrameHeader& header) {
  HandshakeFrame answer;
  bool has_answer = false;
  FLUX_RETURN_IF_ERROR(
      handshake_->receive(header.kind, header.code, control_, &answer, &has_answer));
  if (has_answer) wire_->send(make_frame(answer.kind, std::move(answer.control)));
  if (!handshake_->done()) return Status::ok();
  phase_ = Phase::kReady;
  failures_ = 0;
  server_name_ = handshake_->server_name();
  AtomicRpcCounters::add(counters_->connections, 1);
  wire_->input().set_limits(options_.limits);
  wire_->input().set_version(handshake_->version());
  arm(loop_.now_ns() + options_.keep_alive_ns);
  pump();
  return Status::ok();
}

void ClientLink::drop_connection() {
  if (dialer_) dialer_->cancel();
  if (wire_) wire_->close();
  dialer_.reset();
  wire_.reset();
  reading_ = 0;
  memory_.reset();
}

void ClientLink::on_broken(const Status& reason) {
  const auto self = shared_from_this();
  const bool was_ready = phase_ == Phase::kReady;
  const auto kept = wire_;  // we may be inside one of its functions
  drop_connection();
  const std::string why =
      goaway_.empty() ? reason.message() : fmt::format("the peer goes away: {}", goaway_);
  last_failure_ = Status(Code::kUnavailable, fmt::format("{}: {}", peer(), why));
  const bool refused = !was_ready && reason.code() != Code::kUnavailable;
  const TimeNs pause =
      std::min(options_.backoff_max_ns, options_.backoff_first_ns << std::min(failures_, 10U));
  // Spread over the second half, so that many clients of one peer do not come back together.
  const uint64_t spread = hash_pair(reinterpret_cast<uintptr_t>(this), last_id_ + failures_);
  next_attempt_ns_ = loop_.now_ns() + pause / 2 +
                     static_cast<TimeNs>(spread % static_cast<uint64_t>(pause / 2 + 1));
  ++failures_;
  if (!was_ready) AtomicRpcCounters::add(counters_->refused, 1);
  phase_ = Phase::kIdle;
  if (was_ready && options_.on_break) loop_.post(0, options_.on_break);
  std::vector<uint64_t> over;
  for (const auto& [id, call] : calls_)
    if (call.in_flight || refused || (!was_ready && is_impatient(call))) over.push_back(id);
  std::sort(over.begin(), over.end());
  std::erase_if(waiting_,
                [&](uint64_t id) { return std::binary_search(over.begin(), over.end(), id); });
  if (!waiting_.empty()) connect();
  fail_all(over, refused ? Status(reason.code(), last_failure_.message()) : last_failure_);
}

// Whether a call has waited long enough for a peer that cannot be reached.
bool ClientLink::is_impatient(const Call& call) const {
  const TimeNs begun = call.deadline_ns - std::max<TimeNs>(call.call.timeout_ns, 0);
  return loop_.now_ns() - begun >= options_.patience_ns;
}

// --- time ----------------------------------------------------------------------------------------

void ClientLink::arm(TimeNs when_ns) {
  if (closed_ || (armed_ns_ != 0 && armed_ns_ <= when_ns)) return;
  armed_ns_ = when_ns;
  timer_.expires_at(std::chrono::steady_clock::time_point(std::chrono::nanoseconds(when_ns)));
  timer_.async_wait([weak = weak_from_this()](const std::error_code& failed) {
    const auto self = weak.lock();
    if (!failed && self && !self->closed_) self->tick();
  });
}

TimeNs ClientLink::next_wake() const {
  TimeNs next = std::numeric_limits<TimeNs>::max();
  for (const auto& [id, call] : calls_) next = std::min(next, call.deadline_ns);
  if (phase_ == Phase::kBackoff) next = std::min(next, next_attempt_ns_);
  if (phase_ == Phase::kConnecting || phase_ == Phase::kHandshaking)
    next = std::min(next, connect_deadline_ns_);
  if (phase_ == Phase::kReady) {
    next = std::min(next, ping_ns_ != 0 ? ping_ns_ + options_.keep_alive_timeout_ns
                                        : wire_->last_read_ns() + options_.keep_alive_ns);
  }
  return next;
}

void ClientLink::tick() {
  const auto self = shared_from_this();
  const TimeNs now = loop_.now_ns();
  armed_ns_ = 0;
  if (phase_ == Phase::kReady) keep_alive(now);
  if (phase_ == Phase::kBackoff && now >= next_attempt_ns_) {
    phase_ = Phase::kIdle;
    if (!waiting_.empty()) connect();
  }
  if ((phase_ == Phase::kConnecting || phase_ == Phase::kHandshaking) &&
      now >= connect_deadline_ns_) {
    const bool dials = phase_ == Phase::kConnecting;
    on_broken(error(Code::kUnavailable, "no {} within {} ms",
                    dials ? "connection" : "answer to the handshake",
                    (dials ? dial_timeout() : options_.connect_timeout_ns) / kMillisecond));
  }
  expire(now);
  if (closed_) return;
  const TimeNs next = next_wake();
  if (next != std::numeric_limits<TimeNs>::max()) arm(next);
}

void ClientLink::expire(TimeNs now) {
  const auto over = [&] {
    return std::any_of(calls_.begin(), calls_.end(),
                       [&](const auto& entry) { return entry.second.deadline_ns <= now; });
  };
  if (closed_ || !over()) return;
  if (wire_) wire_->read_now();  // the answer may be here already
  std::vector<uint64_t> late;
  if (closed_) return;
  for (const auto& [id, call] : calls_)
    if (call.deadline_ns <= now) late.push_back(id);
  std::sort(late.begin(), late.end());
  for (const uint64_t id : late) {
    const auto it = calls_.find(id);
    if (!closed_ && it != calls_.end()) end_early(id, timed_out(it->second));
  }
}

Status ClientLink::timed_out(const Call& call) const {
  std::string why;
  if (!call.in_flight && phase_ != Phase::kReady) {
    why = last_failure_.is_ok() ? " (not connected yet)"
                                : fmt::format(" (not connected: {})", last_failure_.message());
  } else if (!call.in_flight) {
    why = fmt::format(" (it waited for room: {} calls with {} bytes in flight)", in_flight_,
                      in_flight_bytes_);
  }
  return error(Code::kUnavailable, "{}: verb {} was not answered within {} ms{}", peer(),
               call.call.verb, call.call.timeout_ns / kMillisecond, why);
}

void ClientLink::keep_alive(TimeNs now) {
  if (ping_ns_ < wire_->last_read_ns()) ping_ns_ = 0;  // some bytes are an answer too
  const TimeNs silent = now - wire_->last_read_ns();
  if (silent < options_.keep_alive_ns) return;
  const TimeNs pinged = ping_ns_;
  if (pinged != 0 && now - pinged < options_.keep_alive_timeout_ns) return;
  wire_->read_now();  // this thread may have been busy elsewhere
  if (closed_ || phase_ != Phase::kReady || wire_->last_read_ns() >= now) return;
  if (pinged == 0) {
    ping_ns_ = now;
    wire_->send(make_frame(FrameKind::kPing, {}, handshake_->version()));
    return;
  }
  on_broken(error(Code::kUnavailable, "no sign of life for {} ms, not even an answer to a ping",
                  silent / kMillisecond));
}

}  // namespace flux
