#include "flux/client/ps_client.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "flux/client/ps_client_state.h"

namespace flux {
namespace {

std::string shards_text(const std::vector<ShardId>& shards) {
  if (shards.size() == 1) return fmt::format("shard {}", shards[0]);
  return fmt::format("shard {} and {} more", shards[0], shards.size() - 1);
}

}  // namespace

PsClient::State::State(const PsClientOptions& options, ClusterMap map, ReachServer reach,
                       FetchRoute fetch_route, Executor* executor)
    : options_(options),
      fetch_route_(std::move(fetch_route)),
      executor_(executor),
      ports_(std::move(reach), std::move(map)),
      session_(options.session, ports_.map().route) {
  list_owners();
}

// --- the map ---

void PsClient::State::list_owners() {
  std::map<ServerId, std::vector<ShardId>> lists;
  const ShardRoute& route = ports_.map().route;
  for (ShardId s = 0; s < route.size(); ++s) lists[route.server[s]].push_back(s);
  owners_.clear();
  const ModelShape& shape = options_.shape;
  const auto pick = [](const std::vector<ShardId>& from, const auto& wanted) {
    auto list = std::make_shared<std::vector<ShardId>>();
    std::copy_if(from.begin(), from.end(), std::back_inserter(*list), wanted);
    return ShardList(std::move(list));
  };
  const auto is_sparse = [&](ShardId s) { return s < shape.sparse_shards; };
  for (const auto& [server, shards] : lists) {
    Owner at{server, pick(shards, is_sparse), {}, {}};
    for (uint32_t p = 0; p < std::max<size_t>(1, shape.phases.size()); ++p) {
      // Without a shape every shard counts as dense.
      const PhaseView phase = shape.phase(p);
      const auto is_dense = [&](ShardId s) {
        return !is_sparse(s) && (shape.phases.empty() || phase.has_dense(s - shape.sparse_shards));
      };
      at.dense.push_back(pick(shards, is_dense));
      at.all.push_back(pick(shards, [&](ShardId s) { return is_sparse(s) || is_dense(s); }));
    }
    owners_.push_back(std::move(at));
  }
}

void PsClient::State::set_map(ClusterMap map) {
  const ClusterMap& known = ports_.map();
  if (map.version < known.version) return;
  if (map.route.size() != known.route.size() || map.route.epoch.size() != map.route.size())
    return fail(error(Code::kStale, "the new map has {} shards, this worker knows {}",
                      map.route.size(), known.route.size()));
  const bool changed = map.version > known.version || map.servers != known.servers ||
                       map.route.epoch != known.route.epoch ||
                       map.route.server != known.route.server;
  const ShardRoute route = map.route;
  if (changed) {
    ports_.set_map(std::move(map));
    list_owners();
    // Not here: this may run inside an answer of the port that is dropped.
    executor_->post(0, [weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->drop_gone();
    });
  }
  std::vector<PushAction> actions;
  session_.on_route(route, executor_->now_ns(), &actions);
  perform(&actions);
  if (!changed) return;
  for (const auto& waiting : std::exchange(waiting_, {})) retry(waiting.get());
  sooner();
}

// Calls to servers that are gone have ended: what they were for is asked of others.
void PsClient::State::drop_gone() {
  for (const auto& call : ports_.drop_gone()) {
    switch (call->kind) {
      case ServerPorts::Call::Kind::kPull: {
        const auto part = std::static_pointer_cast<PullPart>(call);
        --part->pull->calls;
        refused(part->pull, part->server, part->shards,
                Status(Code::kUnavailable, "it is no member of the job any more"));
        finish_if_over(part->pull);
        break;
      }
      case ServerPorts::Call::Kind::kPush: {
        const auto sent = std::static_pointer_cast<SentPush>(call);
        lost(sent->action);
        call_over(*sent);
        break;
      }
      case ServerPorts::Call::Kind::kConfirm:
        lost(std::static_pointer_cast<SentConfirm>(call)->action);
        break;
    }
  }
}

void PsClient::State::refresh() {
  if (fetching_ || !fetch_route_) return;
  fetching_ = true;
  fetch_route_([weak = weak_from_this()](Result<ClusterMap> map) {
    const auto self = weak.lock();
    if (!self) return;
    self->fetching_ = false;
    if (map.is_ok()) self->set_map(std::move(map).value());
  });
}

// --- pulls ---

void PsClient::State::pull(PullWork work, std::function<void(Status)> done) {
  auto pull = std::make_shared<Pull>();
  pull->work = std::move(work);
  pull->done = std::move(done);
  pull->started = executor_->now_ns();
  pull->backoff = options_.pull_retry_ns;
  const uint32_t sparse = options_.shape.sparse_shards;
  const bool rows = sparse == 0 || pull->work.keys.begin[sparse] > 0;
  const bool dense = sparse == 0 || pull->work.dense != nullptr;
  const size_t phase = options_.shape.phases.empty() ? 0 : pull->work.phase;
  const auto owners = owners_;  // an answer inside a call may bring a new map
  ++pull->calls;                // so that it is not over before all parts are sent
  for (const Owner& at : owners) {
    const ShardList& shards = rows && dense ? at.all[phase] : rows ? at.sparse : at.dense[phase];
    if ((rows || dense) && !shards->empty()) send_pull(pull, at.server, shards);
  }
  --pull->calls;
  finish_if_over(pull);
}

void PsClient::State::send_pull(const PullPtr& pull, ServerId server, const ShardList& shards) {
  const auto at = ports_.port(server);
  if (!at)
    return refused(pull, server, shards,
                   Status(Code::kUnavailable, "the map names no address of it"));
  ++pull->calls;
  PullRequest request;
  request.incarnation = options_.incarnation;
  request.shards = *shards;
  request.keys = pull->work.keys;
  request.tables = pull->work.tables;
  request.dense = pull->work.dense;
  request.phase = pull->work.phase;
  request.team = options_.team;
  const auto part = std::make_shared<PullPart>(pull, server, shards);
  ServerPorts::begin(at, part, executor_->now_ns());
  at->port->pull(request, carry<PullReply>([part](State* self, const PullReply& reply) {
                   self->pulled(part.get(), reply);
                 }));
}

void PsClient::State::pulled(PullPart* part, const PullReply& reply) {
  if (!ServerPorts::end(part, !reply.unreached, executor_->now_ns())) return;
  --part->pull->calls;
  if (!reply.status.is_ok())
    refused(part->pull, part->server, part->shards, reply.status);
  else if (part->pull->work.marks != nullptr)
    part->pull->work.marks->add(part->server, reply.mark);
  finish_if_over(part->pull);
}

void PsClient::State::refused(const PullPtr& pull, ServerId server, const ShardList& shards,
                              const Status& status) {
  const TimeNs now = executor_->now_ns();
  const TimeNs waited = now - pull->started;
  const auto what = [&] {
    return fmt::format("pull of {} from server {}", shards_text(*shards), server);
  };
  bool again = status.code() == Code::kUnavailable;
  if (status.code() == Code::kStale) {
    if (pull->stale_since < 0) pull->stale_since = now;
    again = now - pull->stale_since < options_.session.stale_patience_ns;
  }
  if (!again)
    fail_pull(pull, status.with_context(what()));
  else if (waited + pull->backoff > options_.pull_deadline_ns)
    fail_pull(pull, error(Code::kUnavailable, "{}: no answer for {:.1f} s: {}", what(),
                          static_cast<double>(waited) * 1e-9, status.message()));
  else if (pull->failure.is_ok())
    retry_later(pull, server, shards);
}

void PsClient::State::retry_later(const PullPtr& pull, ServerId server, const ShardList& shards) {
  ++pull->retries;
  auto waiting = std::make_shared<Waiting>(Waiting{pull, server, shards});
  waiting_.push_back(waiting);
  executor_->post(pull->backoff, [weak = weak_from_this(), waiting] {
    const auto self = weak.lock();
    if (!self || waiting->over) return;
    std::erase(self->waiting_, waiting);
    self->retry(waiting.get());
  });
  pull->backoff = std::min(pull->backoff * 2, options_.pull_retry_max_ns);
  refresh();
}

void PsClient::State::retry(Waiting* waiting) {
  if (std::exchange(waiting->over, true)) return;
  const PullPtr pull = waiting->pull;
  --pull->retries;
  if (!pull->failure.is_ok()) return finish_if_over(pull);
  std::map<ServerId, std::vector<ShardId>> by_server;  // they may have moved apart
  for (const ShardId shard : *waiting->shards)
    by_server[ports_.map().route.server[shard]].push_back(shard);
  ++pull->calls;
  for (auto& [server, some] : by_server)
    send_pull(pull, server, std::make_shared<const std::vector<ShardId>>(std::move(some)));
  --pull->calls;
  finish_if_over(pull);
}

void PsClient::State::fail_pull(const PullPtr& pull, Status status) {
  if (pull->failure.is_ok()) pull->failure = std::move(status);
}

void PsClient::State::finish_if_over(const PullPtr& pull) {
  if (pull->calls > 0 || !pull->done) return;
  if (pull->retries > 0 && pull->failure.is_ok()) return;
  const auto done = std::exchange(pull->done, nullptr);
  done(pull->failure);
}

std::string PsClient::State::waits_for_pull() const {
  const std::string at = ports_.waits_for(ServerPorts::Call::Kind::kPull);
  return at.empty() && !waiting_.empty() ? fmt::format("server {}", waiting_.front()->server) : at;
}

std::vector<ServerId> PsClient::State::suspects(TimeNs idle_since) const {
  return ports_.suspects(options_.suspect_ns, idle_since, executor_->now_ns());
}

// --- PsClient ---

PsClient::PsClient(const PsClientOptions& options, ClusterMap map, ReachServer reach,
                   FetchRoute fetch_route, Executor* executor)
    : state_(std::make_shared<State>(options, std::move(map), std::move(reach),
                                     std::move(fetch_route), executor)) {}

PsClient::~PsClient() = default;

void PsClient::pull(PullWork work, std::function<void(Status)> done) {
  state_->pull(std::move(work), std::move(done));
}
void PsClient::pull(const ShardedKeys& keys, std::span<float*> tables, float* dense,
                    std::function<void(Status)> done) {
  state_->pull({keys, tables, dense, nullptr, 0, nullptr}, std::move(done));
}
bool PsClient::has_room() const {
  return state_->has_room();
}
void PsClient::push(PushWork work) {
  state_->push(std::move(work));
}
void PsClient::set_map(ClusterMap map) {
  state_->set_map(std::move(map));
}
void PsClient::on_failure(std::function<void()> failed) {
  state_->on_failure(std::move(failed));
}
size_t PsClient::in_flight() const {
  return state_->in_flight();
}
size_t PsClient::unapplied() const {
  return state_->session().unapplied();
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
const LatencyHistogram& PsClient::push_times() const {
  return state_->push_times();
}
const AgeHistogram& PsClient::push_ages() const {
  return state_->push_ages();
}
std::string PsClient::waits_for_pull() const {
  return state_->waits_for_pull();
}
std::string PsClient::waits_for_push() const {
  return state_->waits_for_push();
}
std::vector<ServerId> PsClient::suspects(TimeNs idle_since) const {
  return state_->suspects(idle_since);
}

}  // namespace flux
