// SocketChannel: a Channel over TCP or a Unix socket, plain or with TLS.
//
// Connects on first use; after a break it connects again, with growing pauses, as long as a call
// waits. An attempt that fails fails the calls that wait for it, with kUnavailable, at once (unless
// `patience_ns` says otherwise): who needs the peer asks again, who has another choice takes it. A
// call goes out inside call() if the socket takes it. At most so many calls and bytes are
// in flight; beyond that calls wait in a bounded queue, within their own time. A peer that says
// nothing is asked (ping) and given up with a named reason.
// Threads: those of the loop, one, destruction included; the loop outlives the channel.
// Failure: see rpc/channel.h. A listener that refuses us (token, version, certificate) fails the
// waiting calls at once, with its words. Ending a call whose bytes are half written or half read
// closes the connection, which fails the other calls in flight with kUnavailable.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "flux/base/executor.h"
#include "flux/base/status.h"
#include "flux/rpc/channel.h"
#include "flux/rpc/frame.h"
#include "flux/rpc/io_loop.h"
#include "flux/rpc/rpc_counters.h"
#include "flux/rpc/security.h"
#include "flux/rpc/service.h"

namespace flux {

class TlsContext;  // rpc/tls_context.h

struct SocketChannelOptions {
  PeerRole role = PeerRole::kWorker;
  std::string name;  // for people at the other end: "worker-3"
  SecurityOptions security;
  // TLS of many channels may share one; else it is loaded from security.certificates, if given.
  std::shared_ptr<TlsContext> tls;
  FrameLimits limits;
  uint32_t in_flight_max = 256;
  uint64_t in_flight_bytes_max = 256U << 20U;  // of requests; a larger one goes alone
  uint32_t waiting_max = 4096;
  TimeNs connect_timeout_ns = 5 * kSecond;  // until the handshake is over
  TimeNs patience_ns = 0;  // how long a call waits at least while attempts to connect fail
  TimeNs backoff_first_ns = 20 * kMillisecond;
  TimeNs backoff_max_ns = 200 * kMillisecond;
  TimeNs keep_alive_ns = 10 * kSecond;          // of silence before a ping
  TimeNs keep_alive_timeout_ns = 20 * kSecond;  // for an answer to it
  // A connection that stood has broken; in a task of the loop. May be empty.
  std::function<void()> on_break;
};

class SocketChannel final : public Channel {
 public:
  // kInvalid if the address is malformed or the certificates cannot be used. Does not connect.
  static Result<std::unique_ptr<SocketChannel>> create(IoLoop& loop, std::string_view address,
                                                       SocketChannelOptions options);
  ~SocketChannel() override;
  uint64_t call(RpcCall call) override;
  void cancel(uint64_t id) override;
  std::string peer() const override;

  RpcCounters counters() const;
  // The name that the listener gave itself; empty before the first connection.
  std::string server_name() const;

 private:
  class Impl;
  explicit SocketChannel(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace flux
