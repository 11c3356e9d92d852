// Transport: non-blocking scatter and gather on one connected socket, plain or through TLS.
// Says what it waits for instead of waiting. Does not own the descriptor.
// Threads: one. Failure: kEnd when the peer has closed, kFailed with failure() for the rest.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include <sys/uio.h>

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
  // Of the last kFailed.
  const std::string& failure() const { return failure_; }

 private:
  IoResult outcome_of(ssize_t moved, std::span<const iovec> parts, IoOutcome again);
  int fd_;
  std::unique_ptr<TlsSession> tls_;
  std::string failure_;
};

}  // namespace flux
