// TlsSession: TLS 1.3 over one non-blocking socket, one record layer for Transport.
// Private to rpc/. Threads: one. Failure: see Transport.
#pragma once

#include <memory>
#include <span>
#include <string>

#include <sys/uio.h>

#include "flux/base/status.h"
#include "flux/rpc/service.h"
#include "flux/rpc/transport.h"

namespace flux {

class TlsSession {
 public:
  virtual ~TlsSession() = default;
  virtual IoResult handshake(std::string* failure) = 0;
  virtual IoResult read(std::span<const iovec> parts, std::string* failure) = 0;
  virtual IoResult write(std::span<const iovec> parts, std::string* failure) = 0;
  // The role in the peer's certificate, after the handshake.
  virtual Result<PeerRole> peer_role() const = 0;
};

}  // namespace flux
