// RemoteServer: the ServerPort of a worker over a Channel to one server. One try per call.
//
// Nothing is copied: keys and gradients are gathered from the caller's arrays when they are sent,
// and a reply's rows go straight to where the caller wants them. With fp16 or bf16 on the wire they
// pass through memory of this object instead, converted on the way.
// pull(): `done` gets the Status; kUnavailable: ask again. push(): a failure of the connection or
// the time is answered with that status and no answers (PushSession sends again); answers carry the
// epochs that were sent; a server that does not know the incarnation answers "stale incarnation"
// for every shard, and one that cannot read the request "malformed": both end the session. `done`
// is always called once, and only then are the caller's arrays free: a caller that got its
// acknowledgement through a second try must still wait for the first one's `done`. Threads: the
// channel's executor. Ownership: the channel outlives this object; destroyed with calls under way,
// it cancels them and their `done` is never called: the arrays must then live until the channel is
// gone.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "flux/api/server.h"
#include "flux/api/wire_data.h"
#include "flux/base/executor.h"
#include "flux/rpc/channel.h"

namespace flux {

struct RemoteServerOptions {
  WireValue value = WireValue::kFp32;
  TimeNs pull_timeout_ns = 10 * kSecond;
  TimeNs push_timeout_ns = 10 * kSecond;
  // A confirm waits at the server for the backups; who gets kUnavailable asks again.
  TimeNs confirm_timeout_ns = 2 * kSecond;
};

// Bytes of control parts and payloads so far.
struct RemoteTraffic {
  uint64_t sent = 0;
  uint64_t received = 0;
};

class RemoteServer final : public ServerPort {
 public:
  RemoteServer(Channel* channel, ModelShape shape, RemoteServerOptions options = {});
  ~RemoteServer() override;

  void pull(const PullRequest& request, std::function<void(const PullReply&)> done) override;
  void push(const PushRequest& request, std::function<void(const PushReply&)> done) override;
  void confirm(uint64_t incarnation, uint64_t receipt, std::function<void(Status)> done) override;
  const RemoteTraffic& traffic() const;

 private:
  struct State;
  struct Pull;
  struct Push;
  std::shared_ptr<State> state_;
};

}  // namespace flux
