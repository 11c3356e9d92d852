#include "flux/main/run_job.h"

#include <memory>
#include <utility>

#include "flux/base/cpu.h"
#include "flux/base/text.h"
#include "flux/base/thread_executor.h"
#include "flux/base/thread_offload.h"
#include "flux/checkpoint/store.h"
#include "flux/client/posted_job.h"
#include "flux/coordinator/job_master.h"
#include "flux/main/job_console.h"
#include "flux/main/job_end.h"
#include "flux/main/job_roles.h"
#include "flux/main/output_lock.h"
#include "flux/main/worker_setup.h"
#include "flux/server/local_admin.h"
#include "flux/storage/atomic_file.h"
#include "flux/worker/worker_threads.h"

namespace flux {
namespace {

constexpr TimeNs kTick = 100 * kMillisecond;
constexpr TimeNs kEmbeddedLease = 3600 * kSecond;  // one process: nobody dies alone

class EmbeddedRun {
 public:
  EmbeddedRun(RoleJob role, const RunOptions& options)
      : options_(options), role_(std::move(role)), jobs_(factory()) {}

  Result<Summary> run() {
    const std::string& output = role_.job.output;
    FLUX_ASSIGN_OR_RETURN(lock_, OutputLock::take(output));
    FLUX_RETURN_IF_ERROR(forget_end(output));
    Result<Summary> result = run_locked();
    const Status left = leave_end(output, end_of(result, options_.resume_command));
    return result.is_ok() && !left.is_ok() ? Result<Summary>(left) : std::move(result);
  }

 private:
  Result<Summary> run_locked() {
    const Job& job = role_.job;
    FLUX_RETURN_IF_ERROR(remove_leftovers());
    FLUX_ASSIGN_OR_RETURN(precision_, choose_precision(job.precision));
    threads_ = worker_threads(job, -1);
    FLUX_RETURN_IF_ERROR(make_master());
    console_->say(fmt::format("job {}: {}, {}, {}, {}", job.name,
                              counted(job.tables.size(), "table"),
                              counted(role_.layout.shape.parameters, "dense parameter"),
                              counted(threads_, "thread"), precision_name(precision_)) +
                  fmt::format(" on {}", isa_name()));
    master_->start();
    ServerJoin server;
    server.name = "server-0";
    server.address = "this process";
    master_->join(server, [](const Result<ServerJoinReply>&) {});
    tick();
    train();
    while (!console_->ended()) control_.run_one_until(steady_now_ns() + kTick);
    return console_->result();
  }

  // Of a run that was killed. Only names that we write: the folder may hold a person's files.
  Status remove_leftovers() const {
    const std::string& output = role_.job.output;
    for (const char* name : {"curve.tsv", "curve.svg", "summary.json", "end.json", "report.html"})
      FLUX_RETURN_IF_ERROR(remove_all(join_path(output, name) + std::string(kTemporarySuffix)));
    const std::string cuts = join_path(output, "geometry");
    FLUX_ASSIGN_OR_RETURN(const auto names, read_folder(cuts));
    for (const std::string& name : names)
      if (name.ends_with(kTemporarySuffix)) FLUX_RETURN_IF_ERROR(remove_all(join_path(cuts, name)));
    return Status::ok();
  }

  ServerFactory factory() const {
    return [this](const OpenJob& open) -> Result<std::shared_ptr<Server>> {
      FLUX_ASSIGN_OR_RETURN(ServerOptions options, server_options(role_, open.incarnation, {}));
      options.places = open.places;
      options.self = open.self;
      FLUX_ASSIGN_OR_RETURN(auto server, Server::create(options));
      server->init_dense(role_.initial_parameters());
      return server;
    };
  }

  Status make_master() {
    const Job& job = role_.job;
    FLUX_ASSIGN_OR_RETURN(JobPlan plan, make_plan(role_, JobSpec{job.path, "", {}}, threads_));
    JobConsoleOptions console;
    console.terminal = options_.terminal;
    console.output = job.output;
    console.job = job.name;
    console.counted = {plan.slots, plan.key_per_example, role_.layout.shape.phases};
    console.phases = plan.phases;
    console.passes = plan.passes.size();
    console.precision = precision_name(precision_);
    console.threads = threads_;
    console.mode = job.mode;
    console.log_loss = role_.minimises_log_loss();
    console.resume_command = options_.resume_command;
    console.json = options_.json;
    console.quiet = options_.quiet;
    console_ = std::make_unique<JobConsole>(console);
    JobMasterOptions options;
    options.fresh = options_.fresh;
    options.incarnation = incarnation_;
    options.member_lease_ns = kEmbeddedLease;
    options.report_every_ns = kTick;
    options.drain_deadline_ns = kEmbeddedLease;
    options.announce_members = false;
    master_ = std::make_unique<JobMaster>(
        std::move(plan), options, &control_, &offload_, &real_files(),
        [this](const std::string&) {
          return std::make_shared<LocalAdmin>(&jobs_, &server_offload_);
        },
        console_.get());
    console_->watch([this] { return master_->status(); },
                    [this] { return master_->progressive(); });
    return Status::ok();
  }

  void tick() {
    console_->tick();
    if (options_.stop != nullptr && options_.stop->load() && !console_->ended())
      master_->stop("stopped");
    control_.post(kTick, [this] { tick(); });
  }

  // The worker on threads of its own; this thread turns coordinator and worker alike.
  void train() {
    PostedJob port(master_.get(), &control_, &control_);
    AgentOptions options;
    options.join.name = "worker-0";
    options.join.boot = 1;
    options.join.threads = threads_;
    options.silence_ns = kEmbeddedLease;
    WorkerThreads worker(options, &control_, &port, std::make_unique<ThreadExecutor>(),
                         [this](const JoinReply& reply) { return set_up(reply); });
    const WorkerOutcome outcome = worker.run();
    // What it died of, it has told the coordinator, unless that was gone first.
    if (!outcome.status.is_ok() && !console_->ended()) master_->stop(outcome.status.message());
  }

  Result<WorkerSetup> set_up(const JoinReply& reply) {
    FLUX_ASSIGN_OR_RETURN(const auto space, jobs_.find(reply.incarnation));
    FLUX_ASSIGN_OR_RETURN(WorkerSetup setup, make_worker_setup(role_, reply, threads_));
    setup.trainer.pull_ahead = 0;  // a call in this process has no wait to be hidden
    // Whatever number the server has in this life of the job: it is the one here.
    setup.reach = [space](ServerId, const std::string&) {
      return std::shared_ptr<ServerPort>(space, space->server());
    };
    return setup;
  }

  RunOptions options_;
  RoleJob role_;
  std::unique_ptr<OutputLock> lock_;
  Precision precision_ = Precision::kFp32;
  uint32_t threads_ = 1;
  const uint64_t incarnation_ = random_id();
  ServerJobs jobs_;
  ThreadExecutor control_;
  std::unique_ptr<JobConsole> console_;
  std::unique_ptr<JobMaster> master_;
  ThreadOffload server_offload_{&control_};
  ThreadOffload offload_{&control_};
};

}  // namespace

Result<Summary> run_job(const Job& job, const RunOptions& options) {
  FLUX_ASSIGN_OR_RETURN(RoleJob role, open_role_job(job));
  return EmbeddedRun(std::move(role), options).run();
}

}  // namespace flux
