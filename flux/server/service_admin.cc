// The service's verbs for a coordinator.
#include <algorithm>
#include <utility>

#include "flux/client/message_answer.h"
#include "flux/server/service_state.h"

namespace flux {
namespace {

Result<std::string> done(const Status& status) {
  if (!status.is_ok()) return status;
  return encode_message(EmptyMessage{});
}

bool is_slow(ApiVerb verb) {
  return verb == ApiVerb::kOpenJob || verb == ApiVerb::kLoad || verb == ApiVerb::kSave ||
         verb == ApiVerb::kTotals;
}

void send(Responder* respond, Result<std::string> answer) {
  if (answer.is_ok())
    respond->reply(message_answer(std::move(answer).value()));
  else
    respond->fail(answer.status());
}

}  // namespace

void ServerService::State::admin(const RpcRequest& request, Responder respond) {
  const auto verb = static_cast<ApiVerb>(request.verb);
  const std::string_view message = message_bytes(request.control, request.payload);
  if (is_slow(verb)) return slow(verb, std::string(message), std::move(respond));
  send(&respond, do_quick(verb, message));
}

ServerService::State::Answer ServerService::State::do_quick(ApiVerb verb,
                                                            std::string_view message) {
  const auto with_job = [&](auto request, auto act) -> Answer {
    FLUX_RETURN_IF_ERROR(decode_message(message, &request));
    FLUX_ASSIGN_OR_RETURN(const auto served, find(request.incarnation));
    return act(request, served->job.get());
  };
  switch (verb) {
    case ApiVerb::kOpenPass:
      return with_job(OpenPassRequest{}, [](const OpenPassRequest& r, JobNamespace* job) {
        return done(job->open_pass(r.pass, r.geometry));
      });
    case ApiVerb::kCloseBelow:
      return with_job(CloseBelowRequest{}, [](const CloseBelowRequest& r, JobNamespace* job) {
        return done(job->close_below(r.pass));
      });
    case ApiVerb::kMarked:
      return with_job(MarkedRequest{}, [](const MarkedRequest& r, JobNamespace* job) -> Answer {
        FLUX_ASSIGN_OR_RETURN(auto masks, job->marked(r.section, r.blocks, r.any));
        return encode_message(MarkedReply{std::move(masks)});
      });
    case ApiVerb::kMark:
      return with_job(MarkRequest{}, [](const MarkRequest& r, JobNamespace* job) {
        return done(job->mark(r.geometry, r.ids, r.verdict));
      });
    case ApiVerb::kVoidMember:
      return with_job(VoidMemberRequest{}, [](const VoidMemberRequest& r, JobNamespace* job) {
        return done(job->void_member(r.round, r.block));
      });
    case ApiVerb::kCloseJob: {
      CloseJobRequest request;
      FLUX_RETURN_IF_ERROR(decode_message(message, &request));
      (void)find(request.incarnation);  // so that it is known as closed, if it was open
      jobs_->close(request.incarnation);
      forget_closed();
      return done(Status::ok());
    }
    default:
      return invalid("verb {} is not one of a server", static_cast<unsigned>(verb));
  }
}

void ServerService::State::slow(ApiVerb verb, std::string message, Responder respond) {
  std::string key = std::to_string(static_cast<unsigned>(verb)) + ":" + message;
  auto mine = std::make_shared<Responder>(std::move(respond));
  bool is_new = false;
  {
    const std::lock_guard lock(slow_mutex_);
    SharedResponder& latest = under_way_[key];
    is_new = latest == nullptr;
    std::swap(latest, mine);
  }
  // The caller of the former try has given it up, but a Responder is always used.
  if (!is_new) return mine->fail(Status(Code::kUnavailable, "asked again while this is under way"));
  const auto task = [weak = weak_from_this(), verb, message = std::move(message), key] {
    const auto state = weak.lock();
    if (!state) return;
    Answer answer = state->do_slow(verb, message);
    const SharedResponder latest = state->end_of(key);
    send(latest.get(), std::move(answer));
  };
  const bool taken = own_ ? own_->run(task) : options_.slow(task);
  if (!taken)
    end_of(key)->fail(Status(Code::kUnavailable, "this server has too much to do; ask again"));
}

SharedResponder ServerService::State::end_of(const std::string& key) {
  const std::lock_guard lock(slow_mutex_);
  auto node = under_way_.extract(key);
  return std::move(node.mapped());
}

ServerService::State::Answer ServerService::State::do_slow(ApiVerb verb, std::string_view message) {
  switch (verb) {
    case ApiVerb::kOpenJob:
      return open_job(message);
    case ApiVerb::kSave:
      return save(message);
    case ApiVerb::kTotals:
      return totals(message);
    default: {
      LoadRequest request;
      FLUX_RETURN_IF_ERROR(decode_message(message, &request));
      FLUX_ASSIGN_OR_RETURN(const auto served, find(request.incarnation));
      return done(served->job->load(request.load));
    }
  }
}

ServerService::State::Answer ServerService::State::open_job(std::string_view message) {
  OpenJob request;
  FLUX_RETURN_IF_ERROR(decode_message(message, &request));
  {
    const std::shared_lock lock(served_mutex_);
    if (std::find(closed_.begin(), closed_.end(), request.incarnation) != closed_.end())
      return error(Code::kStale, "job '{}': this incarnation was closed here", request.name);
  }
  const Status status = jobs_->open(request);
  forget_closed();  // it may have taken the place of an older one
  if (status.is_ok()) (void)find(request.incarnation);
  return done(status);
}

ServerService::State::Answer ServerService::State::save(std::string_view message) {
  SaveRequest request;
  FLUX_RETURN_IF_ERROR(decode_message(message, &request));
  FLUX_ASSIGN_OR_RETURN(const auto served, find(request.incarnation));
  const std::lock_guard lock(served->save_mutex);
  if (served->saved && served->saved->folder == request.folder) {
    if (served->saved->number == request.number) return served->saved->answer;
    if (served->saved->number > request.number)
      return error(Code::kStale, "save of checkpoint {}: {} is written already", request.number,
                   served->saved->number);
  }
  FLUX_ASSIGN_OR_RETURN(auto shards, served->job->save(request.folder, request.number));
  std::string answer = encode_message(SaveReply{std::move(shards)});
  served->saved = {request.folder, request.number, answer};
  return answer;
}

ServerService::State::Answer ServerService::State::totals(std::string_view message) {
  TotalsRequest request;
  FLUX_RETURN_IF_ERROR(decode_message(message, &request));
  FLUX_ASSIGN_OR_RETURN(const auto served, find(request.incarnation));
  FLUX_ASSIGN_OR_RETURN(JobTotals totals, served->job->totals(request.rows, request.expected));
  totals.bytes_in = served->bytes_in.load(std::memory_order_relaxed);
  totals.bytes_out = served->bytes_out.load(std::memory_order_relaxed);
  return encode_message(totals);
}

}  // namespace flux
