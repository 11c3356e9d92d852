// RpcCounters: what went through one channel or listener since it was made.
// A plain value; AtomicRpcCounters is what it is read from: one thread adds, any thread reads.
#pragma once

#include <atomic>
#include <cstdint>

namespace flux {

struct RpcCounters {
  uint64_t frames_in = 0;
  uint64_t frames_out = 0;
  uint64_t bytes_in = 0;
  uint64_t bytes_out = 0;
  uint64_t payload_bytes_copied = 0;  // by this layer; 0 on sockets without TLS
  uint64_t connections = 0;           // made or taken
  uint64_t refused = 0;               // handshakes or connections that were turned away
};

struct AtomicRpcCounters {
  std::atomic<uint64_t> frames_in{0}, frames_out{0}, bytes_in{0}, bytes_out{0};
  std::atomic<uint64_t> payload_bytes_copied{0}, connections{0}, refused{0};

  // For the one thread that writes this counter: no locked instruction.
  static void add(std::atomic<uint64_t>& counter, uint64_t n) {
    counter.store(counter.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }
  void add_to(RpcCounters* sum) const {
    sum->frames_in += frames_in.load(std::memory_order_relaxed);
    sum->frames_out += frames_out.load(std::memory_order_relaxed);
    sum->bytes_in += bytes_in.load(std::memory_order_relaxed);
    sum->bytes_out += bytes_out.load(std::memory_order_relaxed);
    sum->payload_bytes_copied += payload_bytes_copied.load(std::memory_order_relaxed);
    sum->connections += connections.load(std::memory_order_relaxed);
    sum->refused += refused.load(std::memory_order_relaxed);
  }
};

}  // namespace flux
