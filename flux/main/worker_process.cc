// `flux worker`: one control loop with the agent, and the trainer's thread with its own loop.
#include <algorithm>
#include <atomic>
#include <charconv>
#include <csignal>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include <unistd.h>

#include "flux/client/remote_job.h"
#include "flux/client/remote_server.h"
#include "flux/main/commands.h"
#include "flux/main/job_roles.h"
#include "flux/main/memory_watch.h"
#include "flux/main/role_log.h"
#include "flux/main/role_process.h"
#include "flux/main/stop_signal.h"
#include "flux/main/summary.h"
#include "flux/main/worker_setup.h"
#include "flux/rpc/fault_file.h"
#include "flux/worker/worker_threads.h"

namespace flux {
namespace {

constexpr TimeNs kTick = 100 * kMillisecond;
constexpr TimeNs kCallNs = 2 * kSecond;
constexpr TimeNs kLeaseCallNs = 5 * kSecond;
constexpr TimeNs kAloneNs = 60 * kSecond;  // without a coordinator
constexpr TimeNs kImpatientNs = 150 * kMillisecond;
// Servers come back empty, at the address they had; the coordinator says when a life is over.
constexpr TimeNs kStalePatience = 5 * kSecond;
constexpr uint64_t kLessBytes = 32ULL << 20;  // of gradients held, when memory is short

// Bytes to and from servers, those that are gone included. Threads: any.
class Traffic {
 public:
  void add(const SocketChannel* socket) {
    const std::lock_guard lock(mutex_);
    open_.push_back(socket);
  }
  void remove(const SocketChannel* socket) {
    const std::lock_guard lock(mutex_);
    std::erase(open_, socket);
    count(*socket, &gone_);
  }
  void sum(WorkerCost* cost) const {
    const std::lock_guard lock(mutex_);
    cost->bytes_sent = gone_.bytes_sent;
    cost->bytes_received = gone_.bytes_received;
    for (const SocketChannel* socket : open_) count(*socket, cost);
  }

 private:
  static void count(const SocketChannel& socket, WorkerCost* cost) {
    const RpcCounters counters = socket.counters();
    cost->bytes_sent += counters.bytes_out;
    cost->bytes_received += counters.bytes_in;
  }
  mutable std::mutex mutex_;
  std::vector<const SocketChannel*> open_;
  WorkerCost gone_;
};

// The trainer's port to one server, and the channel it goes over.
struct ReachedServer {
  ReachedServer(OpenedChannel to, const ModelShape& shape, const RemoteServerOptions& options,
                std::shared_ptr<Traffic> counted)
      : opened(std::move(to)),
        port(opened.channel.get(), shape, options),
        traffic(std::move(counted)) {
    traffic->add(opened.socket);
  }
  ~ReachedServer() { traffic->remove(opened.socket); }
  ReachedServer(const ReachedServer&) = delete;
  ReachedServer& operator=(const ReachedServer&) = delete;
  OpenedChannel opened;
  RemoteServer port;
  std::shared_ptr<Traffic> traffic;
};

WorkerCost process_cost() {
  WorkerCost cost;
  cost.cpu_s = process_cpu_s();
  cost.rss_bytes = peak_rss_bytes();
  return cost;
}

// "BLOCK:BATCH": what begins that batch is killed, as by something poisonous in the data.
Result<std::function<void(const BatchId&)>> die_on(const std::string& text) {
  uint32_t block = 0, batch = 0;
  const char* const end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, block);
  const bool middle = first.ec == std::errc() && first.ptr != end && *first.ptr == ':';
  if (!middle || std::from_chars(first.ptr + 1, end, batch).ptr != end)
    return invalid("--die-on {}: expected BLOCK:BATCH", text);
  return std::function<void(const BatchId&)>([block, batch](const BatchId& id) {
    if (id.block.block == block && id.batch == batch) ::kill(::getpid(), SIGKILL);
  });
}

class WorkerProcess {
 public:
  WorkerProcess(const WorkerArguments& arguments, RoleLog* log)
      : arguments_(arguments), log_(log), stop_(install_stop_signal()) {}

  Status run() {
    caller_.role = PeerRole::kWorker;
    caller_.name = arguments_.name;
    caller_.chaos = arguments_.chaos;
    caller_.faults = arguments_.faults;
    FLUX_ASSIGN_OR_RETURN(caller_.security, security_options(arguments_.security));
    AgentOptions options;
    FLUX_RETURN_IF_ERROR(describe(&options));
    FLUX_ASSIGN_OR_RETURN(channel_, open_coordinator(&loop_, arguments_.coordinator, caller_));
    RemoteJobOptions calls;
    calls.plain.deadline_ns = kCallNs;  // the agent asks again until `silence_ns`
    calls.lease.deadline_ns = kLeaseCallNs;
    job_ = std::make_unique<RemoteJob>(channel_.channel.get(), &loop_, random_id(), calls);
    threads_ = options.join.threads;
    auto own_loop = std::make_unique<IoLoop>();
    IoLoop* const loop = own_loop.get();
    WorkerThreads worker(options, &loop_, job_.get(), std::move(own_loop),
                         [this, loop](const JoinReply& reply) { return set_up(reply, loop); });
    watch_signal(&worker);
    const WorkerOutcome outcome = worker.run();
    log_->say(fmt::format("{} examples, {} batches{}", outcome.report.examples,
                          outcome.report.batches,
                          outcome.reason.empty() ? "" : "; " + outcome.reason));
    return outcome.status;
  }

 private:
  Status describe(AgentOptions* options) {
    options->coordinator = "the coordinator at " + arguments_.coordinator;
    options->first_answer_ns = kFirstAnswerNs;
    options->silence_ns = kAloneNs;
    if (!arguments_.chaos.empty()) options->repeat_ns = kImpatientNs;
    options->join.name = arguments_.name;
    options->join.boot = random_id();
    options->join.host = host_name();
    options->join.pid = static_cast<uint32_t>(::getpid());
    Job none;
    options->join.threads = worker_threads(none, arguments_.job.threads);
    if (arguments_.job.job.empty()) return Status::ok();
    FLUX_ASSIGN_OR_RETURN(const JobSpec spec, read_spec(arguments_.job.job, arguments_.job.sets));
    FLUX_ASSIGN_OR_RETURN(const RoleJob role, open_role_job(spec));
    options->join.threads = worker_threads(role.job, arguments_.job.threads);
    options->join.model = describe_model(role);
    return Status::ok();
  }

  Result<WorkerSetup> set_up(const JoinReply& reply, IoLoop* loop) {
    log_->say(fmt::format("joined as worker {}: {} threads, {} servers", reply.worker, threads_,
                          reply.map.servers.size()));
    FLUX_ASSIGN_OR_RETURN(const RoleJob role, open_role_job(reply.job));
    FLUX_ASSIGN_OR_RETURN(WorkerSetup setup, make_worker_setup(role, reply, threads_));
    RemoteServerOptions wire;
    FLUX_ASSIGN_OR_RETURN(wire.value, wire_value(role.job.wire));
    setup.reach = reach(loop, role.layout.shape, wire);
    if (!caller_.chaos.empty()) be_impatient(&setup);
    if (arguments_.in_flight > 0) hold_less(&setup, arguments_.in_flight);
    setup.trainer.client.session.stale_patience_ns = kStalePatience;
    if (!arguments_.die_on.empty()) {
      FLUX_ASSIGN_OR_RETURN(setup.trainer.on_begin, die_on(arguments_.die_on));
    }
    setup.cost = [this] { return cost(); };
    return setup;
  }

  // Runs on the trainer's thread.
  ReachServer reach(IoLoop* loop, ModelShape shape, RemoteServerOptions wire) {
    return [this, loop, shape = std::move(shape), wire](
               ServerId server, const std::string& address) -> std::shared_ptr<ServerPort> {
      auto opened = open_channel(loop, address, caller_, uint64_t{server} + 1);
      if (!opened.is_ok()) {
        log_->say(fmt::format("cannot reach server {} at {}: {}", server, address,
                              opened.status().message()));
        return nullptr;
      }
      const auto reached =
          std::make_shared<ReachedServer>(std::move(opened).value(), shape, wire, traffic_);
      return {reached, &reached->port};
    };
  }

  // With faults on purpose, waiting as for a real network would only make tests slow.
  static void be_impatient(WorkerSetup* setup) {
    setup->trainer.client.session.answer_timeout_ns = kImpatientNs;
    setup->trainer.client.session.timeout_max_ns = 4 * kImpatientNs;
  }

  // After it ran out of memory.
  static void hold_less(WorkerSetup* setup, uint32_t most) {
    TrainerOptions& trainer = setup->trainer;
    trainer.prepare_ahead = most;
    trainer.pull_ahead = std::min(trainer.pull_ahead, most);
    trainer.client.session.pushes_max = std::min(trainer.client.session.pushes_max, most);
    trainer.client.session.bytes_max = std::min(trainer.client.session.bytes_max, kLessBytes);
  }

  WorkerCost cost() const {
    WorkerCost cost = process_cost();
    traffic_->sum(&cost);
    return cost;
  }

  void watch_signal(WorkerThreads* worker) {
    if (stop_->load()) return worker->stop("stopped by a signal");
    if (!arguments_.faults.empty())
      for (const int64_t pid : faults_.at(loop_.now_ns()).ooms)
        if (pid == ::getpid()) ask_for_more_memory();
    loop_.post(kTick, [this, worker] { watch_signal(worker); });
  }

  const WorkerArguments arguments_;
  RoleLog* const log_;
  const std::atomic<bool>* const stop_;
  Caller caller_;
  FaultFile faults_{arguments_.faults};
  IoLoop loop_;
  OpenedChannel channel_;
  std::unique_ptr<RemoteJob> job_;
  uint32_t threads_ = 1;
  const std::shared_ptr<Traffic> traffic_ = std::make_shared<Traffic>();
};

}  // namespace

int worker_command(const WorkerArguments& arguments) {
  end_when_out_of_memory();
  WorkerArguments named = arguments;
  if (named.name.empty()) named.name = default_name("worker");
  RoleLog log(named.name, true);
  WorkerProcess process(named, &log);
  const Status status = process.run();
  if (!status.is_ok()) log.say("ends: " + status.message());
  if (status.code() == Code::kCancelled) return 0;  // came when the job was ending
  // Taken for dead is no mistake of a person: it may be started again.
  if (status.code() == Code::kStale) return report(Status(Code::kUnavailable, status.message()));
  return report(status);
}

}  // namespace flux
