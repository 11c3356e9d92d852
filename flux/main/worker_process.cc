// `flux worker`: one control loop with the agent, and a thread with its own loop for each lane.
#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include <unistd.h>

#include "flux/client/remote_job.h"
#include "flux/client/remote_server.h"
#include "flux/main/commands.h"
#include "flux/main/job_roles.h"
#include "flux/main/role_log.h"
#include "flux/main/role_process.h"
#include "flux/main/stop_signal.h"
#include "flux/main/summary.h"
#include "flux/main/worker_setup.h"
#include "flux/worker/worker_threads.h"

namespace flux {
namespace {

constexpr TimeNs kTick = 100 * kMillisecond;
constexpr TimeNs kCallNs = 2 * kSecond;
constexpr TimeNs kImpatientNs = 150 * kMillisecond;

// A lane's port to one server, and the channel it goes over.
struct ReachedServer {
  ReachedServer(OpenedChannel to, const ModelShape& shape, const RemoteServerOptions& options)
      : opened(std::move(to)), port(opened.channel.get(), shape, options) {}
  OpenedChannel opened;
  RemoteServer port;
};

WorkerCost process_cost() {
  WorkerCost cost;
  cost.cpu_s = process_cpu_s();
  cost.rss_bytes = peak_rss_bytes();
  return cost;
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
    job_ = std::make_unique<RemoteJob>(channel_.channel.get(), &loop_, random_id(), calls);
    WorkerThreads worker(
        options, &loop_, job_.get(), [] { return std::make_unique<IoLoop>(); },
        [this](const JoinReply& reply, const std::vector<WaitingExecutor*>& lanes) {
          return set_up(reply, lanes);
        });
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
    options->silence_ns = kSilenceNs;
    if (!arguments_.chaos.empty()) options->repeat_ns = kImpatientNs;
    options->join.name = arguments_.name;
    options->join.boot = random_id();
    options->join.host = host_name();
    options->join.pid = static_cast<uint32_t>(::getpid());
    Job none;
    options->join.lanes = worker_threads(none, arguments_.job.threads);
    if (arguments_.job.job.empty()) return Status::ok();
    FLUX_ASSIGN_OR_RETURN(const JobSpec spec, read_spec(arguments_.job.job, arguments_.job.sets));
    FLUX_ASSIGN_OR_RETURN(const RoleJob role, open_role_job(spec));
    options->join.lanes = worker_threads(role.job, arguments_.job.threads);
    options->join.model = describe_model(role);
    return Status::ok();
  }

  Result<WorkerSetup> set_up(const JoinReply& reply, const std::vector<WaitingExecutor*>& lanes) {
    log_->say(fmt::format("joined as worker {}: {} threads, {} servers", reply.worker, lanes.size(),
                          reply.map.servers.size()));
    FLUX_ASSIGN_OR_RETURN(const RoleJob role, open_role_job(reply.job));
    FLUX_ASSIGN_OR_RETURN(WorkerSetup setup,
                          make_worker_setup(role, reply, static_cast<uint32_t>(lanes.size())));
    RemoteServerOptions wire;
    FLUX_ASSIGN_OR_RETURN(wire.value, wire_value(role.job.wire));
    for (uint32_t i = 0; i < lanes.size(); ++i) {
      auto* loop = static_cast<IoLoop*>(lanes[i]);  // made so in run()
      setup.lanes[i].executor = loop;
      for (size_t s = 0; s < reply.map.servers.size(); ++s) {
        FLUX_ASSIGN_OR_RETURN(OpenedChannel opened,
                              open_channel(loop, reply.map.servers[s], caller_,
                                           (static_cast<uint64_t>(i) << 32) + s + 1));
        const auto reached =
            std::make_shared<ReachedServer>(std::move(opened), model_shape(role), wire);
        reached_.push_back(reached);
        setup.lanes[i].servers.emplace_back(reached, &reached->port);
      }
    }
    if (!caller_.chaos.empty()) be_impatient(&setup);
    setup.cost = [this] { return cost(); };
    return setup;
  }

  // With faults on purpose, waiting as for a real network would only make tests slow.
  static void be_impatient(WorkerSetup* setup) {
    setup->lane.client.session.answer_timeout_ns = kImpatientNs;
    setup->lane.client.session.timeout_max_ns = 4 * kImpatientNs;
  }

  WorkerCost cost() const {
    WorkerCost cost = process_cost();
    for (const auto& weak : reached_) {
      const auto reached = weak.lock();
      if (!reached) continue;
      const RpcCounters counters = reached->opened.socket->counters();
      cost.bytes_sent += counters.bytes_out;
      cost.bytes_received += counters.bytes_in;
    }
    return cost;
  }

  void watch_signal(WorkerThreads* worker) {
    if (stop_->load()) return worker->stop("stopped by a signal");
    loop_.post(kTick, [this, worker] { watch_signal(worker); });
  }

  const WorkerArguments arguments_;
  RoleLog* const log_;
  const std::atomic<bool>* const stop_;
  Caller caller_;
  IoLoop loop_;
  OpenedChannel channel_;
  std::unique_ptr<RemoteJob> job_;
  std::vector<std::weak_ptr<ReachedServer>> reached_;  // the lanes' own; for counters
};

}  // namespace

int worker_command(const WorkerArguments& arguments) {
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
