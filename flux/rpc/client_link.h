// ClientLink: the state of a SocketChannel. Private to rpc/ (it shows Asio).
// One object from the first call to the end of the channel; its Wire comes and goes with each
// connection. Threads: the loop's. Every callback of a user may end the channel: after each,
// closed_ is looked at before anything else is touched.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <asio/steady_timer.hpp>

#include "flux/rpc/address.h"
#include "flux/rpc/buffer_pool.h"
#include "flux/rpc/dialer.h"
#include "flux/rpc/handshake.h"
#include "flux/rpc/socket_channel.h"
#include "flux/rpc/tls_context.h"
#include "flux/rpc/wire.h"

namespace flux {

class ClientLink final : public std::enable_shared_from_this<ClientLink>, public WireOwner {
 public:
  ClientLink(IoLoop& loop, Address address, SocketChannelOptions options,
             std::shared_ptr<TlsContext> tls);
  uint64_t call(RpcCall call);
  void cancel(uint64_t id);
  // Ends everything; no `done` is called any more.
  void close();
  std::string peer() const { return address_.text(); }
  const AtomicRpcCounters& counters() const { return *counters_; }
  const std::string& server_name() const { return server_name_; }

 private:
  enum class Phase : uint8_t { kIdle, kBackoff, kConnecting, kHandshaking, kReady };
  struct Call {
    RpcCall call;
    TimeNs deadline_ns = 0;
    uint64_t bytes = 0;
    bool in_flight = false;
  };
  using Calls = std::unordered_map<uint64_t, Call>;

  // WireOwner
  Status on_connected() override;
  void on_broken(const Status& reason) override;
  Status on_header(const FrameHeader& header, FrameTarget* target) override;
  Status on_control(const FrameHeader& header, FrameTarget* target) override;
  Status on_frame(const FrameHeader& header) override;

  // Connecting
  void connect();
  TimeNs dial_timeout() const;
  void on_dialed(const Status& status, Dialer::Socket socket);
  void drop_connection();
  bool is_impatient(const Call& call) const;
  Status receive_handshake(const FrameHeader& header);

  // Calls
  Status check_call(const RpcCall& call) const;
  bool has_room(uint64_t bytes) const;
  void send(uint64_t id, Call& call);
  void pump();
  void finish(uint64_t id, const Status& status, RpcReply reply = {});
  void finish_later(uint64_t id, const Status& status);
  void end_early(uint64_t id, const Status& status);
  void fail_all(const std::vector<uint64_t>& ids, const Status& status);
  Status begin_reply(const FrameHeader& header, FrameTarget* target);
  Status end_reply(const FrameHeader& header);

  // Time
  void arm(TimeNs when_ns);
  void tick();
  void expire(TimeNs now);
  void keep_alive(TimeNs now);
  TimeNs next_wake() const;
  Status timed_out(const Call& call) const;

  IoLoop& loop_;
  const Address address_;
  const SocketChannelOptions options_;
  const std::shared_ptr<TlsContext> tls_;
  const std::shared_ptr<AtomicRpcCounters> counters_ = std::make_shared<AtomicRpcCounters>();
  BufferPool pool_;

  Phase phase_ = Phase::kIdle;
  bool closed_ = false;
  std::shared_ptr<Dialer> dialer_;
  std::shared_ptr<Wire> wire_;
  std::optional<ClientHandshake> handshake_;
  std::string server_name_;
  Status last_failure_;
  std::string goaway_;
  uint32_t failures_ = 0;  // in a row
  TimeNs connect_deadline_ns_ = 0;
  TimeNs next_attempt_ns_ = 0;
  TimeNs ping_ns_ = 0;  // when the unanswered ping was sent; 0: none

  uint64_t last_id_ = 0;
  Calls calls_;
  std::deque<uint64_t> waiting_;
  uint64_t in_flight_ = 0, in_flight_bytes_ = 0;

  // The frame that is being read.
  uint64_t reading_ = 0;  // call whose placed memory is being written; 0: none
  Status place_failure_;
  std::string control_;
  std::shared_ptr<PayloadMemory> memory_;

  asio::steady_timer timer_;
  TimeNs armed_ns_ = 0;  // 0: not
};

}  // namespace flux
