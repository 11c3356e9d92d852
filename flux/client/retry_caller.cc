#include "flux/client/retry_caller.h"

#include <algorithm>
#include <map>

#include "flux/base/random.h"

namespace flux {

struct RetryCaller::State : std::enable_shared_from_this<State> {
  struct Call {
    ApiVerb verb{};
    std::shared_ptr<const std::string> message;
    RetryOptions options;
    Done done;
    TimeNs begun = 0;
    TimeNs pause = 0;
    uint32_t tries = 0;
    uint64_t channel_call = 0;  // 0: pausing
  };

  State(Channel* c, Executor* e, uint64_t seed) : channel(c), executor(e), random(seed) {}

  void attempt(uint64_t id) {
    const auto at = calls.find(id);
    if (at == calls.end()) return;
    Call& call = at->second;
    const TimeNs left = call.begun + call.options.deadline_ns - executor->now_ns();
    RpcCall rpc;
    rpc.verb = static_cast<Verb>(call.verb);
    if (call.message->size() <= kControlBytesMax)
      rpc.control = *call.message;
    else
      rpc.payload.push_back(std::as_bytes(std::span(call.message->data(), call.message->size())));
    rpc.timeout_ns = std::max<TimeNs>(kMillisecond, std::min(call.options.try_timeout_ns, left));
    // The channel may read a long message until it calls `done`, which therefore keeps it.
    rpc.done = [weak = weak_from_this(), id, message = call.message](Status status,
                                                                     const RpcReply& reply) {
      if (const auto state = weak.lock()) state->answered(id, std::move(status), reply);
    };
    ++call.tries;
    call.channel_call = channel->call(std::move(rpc));
  }

  void answered(uint64_t id, Status status, const RpcReply& reply) {
    const auto at = calls.find(id);
    if (at == calls.end()) return;
    Call& call = at->second;
    call.channel_call = 0;
    if (status.code() != Code::kUnavailable)
      return finish(id, std::move(status), message_bytes(reply.control, reply.payload));
    const TimeNs now = executor->now_ns();
    const auto wait =
        static_cast<TimeNs>(static_cast<double>(call.pause) * (0.5 + random.uniform() * 0.5));
    call.pause = std::min(call.pause * 2, call.options.pause_max_ns);
    const bool enough = call.options.tries_max != 0 && call.tries >= call.options.tries_max;
    if (enough || now + wait >= call.begun + call.options.deadline_ns) {
      return finish(
          id,
          error(Code::kUnavailable, "{} at {}: no answer for {:.1f} s, asked {} times: {}",
                verb_name(call.verb), channel->peer(),
                static_cast<double>(now - call.begun) / kSecond, call.tries, status.message()),
          {});
    }
    executor->post(wait, [weak = weak_from_this(), id] {
      if (const auto state = weak.lock()) state->attempt(id);
    });
  }

  void finish(uint64_t id, Status status, std::string_view reply) {
    auto node = calls.extract(id);
    node.mapped().done(std::move(status), reply);
  }

  Channel* channel;
  Executor* executor;
  Random random;
  std::map<uint64_t, Call> calls;
  uint64_t last = 0;
};

RetryCaller::RetryCaller(Channel* channel, Executor* executor, uint64_t seed)
    : state_(std::make_shared<State>(channel, executor, seed)) {}

RetryCaller::~RetryCaller() {
  for (auto& [id, call] : state_->calls)
    if (call.channel_call != 0) state_->channel->cancel(call.channel_call);
}

void RetryCaller::call_bytes(ApiVerb verb, std::string message, const RetryOptions& options,
                             Done done) {
  const uint64_t id = ++state_->last;
  State::Call call;
  call.verb = verb;
  call.message = std::make_shared<const std::string>(std::move(message));
  call.options = options;
  call.done = std::move(done);
  call.begun = state_->executor->now_ns();
  call.pause = options.pause_ns;
  state_->calls.emplace(id, std::move(call));
  state_->attempt(id);
}

}  // namespace flux
