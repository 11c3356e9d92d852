// TlsContext: a role's certificate, key and authority, loaded once and shared by connections.
// Both ends show a certificate of the same authority (mutual TLS, version 1.3 only); the role is
// read from it (URI name "flux:<role>"), so it cannot be claimed.
// Threads: any, after load(). Failure: kInvalid with the file's name and what to do.
#pragma once

#include <memory>
#include <string>

#include "flux/base/status.h"
#include "flux/rpc/service.h"
#include "flux/rpc/tls_session.h"

namespace flux {

class TlsContext {
 public:
  virtual ~TlsContext() = default;
  // `fd` is a connected, non-blocking socket that outlives the session.
  virtual std::unique_ptr<TlsSession> connect(int fd) = 0;
  virtual std::unique_ptr<TlsSession> accept(int fd) = 0;

  // Reads ca.pem, <role>.pem and <role>.key from the folder. A certificate that is out of date is
  // refused here, unless `any_date`.
  static Result<std::shared_ptr<TlsContext>> load(const std::string& folder, PeerRole role,
                                                  bool any_date = false);
};

}  // namespace flux
