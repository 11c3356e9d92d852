// Transport: non-blocking scatter and gather on one connected socket, plain or through TLS.
// Says what it waits for instead of waiting. Does not own the descriptor.
// Threads: one. Failure: kEnd when the peer has closed, kFailed with failure() for the rest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include <sys/uio.h>

#include "flux/base/status.h"

namespace flux {

class TlsSession;

enum class IoOutcome : unsigned char { kBytes, kWantRead, kWantWrite, kEnd, kFailed };

struct IoResult {
  IoOutcome outcome = IoOutcome::kFailed;
  size_t bytes = 0;
  bool drained = false;  // nothing more can be moved now: wait before the next try
};

class Transport {
 public:
  explicit Transport(int fd);
  Transport(int fd, std::unique_ptr<TlsSession> tls);
  ~Transport();
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  bool is_tls() const { return tls_ != nullptr; }
  TlsSession* tls() { return tls_.get(); }
  // TLS only: kBytes when the handshake is over. Plain: kBytes at once.
  IoResult handshake();
  IoResult read(std::span<const iovec> parts);
  IoResult write(std::span<const iovec> parts);
  // Of the last kFailed: kUnavailable, or kInvalid if TLS and not the network is at fault.
  const Status& failure() const { return failure_; }
  // TLS only: so many of the next bytes are on their way already and cannot be taken back.
  size_t promised() const;
  // TLS only: payload bytes that were copied into records since the last time.
  uint64_t take_copied();
  // After a failed TLS handshake with a peer that does not use TLS: go on without. False: it does.
  bool fall_back_to_plain();

 private:
  IoResult outcome_of(ssize_t moved, std::span<const iovec> parts, IoOutcome again);
  int fd_;
  std::unique_ptr<TlsSession> tls_;
  Status failure_;
};

}  // namespace flux
