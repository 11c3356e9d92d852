// Service: the receiving end of channels. One request in, one answer out, in any order.
//
// Threads: handle() runs on the thread of the connection that brought the request; requests of one
// connection are handled in the order they came, those of others at the same time. A Responder may
// be used from any thread, once; dropped unused it answers kUnavailable, so that nobody waits for
// ever. Failure: fail() sends a Status; the caller sees its code and message.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "flux/base/status.h"
#include "flux/rpc/channel.h"

namespace flux {

// Who is at the other end, as proved by its certificate or token.
enum class PeerRole : uint8_t { kAdmin = 0, kCoordinator, kServer, kWorker, kViewer };
constexpr uint32_t kPeerRoles = 5;
const char* peer_role_name(PeerRole role);

struct RpcRequest {
  Verb verb = 0;
  PeerRole role = PeerRole::kWorker;
  std::string peer;         // address, for messages
  uint64_t connection = 0;  // the same for all requests of one connection, never used again
  std::string_view control;
  ByteSpan payload;                    // 64-byte aligned
  std::shared_ptr<const void> memory;  // keeps control and payload alive; hold it to go on later
};

struct RpcAnswer {
  std::string control;
  std::vector<ByteSpan> payload;
  std::shared_ptr<const void> memory;  // keeps the payload alive until it is sent
};

class Responder {
 public:
  using Send = std::function<void(Status, RpcAnswer)>;
  Responder() = default;
  explicit Responder(Send send) : send_(std::move(send)) {}
  Responder(Responder&& other) noexcept : send_(std::exchange(other.send_, nullptr)) {}
  Responder& operator=(Responder&& other) noexcept {
    drop();
    send_ = std::exchange(other.send_, nullptr);
    return *this;
  }
  Responder(const Responder&) = delete;
  Responder& operator=(const Responder&) = delete;
  ~Responder() { drop(); }

  void reply(RpcAnswer answer) { take()(Status::ok(), std::move(answer)); }
  void fail(Status status) { take()(std::move(status), {}); }

 private:
  Send take() {
    FLUX_CHECK(send_ != nullptr, "a request is answered once");
    return std::exchange(send_, nullptr);
  }
  void drop() {
    if (send_) take()(Status(Code::kUnavailable, "the request was dropped without an answer"), {});
  }
  Send send_;
};

class Service {
 public:
  virtual ~Service() = default;
  // Whether this role may use this verb; asked before handle(). Closed by default.
  virtual bool allows(PeerRole role, Verb verb) const = 0;
  virtual void handle(RpcRequest request, Responder respond) = 0;
  // The connection is gone (nothing more will come of it). Same thread as its requests.
  virtual void closed(uint64_t connection) { (void)connection; }
};

// kInvalid "role worker may not use verb 23" unless the service allows it.
Status check_allowed(const Service& service, PeerRole role, Verb verb);

}  // namespace flux
