// Channel: typed-by-number calls to one peer. Carries bytes; never learns a verb.
//
// A message is a small control part (protobuf, made above) and a payload of raw spans (keys, rows,
// gradients) that no layer copies: they are gathered from the caller's memory when sent, and a
// reply's payload is scattered into memory that the caller names once its size is known.
// Implementations: sockets (rpc/socket_channel.h), straight calls (testing), a simulated network.
// Threads: one owner, the thread of the channel's executor; `done` runs there, never inside call().
// Failure: kUnavailable when the peer cannot be reached, the connection broke or the time is over;
// else the peer's own Status. Whatever happens, `done` is called exactly once, and only when nobody
// touches the call's payload or placed memory any more. The one exception: destroying the channel
// ends its calls at once; their `done` is destroyed uncalled, and their memory is free.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "flux/base/executor.h"
#include "flux/base/status.h"

namespace flux {

using Verb = uint16_t;
using ByteSpan = std::span<const std::byte>;
using MutableByteSpan = std::span<std::byte>;

// What came back. `payload` is empty if the caller placed it elsewhere; else it is 64-byte aligned
// memory that `memory` keeps alive.
struct RpcReply {
  std::string control;
  ByteSpan payload;
  std::shared_ptr<const void> memory;
  bool answered = false;  // the peer said it, good or bad: it can be reached
};

// Called once when the head of a reply is here: spans that add up to `bytes`, or a failure (the
// payload is then read and thrown away, and the call fails with it).
using PlacePayload =
    std::function<Result<std::vector<MutableByteSpan>>(std::string_view control, uint64_t bytes)>;

struct RpcCall {
  Verb verb = 0;
  std::string control;
  std::vector<ByteSpan> payload;  // untouched by the caller until `done`
  bool checks_itself = false;     // hashes in `control` cover the payload: frames need no other
  TimeNs timeout_ns = 10 * kSecond;
  PlacePayload place;  // empty: the reply's payload goes to memory of its own
  std::function<void(Status, RpcReply)> done;
};

class Channel {
 public:
  virtual ~Channel() = default;
  // Connects on first use and again after a break; a call waits for that within its own time, but
  // not for a peer that cannot be reached.
  // Returns a number for cancel().
  virtual uint64_t call(RpcCall call) = 0;
  // Ends the call with kCancelled, soon; unknown numbers are ignored.
  virtual void cancel(uint64_t id) = 0;
  // For people: "tcp:10.0.0.2:7000".
  virtual std::string peer() const = 0;
};

}  // namespace flux
