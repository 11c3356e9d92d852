#include "flux/client/ps_client.h"

#include <algorithm>
#include <map>
#include <thread>
#include <utility>

#include "flux/base/check.h"

namespace flux {
namespace {

using ShardList = std::shared_ptr<const std::vector<ShardId>>;

// A route with the shards of each server listed, made once per change of the map.
struct RouteTable {
  struct Server {
    ShardList all, sparse, dense;
  };
  ShardRoute route;
  std::vector<Server> servers;

  RouteTable(ShardRoute from, size_t server_count, uint32_t sparse_shards)
      : route(std::move(from)) {
    std::vector<std::vector<ShardId>> all(server_count), sparse(server_count), dense(server_count);
    for (ShardId s = 0; s < route.size(); ++s) {
      const ServerId at = route.server[s];
      all[at].push_back(s);
      (s < sparse_shards ? sparse : dense)[at].push_back(s);
    }
    for (size_t i = 0; i < server_count; ++i)
      servers.push_back({std::make_shared<const std::vector<ShardId>>(std::move(all[i])),
                         std::make_shared<const std::vector<ShardId>>(std::move(sparse[i])),
                         std::make_shared<const std::vector<ShardId>>(std::move(dense[i]))});
  }
};

struct Pull {
  PullWork work;
  std::function<void(Status)> done;
  TimeNs started = 0;
  TimeNs backoff = 0;
  uint32_t calls = 0;    // ports that may write
  uint32_t retries = 0;  // parts that wait for their time
  Status failure;
};
using PullPtr = std::shared_ptr<Pull>;

// One request of a pull.
struct PullPart {
  PullPtr pull;
  ServerId server = 0;
  ShardList shards;
  bool answered = false;
};
using PullPartPtr = std::shared_ptr<PullPart>;

// A push whose buffers may still be read.
struct Flight {
  PushWork work;
  uint32_t calls = 0;     // ports that may read
  bool complete = false;  // every shard has it
  // For shards that have a part: the rest, summed anew, by what it holds.
  std::map<std::vector<BatchId>, std::unique_ptr<MergedPush>> rests;
};
using FlightPtr = std::shared_ptr<Flight>;

// One request of a push; its lists live until the answer, whatever the port does with them.
struct SentPush {
  PushAction action;
  FlightPtr flight;
  bool answered = false;
};
using SentPushPtr = std::shared_ptr<SentPush>;

std::string shards_text(const std::vector<ShardId>& shards) {
  if (shards.size() == 1) return fmt::format("shard {}", shards[0]);
  return fmt::format("shard {} and {} more", shards[0], shards.size() - 1);
}

}  // namespace

class PsClient::State : public std::enable_shared_from_this<PsClient::State> {
 public:
  State(const PsClientOptions& options, std::vector<ServerPort*> servers, const ShardRoute& route,
        FetchRoute fetch_route, Executor* executor)
      : options_(options),
        servers_(std::move(servers)),
        fetch_route_(std::move(fetch_route)),
        executor_(executor),
        session_(options.session, route),
        pull_calls_(servers_.size()),
        push_calls_(servers_.size()) {
    // A route to more servers than there are ports may still become good: it is only asked then.
    table_ = make_table(route);
  }

  void pull(PullWork work, std::function<void(Status)> done) {
    auto pull = std::make_shared<Pull>();
    pull->work = std::move(work);
    pull->done = std::move(done);
    pull->started = executor_->now_ns();
    pull->backoff = options_.pull_retry_ns;
    const bool rows =
        options_.sparse_shards == 0 || pull->work.keys.begin[options_.sparse_shards] > 0;
    const bool dense = options_.sparse_shards == 0 || pull->work.dense != nullptr;
    const auto table = table_;
    ++pull->calls;  // so that it is not over before all parts are sent
    for (ServerId server = 0; server < table->servers.size(); ++server) {
      const RouteTable::Server& at = table->servers[server];
      const ShardList& shards = rows && dense ? at.all : rows ? at.sparse : at.dense;
      if ((rows || dense) && !shards->empty()) send_pull(pull, server, shards);
    }
    --pull->calls;
    finish_if_over(pull);
  }

  void push(PushWork work) {
    std::vector<PushAction> actions;
    auto flight = std::make_shared<Flight>();
    flight->work = std::move(work);
    const PushSeq seq =
        session_.start(flight->work.ids, flight->work.bytes, executor_->now_ns(), &actions);
    flights_.emplace(seq, std::move(flight));
    perform(&actions);
    if (session_.in_flight() > 0) arm_timer();
  }

  void set_route(ShardRoute route) {
    if (route.size() != table_->route.size() || route.epoch.size() != route.size())
      return fail(error(Code::kStale, "the new map has {} shards, this worker knows {}",
                        route.size(), table_->route.size()));
    for (const ServerId server : route.server)
      if (server >= servers_.size())
        return fail(error(Code::kUnavailable,
                          "the new map names server {}, this worker knows only {}; start it anew",
                          server, servers_.size()));
    table_ = make_table(route);
    std::vector<PushAction> actions;
    session_.on_route(std::move(route), executor_->now_ns(), &actions);
    perform(&actions);
  }

  bool has_room() const {
    return status_.is_ok() && session_.has_room() && flights_.size() < options_.session.pushes_max;
  }
  size_t in_flight() const { return flights_.size(); }
  const Status& status() const { return status_; }
  const PushSession& session() const { return session_; }
  void on_failure(std::function<void()> failed) { failed_ = std::move(failed); }

  static std::string first_of(const std::vector<uint32_t>& calls) {
    for (size_t i = 0; i < calls.size(); ++i)
      if (calls[i] > 0) return fmt::format("server {}", i);
    return "";
  }
  std::string waits_for_pull() const {
    const std::string at = first_of(pull_calls_);
    return at.empty() && retrying_ != 0 ? fmt::format("server {}", retry_server_) : at;
  }
  std::string waits_for_push() const {
    const std::string at = first_of(push_calls_);
    if (!at.empty() || session_.in_flight() == 0) return at;
    return fmt::format("server {}", session_.waits_for());
  }

 private:
  std::shared_ptr<const RouteTable> make_table(const ShardRoute& route) const {
    size_t count = servers_.size();
    for (const ServerId server : route.server) count = std::max<size_t>(count, server + size_t{1});
    return std::make_shared<const RouteTable>(route, count, options_.sparse_shards);
  }

  // --- pulls ---
  void send_pull(const PullPtr& pull, ServerId server, const ShardList& shards) {
    if (server >= servers_.size()) {
      fail_pull(pull,
                error(Code::kUnavailable, "the map names server {}, this worker knows only {}",
                      server, servers_.size()));
      return;
    }
    ++pull->calls;
    ++pull_calls_[server];
    PullRequest request;
    request.incarnation = options_.incarnation;
    request.shards = *shards;
    request.keys = pull->work.keys;
    request.tables = pull->work.tables;
    request.dense = pull->work.dense;
    const auto part = std::make_shared<PullPart>(PullPart{pull, server, shards});
    servers_[server]->pull(
        request, [weak = weak_from_this(), executor = executor_, owner = std::this_thread::get_id(),
                  part](const PullReply& reply) {
          if (std::this_thread::get_id() == owner) {
            if (const auto self = weak.lock()) self->pulled(part.get(), reply.status);
            return;
          }
          executor->post(0, [weak, part, status = reply.status] {
            if (const auto self = weak.lock()) self->pulled(part.get(), status);
          });
        });
  }

  void pulled(PullPart* part, const Status& status) {
    if (std::exchange(part->answered, true)) return;
    const PullPtr& pull = part->pull;
    --pull->calls;
    --pull_calls_[part->server];
    if (!status.is_ok()) {
      const TimeNs waited = executor_->now_ns() - pull->started;
      const std::string what =
          fmt::format("pull of {} from server {}", shards_text(*part->shards), part->server);
      if (status.code() != Code::kUnavailable)
        fail_pull(pull, status.with_context(what));
      else if (waited + pull->backoff > options_.pull_deadline_ns)
        fail_pull(pull, error(Code::kUnavailable, "{}: no answer for {:.1f} s: {}", what,
                              static_cast<double>(waited) * 1e-9, status.message()));
      else if (pull->failure.is_ok())
        retry_later(pull, part->server, part->shards);
    }
    finish_if_over(pull);
  }

  void retry_later(const PullPtr& pull, ServerId server, const ShardList& shards) {
    refresh();
    ++pull->retries;
    ++retrying_;
    retry_server_ = server;
    executor_->post(pull->backoff, [weak = weak_from_this(), pull, shards] {
      if (const auto self = weak.lock()) self->retry(pull, *shards);
    });
    pull->backoff = std::min(pull->backoff * 2, options_.pull_retry_max_ns);
  }

  void retry(const PullPtr& pull, const std::vector<ShardId>& shards) {
    --pull->retries;
    --retrying_;
    if (!pull->failure.is_ok()) return finish_if_over(pull);
    std::map<ServerId, std::vector<ShardId>> by_server;  // they may have moved apart
    for (const ShardId shard : shards) by_server[table_->route.server[shard]].push_back(shard);
    ++pull->calls;
    for (auto& [server, some] : by_server)
      send_pull(pull, server, std::make_shared<const std::vector<ShardId>>(std::move(some)));
    --pull->calls;
    finish_if_over(pull);
  }

  static void fail_pull(const PullPtr& pull, Status status) {
    if (pull->failure.is_ok()) pull->failure = std::move(status);
  }

  static void finish_if_over(const PullPtr& pull) {
    if (pull->calls > 0 || !pull->done) return;
    if (pull->retries > 0 && pull->failure.is_ok()) return;
    const auto done = std::exchange(pull->done, nullptr);
    done(pull->failure);
  }

  // --- pushes ---
  void send_push(PushAction* action) {
    const auto at = flights_.find(action->seq);
    FLUX_CHECK(at != flights_.end(), "push {} has no buffers", action->seq);
    const FlightPtr flight = at->second;
    const PushWork& work = flight->work;
    const auto sent = std::make_shared<SentPush>(SentPush{std::move(*action), flight});
    PushRequest request;
    request.shards = sent->action.shards;
    request.epochs = sent->action.epochs;
    request.keys = work.keys;
    request.counts = work.counts;
    request.tables = work.tables;
    request.dense = work.dense;
    request.examples = work.examples;
    request.lr_scale = work.lr_scale;
    request.step = work.step.get();
    const std::vector<BatchId>& ids = sent->action.ids;
    if (ids.size() < work.ids.size()) {
      const MergedPush& rest = rest_of(flight.get(), ids);
      request.keys = rest.keys();
      request.counts = rest.counts();
      request.tables = rest.tables();
      request.dense = rest.dense();
      request.examples = rest.examples();
    }
    request.claim = PushClaim{options_.incarnation, work.geometry, ids, Verdict::kApplied};
    const ServerId server = sent->action.server;
    if (server >= servers_.size()) return;  // sent again by time, to whom the map names then
    ++flight->calls;
    ++push_calls_[server];
    servers_[server]->push(
        request, [weak = weak_from_this(), executor = executor_, owner = std::this_thread::get_id(),
                  sent](const PushReply& reply) {
          if (std::this_thread::get_id() == owner) {
            if (const auto self = weak.lock()) self->pushed(sent.get(), reply);
            return;
          }
          executor->post(0, [weak, sent, reply] {
            if (const auto self = weak.lock()) self->pushed(sent.get(), reply);
          });
        });
  }

  // The gradient of some of a merged push, with the weights that they have in the whole.
  const MergedPush& rest_of(Flight* flight, const std::vector<BatchId>& ids) const {
    std::unique_ptr<MergedPush>& rest = flight->rests[ids];
    if (rest) return *rest;
    std::vector<PushPart> parts;
    for (const PushPart& part : flight->work.parts)
      if (std::binary_search(ids.begin(), ids.end(), part.id)) parts.push_back(part);
    FLUX_CHECK(parts.size() == ids.size(), "a merged push names its parts: {} of {}", parts.size(),
               ids.size());
    rest = std::make_unique<MergedPush>(options_.sparse_shards, options_.dims, options_.parameters);
    rest->merge(parts);
    return *rest;
  }

  void pushed(SentPush* sent, const PushReply& reply) {
    if (std::exchange(sent->answered, true)) return;
    const PushAction& action = sent->action;
    --sent->flight->calls;
    --push_calls_[action.server];
    if (reply.status.is_ok()) {
      std::vector<PushAction> actions;
      session_.on_answers(action.seq, reply.answers, executor_->now_ns(), &actions);
      perform(&actions);
    } else if (reply.status.code() != Code::kUnavailable &&
               reply.status.code() != Code::kCancelled) {
      fail(reply.status.with_context(fmt::format("push to server {}", action.server)));
    }  // else: sent again when its time comes
    if (sent->flight->complete && sent->flight->calls == 0) release(action.seq);
  }

  void release(PushSeq seq) {
    const auto node = flights_.extract(seq);
    if (node && node.mapped()->work.released) node.mapped()->work.released();
  }

  void perform(std::vector<PushAction>* actions) {
    for (PushAction& action : *actions) {
      switch (action.kind) {
        case PushAction::Kind::kSend:
          // An answer inside an earlier call may have completed or ended it.
          if (status_.is_ok() && flights_.contains(action.seq)) send_push(&action);
          break;
        case PushAction::Kind::kRelease:
          if (const auto at = flights_.find(action.seq); at != flights_.end()) {
            at->second->complete = true;
            if (at->second->calls == 0) release(action.seq);
          }
          break;
        case PushAction::Kind::kRefresh:
          refresh();
          break;
        case PushAction::Kind::kStop:
          fail(error(Code::kStale, "{}", action.reason));
          break;
      }
    }
  }

  void refresh() {
    if (fetching_ || !fetch_route_) return;
    fetching_ = true;
    fetch_route_([weak = weak_from_this()](Result<ShardRoute> route) {
      const auto self = weak.lock();
      if (!self) return;
      self->fetching_ = false;
      if (route.is_ok()) self->set_route(std::move(route).value());
    });
  }

  void fail(Status status) {
    if (!status_.is_ok()) return;
    status_ = std::move(status);
    if (failed_) failed_();
  }

  void arm_timer() {
    if (timer_armed_) return;
    timer_armed_ = true;
    const TimeNs delay = std::max<TimeNs>(0, session_.next_time() - executor_->now_ns());
    executor_->post(delay, [weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->on_timer();
    });
  }
  void on_timer() {
    timer_armed_ = false;
    if (!status_.is_ok() || session_.in_flight() == 0) return;
    std::vector<PushAction> actions;
    session_.on_time(executor_->now_ns(), &actions);
    perform(&actions);
    if (session_.in_flight() > 0 && status_.is_ok()) arm_timer();
  }

  PsClientOptions options_;
  std::vector<ServerPort*> servers_;
  FetchRoute fetch_route_;
  Executor* executor_;
  PushSession session_;
  std::shared_ptr<const RouteTable> table_;
  std::map<PushSeq, FlightPtr> flights_;
  std::vector<uint32_t> pull_calls_, push_calls_;  // by server: calls that are not answered
  uint32_t retrying_ = 0;                          // parts of pulls that wait for their time
  ServerId retry_server_ = 0;
  bool fetching_ = false;
  bool timer_armed_ = false;
  std::function<void()> failed_;
  Status status_;
};

PsClient::PsClient(const PsClientOptions& options, std::vector<ServerPort*> servers,
                   ShardRoute route, FetchRoute fetch_route, Executor* executor)
    : state_(std::make_shared<State>(options, std::move(servers), route, std::move(fetch_route),
                                     executor)) {}

PsClient::~PsClient() = default;

void PsClient::pull(PullWork work, std::function<void(Status)> done) {
  state_->pull(std::move(work), std::move(done));
}
void PsClient::pull(const ShardedKeys& keys, std::span<float*> tables, float* dense,
                    std::function<void(Status)> done) {
  state_->pull({keys, tables, dense, nullptr}, std::move(done));
}
bool PsClient::has_room() const {
  return state_->has_room();
}
void PsClient::push(PushWork work) {
  state_->push(std::move(work));
}
void PsClient::set_route(ShardRoute route) {
  state_->set_route(std::move(route));
}
void PsClient::on_failure(std::function<void()> failed) {
  state_->on_failure(std::move(failed));
}
size_t PsClient::in_flight() const {
  return state_->in_flight();
}
const Status& PsClient::status() const {
  return state_->status();
}
uint64_t PsClient::resends() const {
  return state_->session().resends();
}
uint64_t PsClient::duplicates() const {
  return state_->session().duplicates();
}
std::string PsClient::waits_for_pull() const {
  return state_->waits_for_pull();
}
std::string PsClient::waits_for_push() const {
  return state_->waits_for_push();
}

}  // namespace flux
