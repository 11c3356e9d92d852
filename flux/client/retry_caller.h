// RetryCaller: calls over a Channel that are asked again until somebody answers or time is over.
//
// Only for calls that the other end may get twice: each is idempotent or known again there. A call
// that ends with kUnavailable is repeated, byte for byte the same, after a pause that doubles (with
// some randomness, so that many callers do not come at once), until the deadline of the whole call.
// Threads: one owner, that of the channel's executor; `done` runs there, once, never inside call().
// Ownership: channel and executor outlive it. Destroyed with calls under way, it cancels them and
// their `done` is never called. Failure: the peer's Status; at the deadline kUnavailable with who
// did not answer what for how long, and the last reason.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "flux/api/verbs.h"
#include "flux/api/wire_message.h"
#include "flux/base/executor.h"
#include "flux/base/status.h"
#include "flux/rpc/channel.h"

namespace flux {

// With a quarter of the requests and a quarter of the replies lost, 4 of 9 tries fail: twenty tries
// within the deadline make that a failed call in 10 million.
struct RetryOptions {
  TimeNs try_timeout_ns = kSecond;      // one request
  TimeNs deadline_ns = 30 * kSecond;    // the whole call
  TimeNs pause_ns = 20 * kMillisecond;  // before the first repeat
  TimeNs pause_max_ns = 200 * kMillisecond;
  uint32_t tries_max = 0;  // 0: as many as the deadline allows
};

class RetryCaller {
 public:
  // `seed`: of the randomness of pauses; a process takes a random one, a simulator its own.
  RetryCaller(Channel* channel, Executor* executor, uint64_t seed);
  ~RetryCaller();

  using Done = std::function<void(Status status, std::string_view reply)>;
  void call_bytes(ApiVerb verb, std::string message, const RetryOptions& options, Done done);

  template <typename Reply, typename Request>
  void call(ApiVerb verb, const Request& request, const RetryOptions& options,
            std::function<void(Result<Reply>)> done) {
    call_bytes(verb, encode_message(request), options,
               [done = std::move(done)](Status status, std::string_view bytes) {
                 Reply reply;
                 if (status.is_ok()) status = decode_message(bytes, &reply);
                 if (status.is_ok())
                   done(std::move(reply));
                 else
                   done(std::move(status));
               });
  }
  // For verbs that answer nothing but that it is done.
  template <typename Request>
  void call_plain(ApiVerb verb, const Request& request, const RetryOptions& options,
                  std::function<void(Status)> done) {
    call_bytes(
        verb, encode_message(request), options,
        [done = std::move(done)](Status status, std::string_view) { done(std::move(status)); });
  }

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace flux
