// `flux coordinator`: one loop with the job's master, its listener and its console; HTTP beside it.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include <unistd.h>

#include "flux/base/text.h"
#include "flux/base/thread_offload.h"
#include "flux/checkpoint/store.h"
#include "flux/client/remote_admin.h"
#include "flux/coordinator/coordinator_service.h"
#include "flux/coordinator/http_server.h"
#include "flux/coordinator/job_master.h"
#include "flux/election/open_election.h"
#include "flux/main/age_note.h"
#include "flux/main/cluster_folder.h"
#include "flux/main/commands.h"
#include "flux/main/job_console.h"
#include "flux/main/job_end.h"
#include "flux/main/job_roles.h"
#include "flux/main/memory_watch.h"
#include "flux/main/output_lock.h"
#include "flux/main/role_log.h"
#include "flux/main/role_process.h"
#include "flux/main/stop_signal.h"
#include "flux/rpc/address.h"
#include "flux/rpc/fault_file.h"
#include "flux/rpc/listener.h"
#include "flux/storage/atomic_file.h"
#include "flux/storage/files.h"

namespace flux {
namespace {

constexpr TimeNs kTick = 100 * kMillisecond;
constexpr std::chrono::seconds kOperatorWait{5};
constexpr TimeNs kSupervisedWait = 90 * kSecond;  // for the supervisor's servers and workers
constexpr TimeNs kLingerNs = 2 * kSecond;         // after the end, for members to hear of it

// A server's admin port and the channel it goes over.
struct ReachedServer {
  ReachedServer(OpenedChannel to, IoLoop* loop)
      : opened(std::move(to)), admin(opened.channel.get(), loop, random_id()) {}
  OpenedChannel opened;
  RemoteAdmin admin;
};

// What the console shows, also goes to the log.
class LoggedConsole final : public JobEvents {
 public:
  LoggedConsole(JobConsoleOptions options, RoleLog* log, bool supervised)
      : console_(options), output_(options.output), log_(log), supervised_(supervised) {}
  void say(const std::string& line) override {
    console_.say(line);
    log_->say(line);
  }
  void warned(const TrainingWarning& warning) override {
    console_.warned(warning);
    log_->say("warning: " + to_string(warning));
  }
  void finished(const JobOutcome& outcome) override {
    log_->say(!outcome.status.is_ok() ? "the job failed: " + outcome.status.message()
              : outcome.complete      ? "the job is complete"
                                      : "the job is stopped");
    console_.finished(outcome);
  }
  void training(bool on, uint64_t before, uint64_t total) override {
    console_.training(on, before, total);
  }
  void saved(const std::string& path) override { console_.saved(path); }
  void pass_closed(const ClosedPass& pass) override { console_.pass_closed(pass); }
  void tested(const std::string& pass, const MetricReport& report) override {
    console_.tested(pass, report);
  }
  void wanted(const RolesWanted& roles) override {
    if (!supervised_) return;
    WantedRoles file;
    if (roles.workers >= 0) file.workers = static_cast<uint32_t>(roles.workers);
    if (roles.servers >= 0) file.servers = static_cast<uint32_t>(roles.servers);
    file.orders = roles.orders;
    file.ending = roles.ending;
    file.lost = roles.lost;
    file.leaving = roles.leaving;
    const Status written = ClusterFolder(output_).write_wanted(file);
    if (!written.is_ok()) say("warning: " + written.message());
  }
  JobConsole* console() { return &console_; }

 private:
  JobConsole console_;
  std::string output_;
  RoleLog* log_;
  const bool supervised_;  // somebody reads what is wanted
};

class CoordinatorProcess {
 public:
  CoordinatorProcess(const CoordinatorArguments& arguments, const std::atomic<bool>* stop)
      : arguments_(arguments), stop_(stop), log_("coordinator", false) {}
  // Nobody is served any more but who asks over HTTP.
  void close() {
    if (listener_) listener_->stop();
    if (folder_) folder_->remove_record();
  }

  Result<Summary> run() {
    Result<Summary> result = lead();
    if (!lock_) return result;  // another process has the folder
    const Status left = leave_end(role_.job.output, end_of(result, arguments_.resume_command));
    return result.is_ok() && !left.is_ok() ? Result<Summary>(left) : std::move(result);
  }

 private:
  Result<Summary> lead() {
    FLUX_RETURN_IF_ERROR(open_job());
    FLUX_ASSIGN_OR_RETURN(security_, security_options(arguments_.security));
    FLUX_RETURN_IF_ERROR(make_master());
    FLUX_RETURN_IF_ERROR(listen());
    FLUX_RETURN_IF_ERROR(serve_http());
    FLUX_RETURN_IF_ERROR(leave_record());
    master_->start();
    turn();
    linger();
    return events_->console()->result();
  }

  Status open_job() {
    FLUX_ASSIGN_OR_RETURN(spec_, read_spec(arguments_.job.job, arguments_.job.sets));
    FLUX_ASSIGN_OR_RETURN(Job job, parse_spec(spec_));
    if (job.output.empty())
      return invalid("{}: no output folder; add 'output: DIR' or --set output=DIR",
                     arguments_.job.job);
    FLUX_RETURN_IF_ERROR(absolute_paths(&job));
    // Workers may stand in other folders.
    if (!job.data.vocabulary.empty())
      spec_.sets.emplace_back("data.vocabulary", job.data.vocabulary);
    FLUX_ASSIGN_OR_RETURN(role_, open_role_job(std::move(job)));
    if (!arguments_.etcd.empty()) FLUX_RETURN_IF_ERROR(win_election());
    FLUX_ASSIGN_OR_RETURN(lock_, OutputLock::take(role_.job.output));
    FLUX_RETURN_IF_ERROR(forget_end(role_.job.output));
    FLUX_RETURN_IF_ERROR(check_data());
    folder_.emplace(role_.job.output);
    return log_.open(arguments_.log.empty() ? folder_->log_of("coordinator") : arguments_.log);
  }

  // A standby waits here until it leads; it holds nothing meanwhile.
  Status win_election() {
    ElectionSetup setup;
    setup.files = &real_files();
    setup.output = role_.job.output;
    setup.job = role_.job.name;
    setup.etcd = arguments_.etcd;
    setup.ca_file = arguments_.etcd_ca;
    setup.certificate = arguments_.etcd_cert;
    setup.key = arguments_.etcd_key;
    FLUX_ASSIGN_OR_RETURN(election_, open_election(setup));
    election_->announce({default_name("coordinator"), random_id(), arguments_.listen, ""});
    fmt::print("coordinator of {}: a candidate at {}\n", role_.job.name, arguments_.etcd);
    std::fflush(stdout);
    return election_->campaign(stop_);
  }

  // A mistyped file name is said before anything is started or waited for.
  Status check_data() {
    const Job& job = role_.job;
    FLUX_RETURN_IF_ERROR(expand_globs(job.test).status());
    const CheckpointStore store(join_path(job.output, "checkpoints"));
    size_t closed = 0;
    if (!arguments_.fresh) {
      const auto manifest = store.load_newest();
      if (manifest.is_ok()) closed = manifest.value().closed.size();
    }
    for (size_t p = closed; p < job.passes.size(); ++p)
      FLUX_RETURN_IF_ERROR(expand_globs(job.passes[p].train).status());
    return Status::ok();
  }

  uint32_t servers() const {
    return arguments_.standing.empty() ? arguments_.servers
                                       : static_cast<uint32_t>(arguments_.standing.size());
  }

  Status make_master() {
    const Job& job = role_.job;
    FLUX_ASSIGN_OR_RETURN(JobPlan plan, make_plan(role_, spec_, worker_threads(job, -1)));
    plan.rebalance = job.rebalance;
    plan.replicas = job.replicas != 0 ? job.replicas : servers() >= 2 ? 2 : 1;
    plan.checkpoint_every_s = checkpoint_every_s(job, true);
    JobConsoleOptions shown;
    shown.terminal = ::isatty(STDOUT_FILENO) != 0;
    shown.output = job.output;
    shown.job = job.name;
    shown.counted = {plan.slots, plan.key_per_example, role_.layout.shape.phases};
    shown.phases = plan.phases;
    shown.passes = plan.passes.size();
    FLUX_ASSIGN_OR_RETURN(const Precision precision, choose_precision(job.precision));
    shown.precision = precision_name(precision);  // workers on other machines choose for themselves
    shown.embedded = false;
    shown.mode = job.mode;
    shown.log_loss = role_.minimises_log_loss();
    shown.wire = job.wire;
    shown.resume_command = arguments_.resume_command;
    shown.json = arguments_.json;
    events_ = std::make_unique<LoggedConsole>(shown, &log_, arguments_.supervisor != 0);
    JobMasterOptions options;
    options.servers = servers();
    options.standing_servers = arguments_.standing;
    options.workers_wanted = arguments_.workers;
    if (arguments_.supervisor != 0) keep_wanted(&options);
    options.fresh = arguments_.fresh;
    options.incarnation = random_id();
    options.election = election_.get();
    const auto reach = [this](const std::string& address) { return reach_server(address); };
    master_ = std::make_unique<JobMaster>(std::move(plan), options, &loop_, &offload_,
                                          &real_files(), reach, events_.get());
    events_->console()->watch([this] { return master_->status(); },
                              [this] { return master_->progressive(); });
    events_->say(fmt::format("job {}: {}, {}, {}, {}, {}", job.name,
                             counted(job.tables.size(), "table"),
                             counted(role_.layout.shape.parameters, "dense parameter"), job.mode,
                             counted(servers(), "server"), counted(arguments_.workers, "worker")));
    if (const std::string note = age_note(job, arguments_.workers); !note.empty())
      events_->say(note);
    if (job.replicas > servers())
      events_->say(fmt::format(
          "warning: replicas: {}, but there is no second server: shards have no backup until "
          "another one joins (--servers {}, or flux scale --servers {})",
          job.replicas, job.replicas, job.replicas));
    return Status::ok();
  }

  // What the supervisor started, or operators asked of a coordinator before this one. It says
  // itself when it cannot start anybody, and it waits for hosts longer than people do.
  void keep_wanted(JobMasterOptions* options) const {
    options->servers_deadline_ns = options->workers_deadline_ns = kSupervisedWait;
    const auto before = folder_->read_wanted();
    const WantedRoles wanted = before.is_ok() ? before.value() : WantedRoles{};
    options->wanted_workers = wanted.workers.value_or(arguments_.workers);
    options->wanted_servers = wanted.servers.value_or(servers());
    options->wanted_orders = wanted.orders;
  }

  std::shared_ptr<ServerAdminPort> reach_server(const std::string& address) {
    const Caller caller{PeerRole::kCoordinator, "coordinator", security_, arguments_.chaos,
                        arguments_.faults};
    auto opened = open_channel(&loop_, address, caller, ++reached_);
    if (!opened.is_ok()) {
      log_.say(fmt::format("cannot reach {}: {}", address, opened.status().message()));
      return nullptr;
    }
    const auto reached = std::make_shared<ReachedServer>(std::move(opened).value(), &loop_);
    return {reached, &reached->admin};
  }

  Status listen() {
    CoordinatorServiceOptions watch;
    watch.on_worker_gone = [this](const std::string& name, uint64_t boot) {
      master_->worker_gone(name, boot, "its connection is closed");
    };
    watch.on_server_gone = [this](const std::string& name, uint64_t boot) {
      master_->server_gone(name, boot, "its connection is closed");
    };
    service_ = std::make_unique<CoordinatorService>(master_.get(), master_.get(), &loop_, watch);
    ListenerOptions options;
    options.addresses = {arguments_.listen};
    options.role = PeerRole::kCoordinator;
    options.name = "coordinator";
    options.security = security_;
    options.loop = &loop_;
    options.log = [this](const std::string& line) { log_.say(line); };
    FLUX_ASSIGN_OR_RETURN(listener_, Listener::start(options, *service_));
    log_.say("listens on " + listener_->addresses().front());
    return Status::ok();
  }

  Status serve_http() {
    FLUX_ASSIGN_OR_RETURN(const Address address, parse_address(arguments_.http));
    if (address.local) return invalid("--http {}: HTTP needs HOST:PORT", arguments_.http);
    HttpOptions options;
    options.host = address.host;
    options.port = address.port;
    FLUX_ASSIGN_OR_RETURN(options.token, folder_->make_secret(kAdminToken));
    if (!is_loopback_host(address.host)) options.certificates = security_.certificates;
    options.insecure = security_.insecure;
    HttpHooks hooks;
    hooks.status = [this] {
      const std::lock_guard lock(mutex_);
      return snapshot_;
    };
    hooks.stop = [this](const std::string& why) {
      log_.say("stop: " + why);
      http_stop_ = true;
    };
    hooks.logs = [this] { return log_.latest(); };
    hooks.operators.drain = [this](const std::string& node) {
      return on_loop([this, node] { return master_->drain(node); });
    };
    hooks.operators.scale = [this](int64_t workers, int64_t servers) {
      return on_loop([this, workers, servers] { return master_->scale(workers, servers); });
    };
    hooks.operators.move = [this](uint32_t shard, const std::string& server) {
      return on_loop([this, shard, server] { return master_->move(shard, server); });
    };
    hooks.operators.rebalance = [this](bool dry_run) {
      return on_loop([this, dry_run] { return master_->rebalance(dry_run); });
    };
    snapshot_ = master_->status();
    FLUX_ASSIGN_OR_RETURN(http_, HttpServer::start(options, hooks));
    log_.say("status at " + http_->url());
    if (arguments_.supervisor == 0)
      events_->say(
          fmt::format("listens on {}; status at {}", listener_->addresses().front(), http_->url()));
    if (arguments_.supervisor == 0 && arguments_.standing.empty())
      events_->say(fmt::format("waits for {} server{} to join, at most {} s", servers(),
                               servers() == 1 ? "" : "s",
                               JobMasterOptions().servers_deadline_ns / kSecond));
    return Status::ok();
  }

  // From a thread of the HTTP server: the master lives on the loop.
  template <typename Ask>
  auto on_loop(const Ask& ask) -> decltype(ask()) {
    const auto answer = std::make_shared<std::promise<decltype(ask())>>();
    auto told = answer->get_future();
    loop_.post(0, [answer, ask] { answer->set_value(ask()); });
    if (told.wait_for(kOperatorWait) != std::future_status::ready)
      return error(Code::kUnavailable, "the coordinator is busy; ask again");
    return told.get();
  }

  Status leave_record() {
    CoordinatorRecord record;
    record.pid = ::getpid();
    record.supervisor = arguments_.supervisor;
    record.host = host_name();
    record.listen = advertised(listener_->addresses().front());
    record.http = http_->url();
    record.certificates = http_->url().starts_with("https") ? security_.certificates : "";
    record.command = arguments_.resume_command;
    return folder_->write_record(record);
  }

  void turn() {
    TimeNs next = 0;
    bool stopping = false;
    while (!events_->console()->ended()) {
      loop_.run_one_until(loop_.now_ns() + kTick);
      if (!stopping && (stop_->load() || http_stop_)) {
        stopping = true;
        master_->stop(http_stop_ ? "asked to stop" : "stopped by a signal");
      }
      if (loop_.now_ns() < next) continue;
      next = loop_.now_ns() + kTick;
      tick();
    }
    tick();
  }

  void tick() {
    if (!arguments_.faults.empty())
      for (const int64_t pid : faults_.at(loop_.now_ns()).ooms)
        if (pid == ::getpid()) ask_for_more_memory();
    events_->console()->tick();
    JobStatus now = master_->status();
    const std::lock_guard lock(mutex_);
    snapshot_ = std::move(now);
  }

  void linger() {
    const TimeNs deadline = loop_.now_ns() + kLingerNs;
    while (listener_->connections() > 0 && loop_.now_ns() < deadline)
      loop_.run_one_until(loop_.now_ns() + kTick);
  }

  const CoordinatorArguments arguments_;
  const std::atomic<bool>* const stop_;
  RoleLog log_;
  JobSpec spec_;
  RoleJob role_;
  SecurityOptions security_;
  std::unique_ptr<Election> election_;  // null: terms are files in the output folder
  std::unique_ptr<OutputLock> lock_;
  std::optional<ClusterFolder> folder_;
  FaultFile faults_{arguments_.faults};
  IoLoop loop_;
  ThreadOffload offload_{&loop_};
  std::unique_ptr<LoggedConsole> events_;
  std::unique_ptr<JobMaster> master_;
  std::unique_ptr<CoordinatorService> service_;
  std::unique_ptr<Listener> listener_;
  std::unique_ptr<HttpServer> http_;
  std::mutex mutex_;  // guards snapshot_
  JobStatus snapshot_;
  std::atomic<bool> http_stop_{false};
  uint64_t reached_ = 0;  // servers
};

}  // namespace

int coordinator_command(const CoordinatorArguments& arguments) {
  end_when_out_of_memory();
  CoordinatorProcess process(arguments, install_stop_signal(arguments.supervisor == 0));
  const int code = end_of_run(process.run(), arguments.summary, arguments.json);
  process.close();
  // Everything is on disk and said. A client that reads slowly must not hold up the end, and the
  // threads that serve it cannot be stopped: so the process goes without waiting for them.
  std::fflush(nullptr);
  ::_exit(code);
}

}  // namespace flux
