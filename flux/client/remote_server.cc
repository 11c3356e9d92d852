#include "flux/client/remote_server.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>
#include <vector>

#include "flux/api/verbs.h"
#include "flux/api/wire_message.h"

namespace flux {

struct RemoteServer::State {
  Channel* channel;
  ModelShape shape;
  RemoteServerOptions options;
  RemoteTraffic traffic;
  std::set<uint64_t> calls;
  std::vector<std::shared_ptr<Pull>> free_pulls;
  std::vector<std::shared_ptr<Push>> free_pushes;

  Result<std::vector<MutableByteSpan>> place(Pull* pull, uint64_t bytes) const;
  void finish(const std::shared_ptr<Pull>& pull, Status status, const RpcReply& reply);
};

// Everything a call needs until its end; used again, so that a call allocates little.
struct RemoteServer::Pull {
  PullRequest request;
  std::vector<float*> tables, dense_parts;
  WirePart part;
  alignas(kSectionAlign) std::array<std::byte, kSectionAlign> padding;
  Buffer<std::byte> halves;  // a reply that is not fp32
  uint64_t reply_bytes = 0;
  bool placed = false;
  std::function<void(const PullReply&)> done;
  uint64_t call = 0;
};

struct RemoteServer::Push {
  std::vector<ShardId> shards;
  std::vector<ShardEpoch> epochs;
  Buffer<uint16_t> halves;
  std::function<void(const PushReply&)> done;
  uint64_t call = 0;
};

namespace {

template <typename T>
std::shared_ptr<T> take_free(std::vector<std::shared_ptr<T>>* list) {
  if (list->empty()) return std::make_shared<T>();
  auto object = std::move(list->back());
  list->pop_back();
  return object;
}

uint64_t payload_bytes(const std::vector<std::span<const std::byte>>& spans) {
  uint64_t bytes = 0;
  for (const auto& span : spans) bytes += span.size();
  return bytes;
}

PushReply same_answer(const std::vector<ShardId>& shards, Answer answer) {
  PushReply reply;
  for (const ShardId shard : shards) reply.answers.push_back({shard, answer, 0, {}});
  return reply;
}

// What a failed push means to a PushSession.
PushReply reply_of_failure(const std::vector<ShardId>& shards, Status status) {
  PushReply lost;
  switch (status.code()) {
    case Code::kStale:
      return same_answer(shards, Answer::kStaleIncarnation);
    case Code::kInvalid:
    case Code::kCorrupt:
      return same_answer(shards, Answer::kMalformed);
    default:
      lost.status = std::move(status);
      return lost;
  }
}

// The epoch that each answer was earned under; shards that were not asked are nobody's answer.
Status fill_epochs(const std::vector<ShardId>& shards, const std::vector<ShardEpoch>& epochs,
                   PushReply* reply) {
  for (size_t i = 0; i < reply->answers.size(); ++i) {
    ShardAnswer& answer = reply->answers[i];
    size_t at = i;  // nearly always all answer, in order
    if (at >= shards.size() || shards[at] != answer.shard) {
      at = static_cast<size_t>(std::lower_bound(shards.begin(), shards.end(), answer.shard) -
                               shards.begin());
      if (at == shards.size() || shards[at] != answer.shard)
        return error(Code::kCorrupt, "push: an answer of shard {}, which was not asked",
                     answer.shard);
    }
    if (at < epochs.size()) answer.epoch = epochs[at];
  }
  return Status::ok();
}

}  // namespace

Result<std::vector<MutableByteSpan>> RemoteServer::State::place(Pull* pull, uint64_t bytes) const {
  if (bytes != pull->reply_bytes)
    return error(Code::kCorrupt, "pull: a reply of {} bytes, {} were asked for", bytes,
                 pull->reply_bytes);
  pull->placed = true;
  if (options.value == WireValue::kFp32)
    return pull_reply_targets(pull->part, shape, pull->request,
                              std::span<std::byte, kSectionAlign>(pull->padding));
  pull->halves.resize_discard(bytes);
  return std::vector<MutableByteSpan>{pull->halves.span()};
}

void RemoteServer::State::finish(const std::shared_ptr<Pull>& pull, Status status,
                                 const RpcReply& reply) {
  calls.erase(pull->call);
  // A reply without any payload is placed nowhere: rows that were asked for are not here then.
  if (status.is_ok() && pull->reply_bytes > 0 && !pull->placed)
    status =
        error(Code::kCorrupt, "pull: an empty reply, {} bytes were asked for", pull->reply_bytes);
  AgeMark mark;
  if (status.is_ok()) status = decode_pull_mark(reply.control, &mark);
  if (status.is_ok()) {
    traffic.received += reply.control.size() + pull->reply_bytes;
    if (options.value != WireValue::kFp32)
      read_pull_reply(pull->halves.data(), options.value, pull->part, shape, pull->request);
  }
  const auto done = std::move(pull->done);
  free_pulls.push_back(pull);
  const bool unreached = !status.is_ok() && !reply.answered;
  done({std::move(status), unreached, mark});
}

RemoteServer::RemoteServer(Channel* channel, ModelShape shape, RemoteServerOptions options)
    : state_(std::make_shared<State>(State{channel, std::move(shape), options, {}, {}, {}, {}})) {}

RemoteServer::~RemoteServer() {
  for (const uint64_t call : state_->calls) state_->channel->cancel(call);
}

const RemoteTraffic& RemoteServer::traffic() const {
  return state_->traffic;
}

void RemoteServer::pull(const PullRequest& request, std::function<void(const PullReply&)> done) {
  State& s = *state_;
  auto encoded = encode_pull(request, s.shape, s.options.value);
  if (!encoded.is_ok()) return done({encoded.status(), false, {}});
  auto pull = take_free(&s.free_pulls);
  // Lists of the request live only until this method returns.
  pull->tables.assign(request.tables.begin(), request.tables.end());
  pull->dense_parts.assign(request.dense_parts.begin(), request.dense_parts.end());
  pull->request = {};
  pull->request.tables = pull->tables;
  pull->request.dense = request.dense;
  pull->request.dense_parts = pull->dense_parts;
  pull->request.phase = request.phase;
  pull->part = std::move(encoded.value().part);
  pull->placed = false;
  pull->done = std::move(done);
  const bool want_dense = request.dense != nullptr || !request.dense_parts.empty();
  pull->reply_bytes =
      pull_reply_bytes(pull->part, s.shape, s.options.value, want_dense, request.phase);

  RpcCall call;
  call.verb = static_cast<Verb>(ApiVerb::kPull);
  call.control = std::move(encoded.value().control);
  call.payload = std::move(encoded.value().payload);
  call.timeout_ns = s.options.pull_timeout_ns;
  s.traffic.sent += call.control.size() + payload_bytes(call.payload);
  const std::weak_ptr<State> weak = state_;
  call.place = [pull, weak](std::string_view, uint64_t bytes) {
    const auto state = weak.lock();
    return state ? state->place(pull.get(), bytes)
                 : Status(Code::kCancelled, "nobody waits for these rows");
  };
  call.done = [pull, weak](Status status, const RpcReply& reply) {
    if (const auto state = weak.lock()) state->finish(pull, std::move(status), reply);
  };
  pull->call = s.channel->call(std::move(call));
  s.calls.insert(pull->call);
}

void RemoteServer::push(const PushRequest& request, std::function<void(const PushReply&)> done) {
  State& s = *state_;
  auto push = take_free(&s.free_pushes);
  push->shards.assign(request.shards.begin(), request.shards.end());
  push->epochs.assign(request.epochs.begin(), request.epochs.end());
  auto encoded = encode_push(request, s.shape, s.options.value, &push->halves);
  if (!encoded.is_ok()) return done(reply_of_failure(push->shards, encoded.status()));
  push->done = std::move(done);
  RpcCall call;
  call.verb = static_cast<Verb>(ApiVerb::kPush);
  call.control = std::move(encoded.value().control);
  call.payload = std::move(encoded.value().payload);
  call.timeout_ns = s.options.push_timeout_ns;
  s.traffic.sent += call.control.size() + payload_bytes(call.payload);
  call.done = [push, weak = std::weak_ptr<State>(state_)](Status status, const RpcReply& reply) {
    const auto state = weak.lock();
    if (!state) return;
    state->calls.erase(push->call);
    PushReply answers;
    if (status.is_ok()) {
      state->traffic.received += reply.control.size() + reply.payload.size();
      status = decode_push_reply(message_bytes(reply.control, reply.payload), &answers);
      if (status.is_ok()) status = fill_epochs(push->shards, push->epochs, &answers);
    }
    const bool unreached = !status.is_ok() && !reply.answered;
    if (!status.is_ok()) answers = reply_of_failure(push->shards, std::move(status));
    answers.unreached = unreached;
    const auto finished = std::move(push->done);
    state->free_pushes.push_back(push);
    finished(answers);
  };
  push->call = s.channel->call(std::move(call));
  s.calls.insert(push->call);
}

void RemoteServer::confirm(uint64_t incarnation, uint64_t receipt,
                           std::function<void(Status)> done) {
  State& s = *state_;
  RpcCall call;
  call.verb = static_cast<Verb>(ApiVerb::kConfirm);
  call.control = encode_message(ConfirmRequest{incarnation, receipt});
  call.timeout_ns = s.options.confirm_timeout_ns;
  s.traffic.sent += call.control.size();
  const auto id = std::make_shared<uint64_t>(0);
  call.done = [id, done = std::move(done), weak = std::weak_ptr<State>(state_)](Status status,
                                                                                const RpcReply&) {
    const auto state = weak.lock();
    if (!state) return;
    state->calls.erase(*id);
    done(std::move(status));
  };
  *id = s.channel->call(std::move(call));
  s.calls.insert(*id);
}

}  // namespace flux
