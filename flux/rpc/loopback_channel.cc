#include "flux/rpc/loopback_channel.h"

#include <unordered_map>
#include <utility>

#include "flux/rpc/payload.h"

namespace flux {

struct LoopbackChannel::State {
  Executor& executor;
  Service& service;
  LoopbackOptions options;
  std::unordered_map<uint64_t, RpcCall> calls;
  uint64_t last_id = 0;

  void finish(uint64_t id, Status status, RpcReply reply) {
    const auto it = calls.find(id);
    if (it == calls.end()) return;
    RpcCall call = std::move(it->second);
    calls.erase(it);
    if (call.done) call.done(std::move(status), std::move(reply));
  }

  void deliver(uint64_t id, Status status, const RpcAnswer& answer) {
    const auto it = calls.find(id);
    if (it == calls.end()) return;
    RpcReply reply;
    reply.answered = true;
    if (status.is_ok()) status = take_payload(it->second, answer, &reply);
    finish(id, std::move(status), std::move(reply));
  }

  static Status take_payload(const RpcCall& call, const RpcAnswer& answer, RpcReply* reply) {
    reply->control = answer.control;
    const uint64_t bytes = total_bytes(answer.payload);
    if (call.place) {
      FLUX_ASSIGN_OR_RETURN(const auto spans, call.place(answer.control, bytes));
      FLUX_RETURN_IF_ERROR(check_placed(spans, bytes));
      copy_spans(answer.payload, spans);
      return Status::ok();
    }
    auto memory = std::make_shared<PayloadMemory>();
    memory->payload.resize_discard(bytes);
    gather(answer.payload, memory->payload.data());
    reply->payload = memory->payload.span();
    reply->memory = std::move(memory);
    return Status::ok();
  }
};

namespace {

RpcRequest make_request(const RpcCall& call, const LoopbackOptions& options) {
  auto memory = std::make_shared<PayloadMemory>();
  memory->control = call.control;
  memory->payload.resize_discard(total_bytes(call.payload));
  gather(call.payload, memory->payload.data());
  RpcRequest request;
  request.verb = call.verb;
  request.role = options.role;
  request.peer = options.name;
  request.connection = options.connection;
  request.control = memory->control;
  request.payload = memory->payload.span();
  request.memory = std::move(memory);
  return request;
}

}  // namespace

LoopbackChannel::LoopbackChannel(Executor& executor, Service& service, LoopbackOptions options)
    : state_(std::make_shared<State>(State{executor, service, std::move(options), {}, 0})) {}

LoopbackChannel::~LoopbackChannel() {
  Service& service = state_->service;
  const uint64_t connection = state_->options.connection;
  const auto calls = std::move(state_->calls);
  state_.reset();
  service.closed(connection);
}

uint64_t LoopbackChannel::call(RpcCall call) {
  State& s = *state_;
  const uint64_t id = ++s.last_id;
  const std::weak_ptr<State> weak = state_;
  s.executor.post(0, [weak, id, request = make_request(call, s.options)]() mutable {
    const auto state = weak.lock();
    if (!state || !state->calls.contains(id)) return;
    const Status allowed = check_allowed(state->service, request.role, request.verb);
    if (!allowed.is_ok()) return state->finish(id, allowed, {});
    state->service.handle(std::move(request),
                          Responder([weak, id](Status status, RpcAnswer answer) {
                            const auto state = weak.lock();
                            if (!state) return;
                            state->executor.post(0, [weak, id, status, answer = std::move(answer)] {
                              if (const auto state = weak.lock())
                                state->deliver(id, status, answer);
                            });
                          }));
  });
  s.executor.post(call.timeout_ns, [weak, id] {
    const auto state = weak.lock();
    if (!state || !state->calls.contains(id)) return;
    const RpcCall& call = state->calls.at(id);
    state->finish(id,
                  error(Code::kUnavailable, "{}: verb {} was not answered within {} ms",
                        state->options.name, call.verb, call.timeout_ns / kMillisecond),
                  {});
  });
  s.calls.emplace(id, std::move(call));
  return id;
}

void LoopbackChannel::cancel(uint64_t id) {
  state_->executor.post(0, [weak = std::weak_ptr<State>(state_), id] {
    if (const auto state = weak.lock())
      state->finish(id, Status(Code::kCancelled, "the call was cancelled"), {});
  });
}

std::string LoopbackChannel::peer() const {
  return state_->options.name;
}

}  // namespace flux
