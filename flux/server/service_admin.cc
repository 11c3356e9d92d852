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

void send(Responder* respond, Result<std::string> answer) {
  if (answer.is_ok())
    respond->reply(message_answer(std::move(answer).value()));
  else
    respond->fail(answer.status());
}

}  // namespace

bool ServerService::State::is_logged(ApiVerb verb) {
  return verb == ApiVerb::kOpenPass || verb == ApiVerb::kCloseBelow || verb == ApiVerb::kMark ||
         verb == ApiVerb::kMarked;
}

void ServerService::State::admin(const RpcRequest& request, Responder respond) {
  const auto verb = static_cast<ApiVerb>(request.verb);
  const std::string_view message = message_bytes(request.control, request.payload);
  switch (verb) {
    case ApiVerb::kOpenJob:
    case ApiVerb::kLoad:
    case ApiVerb::kTotals:
      return slow(verb, kOpening, std::string(message), std::move(respond));
    case ApiVerb::kSave:
      return slow(verb, kSaving, std::string(message), std::move(respond));
    case ApiVerb::kCopy:
      return slow(verb, kCopying, std::string(message), std::move(respond));
    default:
      break;
  }
  if (!is_logged(verb)) return send(&respond, do_quick(verb, message));
  const auto shared = std::make_shared<Responder>(std::move(respond));
  do_logged(verb, message, [shared](Answer answer) { send(shared.get(), std::move(answer)); });
}

ServerService::State::Answer ServerService::State::do_quick(ApiVerb verb,
                                                            std::string_view message) {
  const auto with_job = [&](auto request, auto act) -> Answer {
    FLUX_RETURN_IF_ERROR(decode_message(message, &request));
    FLUX_ASSIGN_OR_RETURN(const auto job, jobs_->admit(request.call));
    return act(request, job.get());
  };
  const auto states = [](Result<std::vector<ShardState>> states) -> Answer {
    if (!states.is_ok()) return states.status();
    return encode_message(StatesReply{std::move(states).value()});
  };
  switch (verb) {
    case ApiVerb::kAssign:
      return with_job(AssignRequest{}, [&](const AssignRequest& r, JobNamespace* job) {
        return states(job->assign(r.places));
      });
    case ApiVerb::kSeal:
      return with_job(SealRequest{}, [&](const SealRequest& r, JobNamespace* job) {
        return states(job->seal(r.call));
      });
    case ApiVerb::kHoldings: {
      HoldingsRequest request;
      FLUX_RETURN_IF_ERROR(decode_message(message, &request));
      FLUX_ASSIGN_OR_RETURN(const Holdings holdings, jobs_->holdings(request.name, request.term));
      return encode_message(holdings);
    }
    case ApiVerb::kVoidMember:
      return with_job(VoidMemberRequest{}, [](const VoidMemberRequest& r, JobNamespace* job) {
        return done(job->void_member(r.call, r.round, r.block));
      });
    case ApiVerb::kCloseJob: {
      CloseJobRequest request;
      FLUX_RETURN_IF_ERROR(decode_message(message, &request));
      (void)find(request.call.incarnation);  // so that it is known as closed, if it was open
      FLUX_RETURN_IF_ERROR(jobs_->close(request.call));
      forget_closed();
      return done(Status::ok());
    }
    default:
      return invalid("verb {} is not one of a server", static_cast<unsigned>(verb));
  }
}

void ServerService::State::do_logged(ApiVerb verb, std::string_view message, const Tell& tell) {
  const auto told = [tell](const Status& status) { tell(done(status)); };
  const auto with_job = [&](auto request, auto act) {
    const Status status = decode_message(message, &request);
    if (!status.is_ok()) return tell(status);
    const auto job = jobs_->admit(request.call);
    if (!job.is_ok()) return tell(job.status());
    act(request, job.value().get());
  };
  switch (verb) {
    case ApiVerb::kOpenPass:
      return with_job(OpenPassRequest{}, [&](const OpenPassRequest& r, JobNamespace* job) {
        job->open_pass(r.call, r.pass, r.geometry, told);
      });
    case ApiVerb::kCloseBelow:
      return with_job(CloseBelowRequest{}, [&](const CloseBelowRequest& r, JobNamespace* job) {
        job->close_below(r.call, r.pass, told);
      });
    case ApiVerb::kMarked:
      return with_job(MarkedRequest{}, [&](const MarkedRequest& r, JobNamespace* job) {
        job->marked(r.call, r.section, r.blocks, r.any,
                    [tell](Result<std::vector<uint32_t>> masks) {
                      if (!masks.is_ok()) return tell(masks.status());
                      tell(encode_message(MarkedReply{std::move(masks).value()}));
                    });
      });
    default:
      return with_job(MarkRequest{}, [&](const MarkRequest& r, JobNamespace* job) {
        job->mark(r.call, r.geometry, r.ids, r.verdict, told);
      });
  }
}

void ServerService::State::slow(ApiVerb verb, Lane lane, std::string message, Responder respond) {
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
    state->do_slow(verb, message, [weak, key](Answer answer) {
      const auto state = weak.lock();
      if (!state) return;
      const SharedResponder latest = state->end_of(key);
      send(latest.get(), std::move(answer));
    });
  };
  if (!run_later(lane, task))
    end_of(key)->fail(Status(Code::kUnavailable, "this server has too much to do; ask again"));
}

SharedResponder ServerService::State::end_of(const std::string& key) {
  const std::lock_guard lock(slow_mutex_);
  auto node = under_way_.extract(key);
  return std::move(node.mapped());
}

void ServerService::State::do_slow(ApiVerb verb, std::string_view message, const Tell& tell) {
  switch (verb) {
    case ApiVerb::kOpenJob:
      return tell(open_job(message));
    case ApiVerb::kSave:
      return tell(save(message));
    case ApiVerb::kTotals:
      return tell(totals(message));
    case ApiVerb::kCopy:
      return copy(message, tell);
    default: {
      LoadRequest request;
      const Status status = decode_message(message, &request);
      if (!status.is_ok()) return tell(status);
      const auto job = jobs_->admit(request.call);
      if (!job.is_ok()) return tell(job.status());
      return tell(done(job.value()->load(request.call, request.load)));
    }
  }
}

void ServerService::State::copy(std::string_view message, const Tell& tell) {
  CopyRequest request;
  const Status status = decode_message(message, &request);
  if (!status.is_ok()) return tell(status);
  const auto job = jobs_->admit(request.call);
  if (!job.is_ok()) return tell(job.status());
  job.value()->copy(request.call, request.target, request.address,
                    [tell](Result<std::vector<ShardState>> states) {
                      if (!states.is_ok()) return tell(states.status());
                      tell(encode_message(StatesReply{std::move(states).value()}));
                    });
}

ServerService::State::Answer ServerService::State::open_job(std::string_view message) {
  OpenJob request;
  FLUX_RETURN_IF_ERROR(decode_message(message, &request));
  {
    const std::shared_lock lock(served_mutex_);
    if (std::find(closed_.begin(), closed_.end(), request.incarnation) != closed_.end())
      return error(Code::kStale, "job '{}': this incarnation was closed here", request.name);
  }
  // A request, late or of a coordinator that was replaced, for the process that was here before:
  // its shards would begin anew, unnoticed.
  const uint64_t boot = boot_.load();
  if (boot != 0 && boot != request.boot)
    return error(Code::kUnavailable, "job '{}': another process than the one that joined is here",
                 request.name);
  const Status status = jobs_->open(request);
  forget_closed();  // it may have taken the place of an older one
  if (status.is_ok()) (void)find(request.incarnation);
  return done(status);
}

ServerService::State::Answer ServerService::State::save(std::string_view message) {
  constexpr size_t kAnswersMax = 64;
  SaveRequest request;
  FLUX_RETURN_IF_ERROR(decode_message(message, &request));
  FLUX_ASSIGN_OR_RETURN(const auto job, jobs_->admit(request.call));
  FLUX_ASSIGN_OR_RETURN(const auto served, find(request.call.incarnation));
  const std::lock_guard lock(served->save_mutex);
  ServedJob::Saved& saved = served->saved;
  if (saved.folder == request.folder) {
    if (saved.number > request.number)
      return error(Code::kStale, "save of checkpoint {}: {} is written already", request.number,
                   saved.number);
    const auto at = saved.answers.find(std::string(message));
    if (saved.number == request.number && at != saved.answers.end()) return at->second;
  }
  FLUX_ASSIGN_OR_RETURN(auto shards,
                        job->save(request.call, request.folder, request.number, request.committed));
  std::string answer = encode_message(SaveReply{std::move(shards)});
  if (saved.folder != request.folder || saved.number != request.number ||
      saved.answers.size() >= kAnswersMax)
    saved = {request.folder, request.number, {}};
  saved.answers.emplace(message, answer);
  return answer;
}

ServerService::State::Answer ServerService::State::totals(std::string_view message) {
  TotalsRequest request;
  FLUX_RETURN_IF_ERROR(decode_message(message, &request));
  FLUX_ASSIGN_OR_RETURN(const auto job, jobs_->admit(request.call));
  FLUX_ASSIGN_OR_RETURN(const auto served, find(request.call.incarnation));
  FLUX_ASSIGN_OR_RETURN(JobTotals totals,
                        job->totals(request.call, request.rows, request.expected));
  totals.bytes_in = served->bytes_in.load(std::memory_order_relaxed);
  totals.bytes_out = served->bytes_out.load(std::memory_order_relaxed);
  return encode_message(totals);
}

}  // namespace flux
