// Listener: takes connections on several addresses and hands their requests to a Service.
//
// Connections are spread over a few loops, each turned by a thread of the listener (or over one
// loop that the caller turns). A request lies in one aligned buffer that is used again; its answer
// is gathered from the service's memory. What a peer does wrong closes its own connection, with one
// line in the log and, where it can still read, a refusal that names the reason.
// Threads: start, stop and destruction by one thread; counters() from any. The service outlives the
// listener and is called on the loops' threads. stop() returns when no handler runs any more.
// Failure: start() is kInvalid for a bad address, a port in use, bad certificates, or an address
// beyond this host without certificates, token or `insecure`.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "flux/base/executor.h"
#include "flux/base/status.h"
#include "flux/rpc/frame.h"
#include "flux/rpc/io_loop.h"
#include "flux/rpc/rpc_counters.h"
#include "flux/rpc/security.h"
#include "flux/rpc/service.h"

namespace flux {

struct ListenerOptions {
  std::vector<std::string> addresses;  // port 0: any free one
  PeerRole role = PeerRole::kServer;   // whose certificate is shown
  std::string name;                    // what clients are told: "server-0"
  SecurityOptions security;
  uint32_t threads = 1;
  IoLoop* loop = nullptr;  // turned by the caller; then no thread is started, and the caller's
                           // thread starts and stops the listener
  FrameLimits limits;
  uint32_t connections_max = 1024;
  uint32_t in_flight_max = 1024;               // requests of a connection that are not answered
  uint64_t in_flight_bytes_max = 256U << 20U;  // of requests and answers of a connection
  TimeNs handshake_timeout_ns = 10 * kSecond;
  TimeNs stall_timeout_ns = 60 * kSecond;       // without a byte in the middle of a frame
  TimeNs idle_timeout_ns = 600 * kSecond;       // without a frame, pings included
  std::function<void(const std::string&)> log;  // one line without its end; from any loop's thread,
                                                // one at a time
};

class Listener {
 public:
  static Result<std::unique_ptr<Listener>> start(ListenerOptions options, Service& service);
  ~Listener();  // stops
  // Tells the peers, closes the connections, ends the threads. Answers that are not sent are lost.
  void stop();

  // As given, with the real ports: "tcp:127.0.0.1:40123".
  const std::vector<std::string>& addresses() const;
  size_t connections() const;
  RpcCounters counters() const;

 private:
  class Impl;
  explicit Listener(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// kInvalid with advice if nobody could be kept out of this address.
Status check_exposure(std::string_view address, const SecurityOptions& security);

}  // namespace flux
