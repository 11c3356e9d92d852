#include "flux/coordinator/coordinator_service.h"

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <utility>

#include "flux/client/message_answer.h"

namespace flux {
namespace {

using SharedResponder = std::shared_ptr<Responder>;

// Sends what a port answered.
template <typename Reply>
void send(const SharedResponder& respond, const Result<Reply>& reply) {
  if (reply.is_ok())
    respond->reply(message_answer(encode_message(reply.value())));
  else
    respond->fail(reply.status());
}

}  // namespace

// Lives on the executor's thread; only `executor` and the constructor's values are read elsewhere.
class CoordinatorService::State : public std::enable_shared_from_this<State> {
 public:
  State(JobPort* job, ServerRegistry* registry, Executor* executor,
        CoordinatorServiceOptions options)
      : job_(job), registry_(registry), executor_(executor), options_(std::move(options)) {}

  // Runs `act(state)` on the executor.
  template <typename Act>
  void post(Act act) {
    executor_->post(0, [weak = weak_from_this(), act = std::move(act)]() mutable {
      if (const auto state = weak.lock()) act(state.get());
    });
  }

  // Decodes here, acts on the executor.
  template <typename Request, typename Act>
  void serve(const RpcRequest& rpc, Responder respond, Act act) {
    Request request;
    const Status status = decode_message(message_bytes(rpc.control, rpc.payload), &request);
    if (!status.is_ok()) return respond.fail(status);
    post([connection = rpc.connection, request = std::move(request), act = std::move(act),
          shared = std::make_shared<Responder>(std::move(respond))](State* state) mutable {
      state->open_.insert(connection);
      const Status admitted = state->options_.admit ? state->options_.admit() : Status::ok();
      if (!admitted.is_ok()) return shared->fail(admitted);
      act(state, connection, std::move(request), shared);
    });
  }

  void worker_verb(const RpcRequest& rpc, Responder respond);
  void join(const RpcRequest& rpc, Responder respond);
  void server_verb(const RpcRequest& rpc, Responder respond);
  void closed(uint64_t connection);

 private:
  struct Member {
    std::string name;
    uint64_t boot = 0;
    uint64_t connection = 0;  // heard on last
  };
  using Members = std::map<uint32_t, Member>;

  void joined(Members State::*members, uint32_t id, Member member);
  void heard(Members State::*members, uint32_t id, uint64_t connection);
  void watch(Members State::*members, uint32_t id, uint64_t connection);
  void left(WorkerId worker);
  bool has_left(const Member& member) const;

  JobPort* const job_;
  ServerRegistry* const registry_;
  Executor* const executor_;
  const CoordinatorServiceOptions options_;
  Members workers_, servers_;
  std::set<uint64_t> open_;  // connections
  std::deque<Member> left_;  // workers, lately: a copy of their join that comes late is no join
};

void CoordinatorService::State::joined(Members State::*members, uint32_t id, Member member) {
  const uint64_t connection = member.connection;
  (this->*members)[id] = std::move(member);
  if (!open_.contains(connection)) watch(members, id, connection);  // gone while it joined
}

void CoordinatorService::State::heard(Members State::*members, uint32_t id, uint64_t connection) {
  const auto at = (this->*members).find(id);
  if (at != (this->*members).end()) at->second.connection = connection;
}

void CoordinatorService::State::watch(Members State::*members, uint32_t id, uint64_t connection) {
  executor_->post(options_.gone_after_ns, [weak = weak_from_this(), members, id, connection] {
    const auto state = weak.lock();
    if (!state) return;
    Members& all = state.get()->*members;
    const auto at = all.find(id);
    if (at == all.end() || at->second.connection != connection) return;
    const Member gone = std::move(at->second);
    all.erase(at);
    const auto& tell = members == &State::workers_ ? state->options_.on_worker_gone
                                                   : state->options_.on_server_gone;
    if (tell) tell(gone.name, gone.boot);
  });
}

void CoordinatorService::State::left(WorkerId worker) {
  constexpr size_t kLeftMax = 1024;
  auto node = workers_.extract(worker);
  if (!node) return;
  left_.push_back(std::move(node.mapped()));
  if (left_.size() > kLeftMax) left_.pop_front();
}

bool CoordinatorService::State::has_left(const Member& member) const {
  return std::any_of(left_.begin(), left_.end(), [&](const Member& other) {
    return other.boot == member.boot && other.name == member.name;
  });
}

void CoordinatorService::State::closed(uint64_t connection) {
  open_.erase(connection);
  for (const auto members : {&State::workers_, &State::servers_})
    for (const auto& [id, member] : this->*members)
      if (member.connection == connection) watch(members, id, connection);
}

void CoordinatorService::State::join(const RpcRequest& rpc, Responder respond) {
  serve<JoinRequest>(
      rpc, std::move(respond),
      [](State* s, uint64_t connection, JoinRequest request, const SharedResponder& respond) {
        Member member{request.name, request.boot, connection};
        if (s->has_left(member))
          return respond->fail(error(Code::kStale, "worker '{}' has left", member.name));
        s->job_->join(std::move(request), [weak = s->weak_from_this(), member = std::move(member),
                                           respond](const Result<JoinReply>& reply) {
          const auto state = weak.lock();
          if (state && reply.is_ok()) state->joined(&State::workers_, reply.value().worker, member);
          send(respond, reply);
        });
      });
}

void CoordinatorService::State::worker_verb(const RpcRequest& rpc, Responder respond) {
  switch (static_cast<ApiVerb>(rpc.verb)) {
    case ApiVerb::kLease:
      return serve<LeaseRequest>(
          rpc, std::move(respond),
          [](State* s, uint64_t connection, LeaseRequest r, const SharedResponder& respond) {
            s->heard(&State::workers_, r.worker, connection);
            s->job_->lease(std::move(r),
                           [respond](const Result<LeaseAnswer>& a) { send(respond, a); });
          });
    case ApiVerb::kReport:
      return serve<ReportRequest>(
          rpc, std::move(respond),
          [](State* s, uint64_t connection, ReportRequest r, const SharedResponder& respond) {
            s->heard(&State::workers_, r.worker, connection);
            s->job_->report(r.worker, std::move(r.report),
                            [respond](const Result<ReportAnswer>& a) { send(respond, a); });
          });
    case ApiVerb::kMap:
      return serve<EmptyMessage>(
          rpc, std::move(respond),
          [](State* s, uint64_t, EmptyMessage, const SharedResponder& respond) {
            s->job_->map([respond](const Result<ClusterMap>& a) { send(respond, a); });
          });
    case ApiVerb::kGeometry:
      return serve<GeometryRequest>(
          rpc, std::move(respond),
          [](State* s, uint64_t, GeometryRequest r, const SharedResponder& respond) {
            s->job_->geometry(r.hash, [respond](Result<std::string> a) {
              if (!a.is_ok()) return respond->fail(a.status());
              send<GeometryReply>(respond, GeometryReply{std::move(a).value()});
            });
          });
    case ApiVerb::kLeave:
      return serve<LeaveRequest>(
          rpc, std::move(respond),
          [](State* s, uint64_t, LeaveRequest r, const SharedResponder& respond) {
            s->left(r.last.worker);  // its connection may close now
            s->job_->leave(std::move(r.last), std::move(r.report), std::move(r.why),
                           [respond](Status status) {
                             if (!status.is_ok()) return respond->fail(std::move(status));
                             send<EmptyMessage>(respond, EmptyMessage{});
                           });
          });
    default:
      respond.fail(invalid("verb {} is not one of a coordinator", rpc.verb));
  }
}

void CoordinatorService::State::server_verb(const RpcRequest& rpc, Responder respond) {
  if (static_cast<ApiVerb>(rpc.verb) == ApiVerb::kServerReport)
    return serve<ServerReport>(
        rpc, std::move(respond),
        [](State* s, uint64_t connection, ServerReport r, const SharedResponder& respond) {
          s->heard(&State::servers_, r.server, connection);
          s->registry_->report(std::move(r), [respond](const Result<bool>& over) {
            if (!over.is_ok()) return respond->fail(over.status());
            send<ServerReportReply>(respond, ServerReportReply{over.value()});
          });
        });
  serve<ServerJoin>(
      rpc, std::move(respond),
      [](State* s, uint64_t connection, ServerJoin request, const SharedResponder& respond) {
        Member member{request.name, request.boot, connection};
        s->registry_->join(std::move(request),
                           [weak = s->weak_from_this(), member = std::move(member),
                            respond](const Result<ServerJoinReply>& reply) {
                             const auto state = weak.lock();
                             if (state && reply.is_ok())
                               state->joined(&State::servers_, reply.value().server, member);
                             send(respond, reply);
                           });
      });
}

CoordinatorService::CoordinatorService(JobPort* job, ServerRegistry* registry, Executor* executor,
                                       CoordinatorServiceOptions options)
    : state_(std::make_shared<State>(job, registry, executor, std::move(options))) {}

CoordinatorService::~CoordinatorService() = default;

bool CoordinatorService::allows(PeerRole role, Verb verb) const {
  return verb_allowed(VerbHome::kCoordinator, caller_role(role), verb);
}

void CoordinatorService::handle(RpcRequest request, Responder respond) {
  switch (static_cast<ApiVerb>(request.verb)) {
    case ApiVerb::kJoin:
      return state_->join(request, std::move(respond));
    case ApiVerb::kServerJoin:
    case ApiVerb::kServerReport:
      return state_->server_verb(request, std::move(respond));
    default:
      return state_->worker_verb(request, std::move(respond));
  }
}

void CoordinatorService::closed(uint64_t connection) {
  state_->post([connection](State* state) { state->closed(connection); });
}

}  // namespace flux
