// BufferPool: memory of messages, used again when the last holder lets go, so that a 2 MB request
// per batch costs no page faults. Keeps a few buffers and a bounded number of bytes; the rest is
// freed. Threads: take() by one; the memory may be let go from any thread, also after the pool.
#pragma once

#include <cstdint>
#include <memory>

#include "flux/rpc/payload.h"

namespace flux {

class BufferPool {
 public:
  explicit BufferPool(size_t buffers_max = 8, uint64_t bytes_max = 64U << 20U);
  // Control and payload have these sizes and undefined contents.
  std::shared_ptr<PayloadMemory> take(uint32_t control_bytes, uint64_t payload_bytes);
  // How many buffers had to be allocated, for tests.
  uint64_t allocated() const;

 private:
  struct Shelf;
  std::shared_ptr<Shelf> shelf_;
};

}  // namespace flux
