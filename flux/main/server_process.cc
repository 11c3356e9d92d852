// `flux server`: a listener with the verbs of a server, and a loop that keeps it a member of one
// job; without a coordinator it stands by itself and serves any number of jobs until it is stopped.
#include <atomic>
#include <csignal>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include <unistd.h>

#include "flux/base/kill_point.h"
#include "flux/client/remote_registry.h"
#include "flux/main/commands.h"
#include "flux/main/job_roles.h"
#include "flux/main/memory_watch.h"
#include "flux/main/peer_servers.h"
#include "flux/main/role_log.h"
#include "flux/main/role_process.h"
#include "flux/main/stop_signal.h"
#include "flux/main/summary.h"
#include "flux/rpc/fault_file.h"
#include "flux/rpc/listener.h"
#include "flux/server/server_member.h"
#include "flux/server/server_service.h"
#include "flux/storage/files.h"

namespace flux {
namespace {

constexpr TimeNs kTick = 100 * kMillisecond;
constexpr TimeNs kTryNs = 500 * kMillisecond;  // for one answer of the coordinator
constexpr uint32_t kThreads = 2;               // of the network
constexpr ServerId kNobody = kNoServer - 1;    // of a process that is no member

// One server process from its start to its end. The thread that calls run() keeps it a member and
// does nothing else; forwards have a thread of their own, connections and slow verbs theirs.
class ServerProcess {
 public:
  ServerProcess(const ServerArguments& arguments, RoleLog* log)
      : arguments_(arguments), log_(log), stop_(install_stop_signal()) {}

  Status run() {
    if (!arguments_.die_at.empty()) {
      FLUX_ASSIGN_OR_RETURN(const KillOrder order, parse_kill_order(arguments_.die_at));
      arm_kill_point(order);
      if (!arguments_.faults.empty())
        obeyed_ = faults_text({{}, {}, {{arguments_.name, order}}, {}});
    }
    FLUX_ASSIGN_OR_RETURN(const SecurityOptions security, security_options(arguments_.security));
    peers_ = std::make_unique<PeerServers>(caller_of(security), [this](uint64_t incarnation) {
      return service_.shape_of(incarnation);
    });
    const bool joins = !arguments_.coordinator.empty();
    const uint64_t boot = joins ? new_boot() : 0;
    FLUX_RETURN_IF_ERROR(listen(security));
    if (joins) {
      FLUX_RETURN_IF_ERROR(join(security, boot));
    } else {
      log_->say("serves the jobs of every coordinator that names it (--server)");
    }
    while (!end_) {
      loop_.run_one_until(loop_.now_ns() + kTick);
      obey_drill();
      if (!end_ && stop_->load()) end(error(Code::kCancelled, "stopped by a signal"));
    }
    member_.reset();
    listener_->stop();
    service_.stop();
    service_.forget_all();  // while the loop of the forwards turns
    return *end_;
  }

 private:
  // A drill may tell this process where to die, once for each order; what it takes back before the
  // process has died is over.
  void obey_drill() {
    if (arguments_.faults.empty()) return;
    const Faults& faults = faults_.at(loop_.now_ns());
    std::map<std::string, std::optional<KillOrder>> orders;  // by line; none: known from the start
    for (const Faults::Start& start : faults.starts)
      if (start.name == arguments_.name) orders[faults_text({{}, {}, {start}, {}})];
    for (const Faults::Die& die : faults.dies)
      if (die.pid == ::getpid()) orders[faults_text({{}, {die}, {}, {}})] = die.order;
    if (!obeyed_.empty() && !orders.contains(obeyed_)) {
      log_->say("a drill gives up a kill point: " + obeyed_.substr(0, obeyed_.size() - 1));
      disarm_kill_points();
      obeyed_.clear();
    }
    for (const auto& [text, order] : orders) {
      if (!order || !obeyed_.empty()) continue;
      obeyed_ = text;
      log_->say("a drill arms a kill point: " + text.substr(0, text.size() - 1));
      arm_kill_point(*order);
    }
    for (const int64_t pid : faults.ooms)
      if (pid == ::getpid()) ask_for_more_memory();
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

  // Every 200 ms or so from this thread, which does nothing else.
  Status join(const SecurityOptions& security, uint64_t boot) {
    Caller caller = caller_of(security);
    caller.on_break = [this] {
      if (member_) member_->broken();
    };
    FLUX_ASSIGN_OR_RETURN(channel_, open_coordinator(&loop_, arguments_.coordinator, caller));
    RetryOptions once;  // the member asks again
    once.try_timeout_ns = kTryNs;
    once.tries_max = 1;
    registry_ = std::make_unique<RemoteRegistry>(channel_.channel.get(), &loop_, random_id(), once);
    ServerMemberOptions options;
    options.coordinator = arguments_.coordinator;
    options.first_answer_ns = kFirstAnswerNs;
    options.join.name = arguments_.name;
    options.join.boot = boot;
    options.join.address = address_;
    options.join.host = host_name();
    options.join.pid = static_cast<uint32_t>(::getpid());
    member_ =
        std::make_unique<ServerMember>(registry_.get(), &loop_, std::move(options), make_hooks());
    member_->start();
    return Status::ok();
  }

  uint64_t new_boot() {
    const uint64_t boot = random_id();
    service_.set_boot(boot);
    return boot;
  }

  ServerMemberHooks make_hooks() {
    ServerMemberHooks hooks;
    hooks.new_boot = [this] { return new_boot(); };
    hooks.suspects = [this] { return jobs_.suspects(); };
    hooks.silent = [this] { return jobs_.silent(); };
    hooks.differed = [this] { return jobs_.differed(); };
    hooks.rss_bytes = [] { return peak_rss_bytes(); };
    hooks.work = [this] { return jobs_.work(); };
    hooks.heard = [this] { jobs_.heard_coordinator(); };
    hooks.joined = [this](ServerId id) {
      if (id == index_) return;
      index_ = id;
      log_->say(fmt::format("joined the job at {} as server {}", arguments_.coordinator, id));
    };
    hooks.forget = [this] {
      log_->say("is no member of the job any more: forgets its replicas and joins anew");
      service_.forget_all();
      index_ = kNobody;
    };
    hooks.end = [this](Status status) {
      if (status.is_ok()) log_->say("the job is over, or has no use for this server any more");
      end(std::move(status));
    };
    return hooks;
  }

  Caller caller_of(const SecurityOptions& security) const {
    return {PeerRole::kServer, arguments_.name, security, arguments_.chaos, arguments_.faults, {}};
  }

  // The server of a job, as this process can build it.
  Result<std::shared_ptr<Server>> make(const OpenJob& open) {
    ServerLinks links;
    links.executor = peers_->executor();
    links.reach = [this](const std::string& address) { return peers_->reach(address); };
    links.log = [this](const std::string& line) { log_->say(line); };
    return make_server(open, links);
  }

  void end(Status status) {
    if (!end_) end_ = std::move(status);
  }

  const ServerArguments arguments_;
  RoleLog* const log_;
  const std::atomic<bool>* const stop_;
  FaultFile faults_{arguments_.faults};
  std::string obeyed_;                  // the line of the faults file that is armed
  std::unique_ptr<PeerServers> peers_;  // before the jobs, which it outlives
  ServerJobs jobs_{[this](const OpenJob& open) { return make(open); }};
  ServerService service_{&jobs_};
  std::unique_ptr<Listener> listener_;
  std::string address_;
  IoLoop loop_;
  OpenedChannel channel_;
  std::unique_ptr<RemoteRegistry> registry_;
  std::unique_ptr<ServerMember> member_;
  ServerId index_ = kNobody;
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
