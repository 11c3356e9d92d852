// HttpServer: what people and tools ask a coordinator over HTTP: status, metrics, health, stop.
//
//   GET  /healthz   "ok" while the process answers          nobody is asked who they are
//   GET  /status    JobStatus as JSON                       readers
//   GET  /metrics   Prometheus text                         readers
//   GET  /logs      the coordinator's latest lines          readers
//   POST /stop      ends the job with a checkpoint          the admin token
//   POST /drain /scale /move /rebalance  operator_request.h  the admin token
//
// Readers: on an address of this host everybody; beyond it whoever shows the token or a
// certificate of the job's own authority. A page in somebody's browser is no reader: requests
// whose Host is a foreign name or whose Origin is another site are refused, and nothing changes by
// a request that a page could send without being asked (POST needs a header and a JSON type).
// Beyond this host only TLS is spoken, unless `insecure`. No file is served, no URL fetched.
// Bounded: threads, waiting connections, sizes and times. Slow clients can starve this interface,
// never the training.
// Threads: own ones; the hooks are called on them. Ownership: ends with the object.
// Failure: start() says what is wrong with the address or the certificates.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "flux/base/status.h"
#include "flux/coordinator/job_status.h"
#include "flux/coordinator/operator_request.h"

namespace flux {

struct HttpOptions {
  std::string host = "127.0.0.1";
  uint16_t port = 0;         // 0: any free one
  std::string token;         // of the admin; empty: nobody may change anything
  std::string certificates;  // folder with ca.pem, coordinator.pem, coordinator.key; empty: no TLS
  bool insecure = false;     // allow plain HTTP beyond this host
};

struct HttpHooks {
  std::function<JobStatus()> status;                 // a snapshot, soon
  std::function<void(const std::string& why)> stop;  // asks; does not wait
  std::function<std::string()> logs;                 // may be empty
  OperatorHooks operators = {};                      // may wait for the job a little
};

class HttpServer {
 public:
  static Result<std::unique_ptr<HttpServer>> start(const HttpOptions& options, HttpHooks hooks);
  virtual ~HttpServer() = default;
  // "http://127.0.0.1:40123"
  virtual std::string url() const = 0;
};

// An address that only this host reaches: "localhost", 127.x, ::1.
bool is_loopback_host(const std::string& host);

}  // namespace flux
