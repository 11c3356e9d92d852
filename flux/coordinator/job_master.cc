#include "flux/coordinator/job_master.h"

#include <utility>

#include "flux/base/text.h"
#include "flux/coordinator/job_state.h"
#include "flux/election/folder_election.h"
#include "flux/storage/atomic_file.h"

namespace flux {

JobMaster::State::State(JobPlan plan, JobMasterOptions options, Executor* executor,
                        Offload* offload, Files* files, Reach reach, JobEvents* events)
    : plan_(std::move(plan)),
      options_(std::move(options)),
      executor_(executor),
      offload_(offload),
      files_(files),
      reach_(std::move(reach)),
      events_(events),
      checkpoint_folder_(join_path(plan_.output, "checkpoints")),
      incarnation_(options_.incarnation),
      workers_members_(options_.member_lease_ns),
      servers_members_(options_.member_lease_ns, 0, options_.suspect_grace_ns),
      suspicions_(options_.suspicion) {
  if (options_.election == nullptr)
    own_election_ = std::make_unique<FolderElection>(files_, plan_.output, plan_.name);
  wanted_.workers = options_.wanted_workers;
  wanted_.servers = options_.wanted_servers;
  wanted_.orders = options_.wanted_orders;
  election_ = options_.election != nullptr ? options_.election : own_election_.get();
  started_ = phase_since_ = now();  // its status may be asked for before it starts
}

std::string JobMaster::State::in_output(std::string_view name) const {
  return join_path(plan_.output, name);
}

void JobMaster::State::tell_bad_records(const std::string& whose, const Geometry& geometry) {
  if (const uint64_t bad = geometry.bad_records(); bad > 0)
    say(fmt::format("{}: {} bad record{} set aside, see {}", whose, with_commas(bad),
                    bad == 1 ? " is" : "s are", in_output("bad_records")));
}

void JobMaster::State::start() {
  started_ = phase_since_ = no_worker_since_ = now();
  tell_supervisor();
  open_folder();
  executor_->post(options_.tick_ns, guard([this] { tick(); }));
}

void JobMaster::State::tick() {
  if (phase_ == Phase::kEnded) return;
  if (term_ != 0)
    if (const Status held = election_->lease_held(); !held.is_ok()) give_up(held);
  check_servers();
  check_asks();
  pump_places();
  watch_loads();
  recount_if();
  log_lr();
  for (const Member& member : workers_members_.expire(now()))
    lose_worker(member.id, true,
                fmt::format("{} was not heard for {:.1f} s", member.name,
                            static_cast<double>(options_.member_lease_ns) * 1e-9));
  const bool needs_workers = phase_ == Phase::kTraining || phase_ == Phase::kEvaluating;
  if (!workers_.empty() || !needs_workers) no_worker_since_ = now();
  if (needs_workers && now() - no_worker_since_ > options_.workers_deadline_ns) give_up_waiting();
  if (phase_ == Phase::kTraining || phase_ == Phase::kEvaluating) expire_blocks();
  if (phase_ == Phase::kTraining) stop_if_due();
  if (phase_ == Phase::kTraining) maybe_checkpoint();
  if (phase_ == Phase::kDraining) drained();
  if (phase_ == Phase::kEnding) left();
  pump();
  executor_->post(options_.tick_ns, guard([this] { tick(); }));
}

JobMaster::JobMaster(JobPlan plan, JobMasterOptions options, Executor* executor, Offload* offload,
                     Files* files, Reach reach, JobEvents* events)
    : state_(std::make_shared<State>(std::move(plan), std::move(options), executor, offload, files,
                                     std::move(reach), events)) {}

JobMaster::~JobMaster() = default;

MetricReport JobMaster::progressive() const {
  return state_->progressive();
}

void JobMaster::start() {
  state_->start();
}
void JobMaster::stop(const std::string& why) {
  state_->stop(why);
}
void JobMaster::worker_gone(const std::string& name, uint64_t boot, const std::string& why) {
  state_->worker_gone(name, boot, why);
}
void JobMaster::server_gone(const std::string& name, uint64_t boot, const std::string& why) {
  state_->server_gone(name, boot, why);
}
JobStatus JobMaster::status() const {
  return state_->status();
}
void JobMaster::join(JoinRequest request, std::function<void(Result<JoinReply>)> done) {
  state_->join_worker(request, done);
}
void JobMaster::lease(LeaseRequest request, std::function<void(Result<LeaseAnswer>)> done) {
  state_->lease(request, std::move(done));
}
void JobMaster::report(WorkerId worker, WorkerReport report,
                       std::function<void(Result<ReportAnswer>)> done) {
  state_->report_worker(worker, report, done);
}
void JobMaster::map(std::function<void(Result<ClusterMap>)> done) {
  done(state_->cluster_map());
}
void JobMaster::geometry(uint64_t hash, std::function<void(Result<std::string>)> done) {
  state_->geometry_text(hash, done);
}
void JobMaster::leave(LeaseRequest last, WorkerReport report, Status why,
                      std::function<void(Status)> done) {
  state_->leave_worker(last, report, why, done);
}
void JobMaster::join(ServerJoin request, std::function<void(Result<ServerJoinReply>)> done) {
  state_->join_server(request, done);
}
void JobMaster::report(ServerReport report, std::function<void(Result<bool>)> done) {
  state_->report_server(report, done);
}
Status JobMaster::drain(const std::string& node) {
  return state_->drain_node(node);
}
Status JobMaster::scale(int64_t workers, int64_t servers) {
  return state_->scale(workers, servers);
}
Status JobMaster::move(ShardId shard, const std::string& server) {
  return state_->move_shard(shard, server);
}
Result<std::string> JobMaster::rebalance(bool dry_run) {
  return state_->rebalance(dry_run);
}

}  // namespace flux
