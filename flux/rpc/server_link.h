// ServerLink: one connection of a Listener, and ListenLoop: the loop that carries some of them.
// Private to rpc/ (it shows Asio). Threads: a link belongs to its loop's; a Responder comes back to
// it from anywhere. Ownership: ListenLoop::links holds a link while it is open.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>

#include <asio/steady_timer.hpp>

#include "flux/rpc/buffer_pool.h"
#include "flux/rpc/handshake.h"
#include "flux/rpc/listener.h"
#include "flux/rpc/tls_context.h"
#include "flux/rpc/wire.h"

namespace flux {

class ServerLink;

// What all connections of a listener share.
struct ListenerCore {
  ListenerCore(ListenerOptions o, Service& s) : options(std::move(o)), service(s) {}
  void log(const std::string& line);

  const ListenerOptions options;
  Service& service;
  std::shared_ptr<TlsContext> tls;
  std::atomic<uint64_t> next_connection{1};
  std::atomic<size_t> connections{0};
  std::atomic<bool> stopped{false};
  std::mutex log_mutex;
};

struct ListenLoop {
  explicit ListenLoop(IoLoop* given);
  asio::io_context& context() { return loop.context(); }

  std::unique_ptr<IoLoop> own;  // unless it was given
  IoLoop& loop;
  std::thread thread;
  std::shared_ptr<AtomicRpcCounters> counters = std::make_shared<AtomicRpcCounters>();
  std::unordered_map<uint64_t, std::shared_ptr<ServerLink>> links;
  asio::steady_timer sweep;
};

class ServerLink final : public std::enable_shared_from_this<ServerLink>, public WireOwner {
 public:
  // `refusal`: why it is turned away as soon as it has said hello; empty: it is not.
  ServerLink(std::shared_ptr<ListenerCore> core, std::shared_ptr<ListenLoop> loop,
             StreamSocket socket, std::string peer, std::string refusal);
  void start();
  // Closes if a deadline has passed.
  void check_time(TimeNs now);
  // Says why and closes.
  void go_away(const std::string& why);
  uint64_t id() const { return id_; }

 private:
  Status on_connected() override;
  void on_broken(const Status& reason) override;
  void on_sent(uint64_t id, uint64_t bytes) override;
  Status on_header(const FrameHeader& header, FrameTarget* target) override;
  Status on_control(const FrameHeader& header, FrameTarget* target) override;
  Status on_frame(const FrameHeader& header) override;

  Status receive_handshake(const FrameHeader& header);
  Status begin_request(const FrameHeader& header);
  void handle_request(const FrameHeader& header);
  Responder make_responder(uint64_t call, uint64_t bytes);
  void answer(uint64_t call, uint64_t bytes, Status status, RpcAnswer answer);
  void slow_down();
  void leave();

  const std::shared_ptr<ListenerCore> core_;
  const std::shared_ptr<ListenLoop> loop_;
  const std::string peer_;
  const std::string refusal_;
  const uint64_t id_;
  const TimeNs since_ns_;
  std::shared_ptr<Wire> wire_;
  ServerHandshake handshake_;
  std::optional<PeerRole> certified_;
  BufferPool pool_;
  std::string control_;
  std::shared_ptr<PayloadMemory> memory_;  // of the request that is being read
  uint64_t last_call_ = 0;
  uint64_t in_flight_ = 0, in_flight_bytes_ = 0;
  bool slowed_ = false;
};

}  // namespace flux
