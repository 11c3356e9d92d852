// TlsSession: TLS 1.3 over one non-blocking socket, one record layer for Transport.
// Private to rpc/. Threads: one. Failure: see Transport.
#pragma once

#include <memory>
#include <span>

#include <sys/uio.h>

#include "flux/base/status.h"
#include "flux/rpc/service.h"
#include "flux/rpc/transport.h"

namespace flux {

class TlsSession {
 public:
  virtual ~TlsSession() = default;
  virtual IoResult handshake(Status* failure) = 0;
  virtual IoResult read(std::span<const iovec> parts, Status* failure) = 0;
  virtual IoResult write(std::span<const iovec> parts, Status* failure) = 0;
  virtual size_t promised() const = 0;
  virtual uint64_t take_copied() = 0;
  // The peer's first bytes were those of a frame.
  virtual bool peer_is_plain() const = 0;
  // The role in the peer's certificate, after the handshake.
  virtual Result<PeerRole> peer_role() const = 0;
};

}  // namespace flux
