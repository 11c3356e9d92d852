// The service and its data path: pull and push.
#include "flux/server/server_service.h"

#include <utility>

#include "flux/client/message_answer.h"
#include "flux/server/service_state.h"

namespace flux {

ServerService::ServerService(ServerJobs* jobs, ServerServiceOptions options)
    : state_(std::make_shared<State>(jobs, std::move(options))) {}

ServerService::~ServerService() {
  state_->stop();
}

bool ServerService::allows(PeerRole role, Verb verb) const {
  return verb_allowed(VerbHome::kServer, caller_role(role), verb);
}

void ServerService::handle(RpcRequest request, Responder respond) {
  switch (static_cast<ApiVerb>(request.verb)) {
    case ApiVerb::kPull:
      return state_->pull(request, std::move(respond));
    case ApiVerb::kPush:
      return state_->push(request, std::move(respond));
    default:
      return state_->admin(request, std::move(respond));
  }
}

ServerService::State::State(ServerJobs* jobs, ServerServiceOptions options)
    : jobs_(jobs), options_(std::move(options)) {
  if (!options_.slow) own_ = std::make_unique<SlowThread>();
}

Result<std::shared_ptr<ServedJob>> ServerService::State::find(uint64_t incarnation) {
  {
    const std::shared_lock lock(served_mutex_);
    const auto at = served_.find(incarnation);
    if (at != served_.end()) return at->second;
  }
  // Found and kept under one lock: forget_closed() comes before both or after both.
  const std::lock_guard lock(served_mutex_);
  FLUX_ASSIGN_OR_RETURN(auto job, jobs_->find(incarnation));
  auto served = std::make_shared<ServedJob>();
  const ServerOptions& options = job->server()->options();
  served->shape = {options.shards, {}, options.parameters};
  for (const TableOptions& table : options.tables) served->shape.dims.push_back(table.dim);
  served->job = std::move(job);
  return served_.try_emplace(incarnation, std::move(served)).first->second;
}

void ServerService::State::forget_closed() {
  constexpr size_t kClosedMax = 256;
  const std::lock_guard lock(served_mutex_);
  for (auto at = served_.begin(); at != served_.end();) {
    if (jobs_->find(at->first).is_ok()) {
      ++at;
      continue;
    }
    closed_.push_back(at->first);
    if (closed_.size() > kClosedMax) closed_.pop_front();
    at = served_.erase(at);
  }
}

void ServerService::State::pull(const RpcRequest& request, Responder respond) {
  std::shared_ptr<ServedJob> job;
  const auto shape_of = [&](uint64_t incarnation) -> const ModelShape* {
    auto found = find(incarnation);
    if (!found.is_ok()) return nullptr;
    job = std::move(found).value();
    return &job->shape;
  };
  auto work = pulls_.take();
  const Status status = decode_pull(request.control, request.payload, shape_of, &work->wire);
  if (!status.is_ok()) return respond.fail(status);
  job->bytes_in.fetch_add(request.control.size() + request.payload.size(),
                          std::memory_order_relaxed);
  work->floats.resize_discard(work->wire.float_bytes());
  work->wire.write_to(work->floats.data());
  // The request's memory holds the keys until the rows are there.
  const auto done = [work, job, memory = request.memory,
                     answer = std::make_shared<Responder>(std::move(respond))](const PullReply& r) {
    if (!r.status.is_ok()) return answer->fail(r.status);
    RpcAnswer reply;
    if (work->wire.value == WireValue::kFp32) {
      reply.payload = {std::as_bytes(work->floats.span())};
    } else {
      work->packed.resize_discard(work->wire.reply_bytes());
      work->wire.pack(work->floats.data(), work->packed.data());
      reply.payload = {std::as_bytes(work->packed.span())};
    }
    reply.memory = work;
    job->bytes_out.fetch_add(work->wire.reply_bytes(), std::memory_order_relaxed);
    answer->reply(std::move(reply));
  };
  data_of(*job)->pull(work->wire.request, done);
}

void ServerService::State::push(const RpcRequest& request, Responder respond) {
  std::shared_ptr<ServedJob> job;
  const auto shape_of = [&](uint64_t incarnation) -> const ModelShape* {
    auto found = find(incarnation);
    if (!found.is_ok()) return nullptr;
    job = std::move(found).value();
    return &job->shape;
  };
  auto work = pushes_.take();
  const Status status = decode_push(request.control, request.payload, shape_of, work.get());
  if (!status.is_ok()) return respond.fail(status);
  job->bytes_in.fetch_add(request.control.size() + request.payload.size(),
                          std::memory_order_relaxed);
  // In sync mode the answer comes when the step is poured; until then the gradients lie in the
  // request's memory (or in `work`, if they were converted).
  const auto done = [work, job, memory = request.memory,
                     answer = std::make_shared<Responder>(std::move(respond))](const PushReply& r) {
    std::string control = encode_push_reply(r);
    job->bytes_out.fetch_add(control.size(), std::memory_order_relaxed);
    answer->reply(message_answer(std::move(control)));
  };
  data_of(*job)->push(work->request, done);
}

}  // namespace flux
