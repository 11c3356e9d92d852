// `flux server`: a listener with the verbs of a server, and a loop that keeps it a member of one
// job; without a coordinator it stands by itself and serves any number of jobs until it is stopped.
#include <atomic>
#include <csignal>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include <unistd.h>

#include "flux/base/kill_point.h"
#include "flux/client/remote_registry.h"
#include "flux/main/commands.h"
#include "flux/main/job_roles.h"
#include "flux/main/memory_watch.h"
#include "flux/main/role_log.h"
#include "flux/main/role_process.h"
#include "flux/main/stop_signal.h"
#include "flux/rpc/fault_file.h"
#include "flux/rpc/listener.h"
#include "flux/server/server_service.h"
#include "flux/storage/files.h"

namespace flux {
namespace {

constexpr TimeNs kTick = 100 * kMillisecond;
constexpr uint32_t kThreads = 2;  // of the network

// One server process from its start to its end; everything on the thread that calls run().
class ServerProcess {
 public:
  ServerProcess(const ServerArguments& arguments, RoleLog* log)
      : arguments_(arguments), log_(log), stop_(install_stop_signal()) {}

  Status run() {
    if (!arguments_.die_at.empty()) {
      FLUX_ASSIGN_OR_RETURN(const KillOrder order, parse_kill_order(arguments_.die_at));
      arm_kill_point(order);
    }
    FLUX_ASSIGN_OR_RETURN(const SecurityOptions security, security_options(arguments_.security));
    FLUX_RETURN_IF_ERROR(listen(security));
    if (!arguments_.coordinator.empty()) {
      FLUX_RETURN_IF_ERROR(connect(security));
      join();
    } else {
      log_->say("serves the jobs of every coordinator that names it (--server)");
    }
    while (!end_) {
      loop_.run_one_until(loop_.now_ns() + kTick);
      obey_drill();
      if (!end_ && stop_->load()) end(error(Code::kCancelled, "stopped by a signal"));
    }
    listener_->stop();
    return *end_;
  }

 private:
  // A drill may tell this process where to die, once for each order.
  void obey_drill() {
    if (arguments_.faults.empty()) return;
    for (const Faults::Die& die : faults_.at(loop_.now_ns()).dies) {
      const std::string text = faults_text({{}, {die}, {}});
      if (die.pid != ::getpid() || text == obeyed_) continue;
      obeyed_ = text;
      log_->say("a drill arms a kill point: " + text.substr(0, text.size() - 1));
      arm_kill_point(die.order);
    }
  }

  Status listen(const SecurityOptions& security) {
    ListenerOptions options;
    options.addresses = {arguments_.listen};
    options.role = PeerRole::kServer;
    options.name = arguments_.name;
    options.security = security;
    options.threads = arguments_.threads != 0 ? arguments_.threads : kThreads;
    options.log = [this](const std::string& line) { log_->say(line); };
    FLUX_ASSIGN_OR_RETURN(listener_, Listener::start(options, service_));
    address_ = advertised(listener_->addresses().front());
    log_->say("listens on " + listener_->addresses().front());
    return Status::ok();
  }

  Status connect(const SecurityOptions& security) {
    const Caller caller{PeerRole::kServer, arguments_.name, security, arguments_.chaos,
                        arguments_.faults};
    FLUX_ASSIGN_OR_RETURN(channel_, open_channel(&loop_, arguments_.coordinator, caller, 0));
    RetryOptions retry;
    retry.deadline_ns = kFirstAnswerNs;
    registry_ =
        std::make_unique<RemoteRegistry>(channel_.channel.get(), &loop_, random_id(), retry);
    return Status::ok();
  }

  void join() {
    ServerJoin request;
    request.name = arguments_.name;
    request.boot = boot_;
    request.address = address_;
    request.host = host_name();
    request.pid = static_cast<uint32_t>(::getpid());
    registry_->join(request, [this](const Result<ServerJoinReply>& reply) {
      if (!reply.is_ok()) return end(reply.status().with_context("cannot join the job"));
      index_ = reply.value().server;
      every_ns_ = reply.value().report_every_ms * kMillisecond;
      log_->say(fmt::format("joined the job at {} as server {}", arguments_.coordinator, index_));
      report();
    });
  }

  void report() {
    registry_->report(index_, boot_, [this](const Result<bool>& over) {
      if (end_) return;
      if (!over.is_ok()) {
        return end(over.status().with_context(
            fmt::format("the coordinator at {} is lost", arguments_.coordinator)));
      }
      if (over.value()) {
        log_->say("the job is over");
        return end(Status::ok());
      }
      loop_.post(every_ns_, [this] { report(); });
    });
  }

  void end(Status status) {
    if (!end_) end_ = std::move(status);
  }

  const ServerArguments arguments_;
  RoleLog* const log_;
  const std::atomic<bool>* const stop_;
  const uint64_t boot_ = random_id();
  FaultFile faults_{arguments_.faults};
  std::string obeyed_;
  ServerJobs jobs_{make_server, &real_files()};
  ServerService service_{&jobs_};
  std::unique_ptr<Listener> listener_;
  std::string address_;
  IoLoop loop_;
  OpenedChannel channel_;
  std::unique_ptr<RemoteRegistry> registry_;
  uint32_t index_ = 0;
  TimeNs every_ns_ = kSecond;
  std::optional<Status> end_;
};

}  // namespace

int server_command(const ServerArguments& arguments) {
  end_when_out_of_memory();
  ServerArguments named = arguments;
  if (named.name.empty()) named.name = default_name("server");
  RoleLog log(named.name, true);
  ServerProcess process(named, &log);
  const Status status = process.run();
  if (!status.is_ok()) log.say("ends: " + status.message());
  return status.code() == Code::kCancelled ? 130 : report(status);
}

}  // namespace flux
