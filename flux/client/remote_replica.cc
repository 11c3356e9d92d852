#include "flux/client/remote_replica.h"

#include <deque>
#include <map>
#include <mutex>
#include <utility>

#include "flux/api/verbs.h"
#include "flux/api/wire_message.h"
#include "flux/api/wire_replica.h"
#include "flux/base/object_pool.h"

namespace flux {
namespace {

// Everything a call needs until its end; used again, so that a call allocates little.
struct Work {
  ApiVerb verb{};
  std::string control;
  std::vector<ByteSpan> payload;
  Buffer<uint16_t> halves;
  bool checks_itself = false;
  TimeNs timeout_ns = 0;
  std::function<void(Status, const RpcReply&)> done;
};
using SharedWork = std::shared_ptr<Work>;

}  // namespace

class RemoteReplica::State : public std::enable_shared_from_this<State> {
 public:
  State(Executor* executor, Open open) : executor_(executor), open_(std::move(open)) {}

  SharedWork take() { return pool_.take(); }

  // Any thread: sends after everything that was given before.
  void send(SharedWork work) {
    {
      const std::lock_guard lock(mutex_);
      queue_.push_back(std::move(work));
      if (std::exchange(posted_, true)) return;
    }
    executor_->post(0, [self = shared_from_this()] { self->drain(); });
  }

  // Any thread: the last thing that is asked.
  void end() {
    executor_->post(0, [self = shared_from_this()] { self->close(); });
  }

 private:
  // On the executor, as everything below.
  void close() {
    closed_ = true;
    channel_.reset();  // nobody touches the calls' memory from here on
    auto under_way = std::move(under_way_);
    under_way_.clear();
    for (auto& [number, work] : under_way) fail(work);
    drain();
  }

  void drain() {
    std::deque<SharedWork> queue;
    {
      const std::lock_guard lock(mutex_);
      posted_ = false;
      queue.swap(queue_);
    }
    if (!closed_ && channel_ == nullptr) channel_ = open_();
    for (SharedWork& work : queue) {
      if (channel_ == nullptr)
        fail(work);
      else
        call(std::move(work));
    }
  }

  void call(SharedWork work) {
    RpcCall rpc;
    rpc.verb = static_cast<Verb>(work->verb);
    rpc.control = std::move(work->control);
    rpc.payload = std::move(work->payload);
    rpc.checks_itself = work->checks_itself;
    rpc.timeout_ns = work->timeout_ns;
    const uint64_t number = ++last_;
    rpc.done = [weak = weak_from_this(), number](Status status, const RpcReply& reply) {
      const auto self = weak.lock();
      if (!self) return;
      auto node = self->under_way_.extract(number);
      if (node) finish(node.mapped(), std::move(status), reply);
    };
    under_way_.emplace(number, std::move(work));
    channel_->call(std::move(rpc));
  }

  static void finish(const SharedWork& work, Status status, const RpcReply& reply) {
    const auto done = std::exchange(work->done, nullptr);
    done(std::move(status), reply);
  }
  static void fail(const SharedWork& work) {
    finish(work, Status(Code::kUnavailable, "the connection to this server was given up"), {});
  }

  Executor* const executor_;
  const Open open_;
  ObjectPool<Work> pool_;
  std::mutex mutex_;
  std::deque<SharedWork> queue_;  // guarded by mutex_, as is posted_
  bool posted_ = false;
  bool closed_ = false;
  uint64_t last_ = 0;
  std::map<uint64_t, SharedWork> under_way_;
  std::unique_ptr<Channel> channel_;
};

RemoteReplica::RemoteReplica(Executor* executor, Open open, FindShape shape_of,
                             RemoteReplicaOptions options)
    : state_(std::make_shared<State>(executor, std::move(open))),
      shape_of_(std::move(shape_of)),
      options_(options) {}

RemoteReplica::~RemoteReplica() {
  state_->end();
}

void RemoteReplica::replicate(const ReplicateRequest& request,
                              std::function<void(const ReplicateReply&)> done) {
  const auto refuse = [&](Status status) {
    ReplicateReply reply;
    reply.status = std::move(status);
    done(reply);
  };
  const auto shape = shape_of_(request.push.claim.incarnation);
  if (shape == nullptr)
    return refuse(error(Code::kStale, "replicate: no job of incarnation {:016x} is here any more",
                        request.push.claim.incarnation));
  SharedWork work = state_->take();
  auto encoded = encode_replicate(request, *shape, &work->halves);
  if (!encoded.is_ok()) return refuse(encoded.status());
  work->verb = ApiVerb::kReplicate;
  work->control = std::move(encoded.value().control);
  work->payload = std::move(encoded.value().payload);
  work->checks_itself = true;  // each operation's stream hash is over its keys and gradients
  work->timeout_ns = options_.replicate_timeout_ns;
  work->done = [done = std::move(done)](Status status, const RpcReply& reply) {
    ReplicateReply answer;
    if (status.is_ok())
      status = decode_replicate_reply(message_bytes(reply.control, reply.payload), &answer);
    answer.status = std::move(status);
    done(answer);
  };
  state_->send(std::move(work));
}

void RemoteReplica::install(const InstallRequest& request, std::function<void(Status)> done) {
  SharedWork work = state_->take();
  work->verb = ApiVerb::kInstall;
  work->control = encode_install(request);
  work->payload.assign(1, request.bytes);
  work->checks_itself = false;
  work->timeout_ns = options_.install_timeout_ns;
  work->done = [done = std::move(done)](Status status, const RpcReply&) {
    done(std::move(status));
  };
  state_->send(std::move(work));
}

}  // namespace flux
