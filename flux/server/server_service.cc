// The service and its data path: pull, push, confirm, and what other servers send.
#include "flux/server/server_service.h"

#include <utility>

#include "flux/client/message_answer.h"
#include "flux/server/service_state.h"

namespace flux {

ServerService::ServerService(ServerJobs* jobs, ServerServiceOptions options)
    : state_(std::make_shared<State>(jobs, std::move(options))) {}

ServerService::~ServerService() {
  stop();
}

void ServerService::stop() {
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
    case ApiVerb::kConfirm:
      return state_->confirm(request, std::move(respond));
    case ApiVerb::kReplicate:
      return state_->replicate(request, std::move(respond));
    case ApiVerb::kInstall:
      return state_->install(request, std::move(respond));
    default:
      return state_->admin(request, std::move(respond));
  }
}

void ServerService::set_boot(uint64_t boot) {
  state_->set_boot(boot);
}

void ServerService::forget_all() {
  state_->forget_all();
}

std::shared_ptr<const ModelShape> ServerService::shape_of(uint64_t incarnation) const {
  return state_->shape_of(incarnation);
}

ServerService::State::State(ServerJobs* jobs, ServerServiceOptions options)
    : jobs_(jobs), options_(std::move(options)) {
  if (options_.slow) return;
  for (auto& thread : own_) thread = std::make_unique<SlowThread>();
}

bool ServerService::State::run_later(Lane lane, std::function<void()> task) {
  return own_[lane] ? own_[lane]->run(std::move(task)) : options_.slow(std::move(task));
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
  served->shape = job->server()->shape();
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

void ServerService::State::forget_all() {
  jobs_->forget_all();
  const std::lock_guard lock(served_mutex_);
  served_.clear();
  closed_.clear();
}

std::shared_ptr<const ModelShape> ServerService::State::shape_of(uint64_t incarnation) {
  const auto job = find(incarnation);
  if (!job.is_ok()) return nullptr;
  return {job.value(), &job.value()->shape};
}

namespace {

// Keeps the memory of a request and what was decoded from it for as long as anybody holds it.
template <typename Work>
std::shared_ptr<const void> keep(std::shared_ptr<Work> work, std::shared_ptr<const void> memory) {
  const void* at = work.get();
  return {at, [work = std::move(work), memory = std::move(memory)](const void*) {}};
}

}  // namespace

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
    reply.control = encode_pull_mark(r.mark);
    if (work->wire.value == WireValue::kFp32) {
      reply.payload = {std::as_bytes(work->floats.span())};
    } else {
      work->packed.resize_discard(work->wire.reply_bytes());
      work->wire.pack(work->floats.data(), work->packed.data());
      reply.payload = {std::as_bytes(work->packed.span())};
    }
    reply.memory = work;
    job->bytes_out.fetch_add(reply.control.size() + work->wire.reply_bytes(),
                             std::memory_order_relaxed);
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
  // The gradients lie in the request's memory (or in `work`, if they were converted). In sync mode
  // the answer comes when the step is poured, and what is forwarded is needed longer still.
  PushRequest push = std::move(work->request);
  push.memory = keep(work, request.memory);
  const auto done = [job, memory = push.memory,
                     answer = std::make_shared<Responder>(std::move(respond))](const PushReply& r) {
    if (!r.status.is_ok()) return answer->fail(r.status);
    std::string control = encode_push_reply(r);
    job->bytes_out.fetch_add(control.size(), std::memory_order_relaxed);
    answer->reply(message_answer(std::move(control)));
  };
  data_of(*job)->push(push, done);
}

void ServerService::State::confirm(const RpcRequest& request, Responder respond) {
  ConfirmRequest ask;
  const Status status = decode_message(request.control, &ask);
  if (!status.is_ok()) return respond.fail(status);
  const auto job = find(ask.incarnation);
  if (!job.is_ok()) return respond.fail(job.status());
  const auto done = [answer = std::make_shared<Responder>(std::move(respond))](Status status) {
    if (status.is_ok())
      answer->reply({});
    else
      answer->fail(std::move(status));
  };
  data_of(*job.value())->confirm(ask.incarnation, ask.receipt, done);
}

void ServerService::State::replicate(const RpcRequest& request, Responder respond) {
  std::shared_ptr<ServedJob> job;
  const auto shape_of = [&](uint64_t incarnation) -> const ModelShape* {
    auto found = find(incarnation);
    if (!found.is_ok()) return nullptr;
    job = std::move(found).value();
    return &job->shape;
  };
  auto work = forwards_.take();
  const Status status = decode_replicate(request.control, request.payload, shape_of, work.get());
  if (!status.is_ok()) return respond.fail(status);
  job->bytes_in.fetch_add(request.control.size() + request.payload.size(),
                          std::memory_order_relaxed);
  ReplicateRequest forward = std::move(work->request);
  forward.push.memory = keep(work, request.memory);
  const auto done = [memory = forward.push.memory,
                     answer =
                         std::make_shared<Responder>(std::move(respond))](const ReplicateReply& r) {
    if (!r.status.is_ok()) return answer->fail(r.status);
    answer->reply(message_answer(encode_replicate_reply(r)));
  };
  job->job->server()->replicate(forward, done);
}

void ServerService::State::install(const RpcRequest& request, Responder respond) {
  InstallRequest part;
  const Status status = decode_install(request.control, request.payload, &part);
  if (!status.is_ok()) return respond.fail(status);
  const auto job = find(part.incarnation);
  if (!job.is_ok()) return respond.fail(job.status());
  const auto answer = std::make_shared<Responder>(std::move(respond));
  const bool taken =
      run_later(kInstalling, [job = job.value(), part, memory = request.memory, answer] {
        job->job->server()->install(part, [memory, answer](Status done) {
          if (done.is_ok())
            answer->reply({});
          else
            answer->fail(std::move(done));
        });
      });
  if (!taken)
    answer->fail(Status(Code::kUnavailable, "too many parts of copies wait here; ask again"));
}

}  // namespace flux
