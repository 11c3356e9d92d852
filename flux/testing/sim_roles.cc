#include "flux/testing/sim_roles.h"

#include <algorithm>

#include "flux/api/verbs.h"
#include "flux/api/wire_data.h"
#include "flux/base/hash.h"
#include "flux/client/remote_admin.h"
#include "flux/client/remote_replica.h"
#include "flux/client/remote_server.h"
#include "flux/nn/graph.h"
#include "flux/rpc/payload.h"
#include "flux/testing/bent_ports.h"

namespace flux {
namespace {

constexpr TimeNs kSlowWork = 20 * kMillisecond;
constexpr TimeNs kSilence = 40 * kSecond;
constexpr RetryOptions kOnce{.try_timeout_ns = kSecond / 2, .tries_max = 1};  // asked again above
constexpr RetryOptions kQuick{.try_timeout_ns = kSecond, .deadline_ns = 10 * kSecond};
constexpr RetryOptions kSlow{.try_timeout_ns = kSecond, .deadline_ns = 30 * kSecond};

std::shared_ptr<const Graph> sim_graph() {
  GraphBuilder builder({kSimSlots, kSimDense, {{"weight", 1}}});
  const auto add = [&](const char* name, const char* op, std::vector<std::string> inputs,
                       std::map<std::string, AttrValue> attrs) {
    const Status status = builder.add({name, op, std::move(inputs), std::move(attrs), ""});
    FLUX_CHECK(status.is_ok(), "{}", status.message());
  };
  add("sparse", "embedding", {},
      {{"table", std::string("weight")}, {"combine", std::string("sum")}});
  add("linear", "fc", {"dense"}, {{"units", int64_t{1}}});
  add("logit", "add", {"sparse", "linear"}, {});
  add("loss", "logistic_loss", {"logit", "label"}, {});
  auto graph = builder.finish();
  FLUX_CHECK(graph.is_ok(), "{}", graph.status().message());
  return graph.value();
}

std::vector<Geometry> geometries(const ClusterPlan& plan) {
  std::vector<Geometry> out;
  for (const SimPass& pass : plan.passes) out.push_back(sim_geometry(pass));
  return out;
}

std::vector<SimFlaws> flaws_of(const ClusterPlan& plan) {
  std::vector<SimFlaws> out;
  for (const SimPass& pass : plan.passes) out.push_back(pass.flaws);
  return out;
}

// Real loads are too few keys to matter: these change every two seconds, so that shards move.
std::function<std::vector<ShardWork>()> made_up_work(SimNode* node, uint32_t shards) {
  const auto totals = std::make_shared<std::vector<ShardWork>>(shards);
  return [node, totals] {
    const auto now = static_cast<uint64_t>(node->now_ns() / (2 * kSecond));
    for (ShardId s = 0; s < totals->size(); ++s)
      (*totals)[s] = {s, (*totals)[s].keys + 1 + hash_pair(now, s) % 1000};
    return *totals;
  };
}

// A stub and the channel it calls over, which must live longer.
struct HeldAdmin {
  std::unique_ptr<Channel> channel;
  RemoteAdmin admin;
  BentAdmin bent;
  HeldAdmin(std::unique_ptr<Channel> c, SimNode* node, uint64_t seed, Bent* b)
      : channel(std::move(c)),
        admin(channel.get(), node, seed, {.quick = kQuick, .slow = kSlow}),
        bent(std::shared_ptr<ServerAdminPort>(std::shared_ptr<void>(), &admin), b) {}
};

struct HeldServer {
  std::unique_ptr<Channel> channel;
  RemoteServer server;
  HeldServer(std::unique_ptr<Channel> c, const ModelShape& shape)
      : channel(std::move(c)),
        server(channel.get(), shape,
               {.pull_timeout_ns = 2 * kSecond, .push_timeout_ns = 4 * kSecond}) {}
};

}  // namespace

ClusterContext::ClusterContext(uint64_t seed, ClusterBug planted, SimWorld::Tell tell)
    : bug(planted),
      world(seed, std::move(tell)),
      plan(draw_cluster_plan(&world.random())),
      net(&world, plan.net),
      disk(&world),
      eye(&disk, nullptr, {}),
      audit(geometries(plan), plan.schedule, plan.shards, all_shards(), flaws_of(plan)) {
  static const std::shared_ptr<const Graph> kGraph = sim_graph();
  graph = kGraph;
  net.untraced = [](Verb verb) { return verb == static_cast<Verb>(ApiVerb::kTotals); };
  net.verb_name = [](Verb verb) { return std::string(verb_name(static_cast<ApiVerb>(verb))); };
}

ModelShape ClusterContext::shape() const {
  ModelShape shape;
  shape.sparse_shards = plan.shards;
  shape.dims = {1};
  shape.parameters = graph->parameter_count() * plan.schedule.phases;
  // The same network twice, over the same rows.
  if (plan.schedule.phases > 1)
    shape.phases.assign(plan.schedule.phases, {shape.dims, graph->parameter_count()});
  return shape;
}

std::string server_address(uint32_t index) {
  return fmt::format("sim:server-{}", index);
}

// --- process ---

SimProcess::SimProcess(ClusterContext* context, const std::string& name)
    : context_(context),
      node_(std::make_unique<SimNode>(&context->world, name, context->world.random().next())),
      files_(&context->disk, node_.get(), context->disk_faults()),
      offload_(node_.get(), kSlowWork) {
  Random& random = context->world.random();
  // Clocks of machines differ by hours, and run a little too fast or too slow.
  if (random.chance(0.3))
    node_->set_clock(context->world.draw(0, 7200 * kSecond), 0.8 + random.uniform() * 0.5);
  if (!context->healed && random.chance(0.1))
    node_->set_slow(context->world.draw(0, 50 * kMillisecond));
}

void SimProcess::kill() {
  node_->kill();
  context_->net.node_died(node_.get());
}

void SimProcess::heal() {
  files_.heal();
  node_->set_slow(0);
  node_->pause(0);
}

void SimProcess::end(const Status& status) {
  if (over_) return;
  over_ = true;
  status_ = status;
  context_->world.tell(
      fmt::format("{} ends{}{}", name(), status.is_ok() ? "" : ": ", status.message()));
}

// --- coordinator ---

CoordinatorProcess::CoordinatorProcess(ClusterContext* context, uint64_t life, uint64_t incarnation,
                                       std::function<void(const JobOutcome&)> finished)
    : SimProcess(context, fmt::format("coordinator-{}", life)),
      incarnation_(incarnation),
      finished_(std::move(finished)),
      shadow_(&files_, &bent_) {
  bent_.bug = context->bug;
  bent_.node = node_.get();
  bent_.facts = &context->facts;
  bent_.disk = &context->eye;
  bent_.log = kDecisionLog;
  bent_.shards = context->all_shards();
  if (!context->healed && context->plan.lie > 0) bent_.lies = 0.1;
  bent_.rumours = !context->healed && context->plan.rumours;
  if (context->bug == ClusterBug::kZombieCommit)
    blind_ = std::make_unique<BlindElection>(&shadow_, kSimOutput, incarnation_);
  master_ = std::make_unique<JobMaster>(
      make_plan(), make_options(), node_.get(), &offload_, &shadow_,
      [this](const std::string& address) { return reach(address); }, this);
  bent_job_ = std::make_unique<BentJob>(master_.get(), &bent_);
  CoordinatorServiceOptions options;
  options.on_worker_gone = [this](const std::string& name, uint64_t boot) {
    master_->worker_gone(name, boot, "its connection is gone");
  };
  options.on_server_gone = [this](const std::string& name, uint64_t boot) {
    master_->server_gone(name, boot, "its connection is gone");
  };
  service_ = std::make_unique<CoordinatorService>(bent_job_.get(), master_.get(), node_.get(),
                                                  std::move(options));
  context_->net.listen(kCoordinatorAddress, node_.get(), service_.get());
  master_->start();
}

CoordinatorProcess::~CoordinatorProcess() {
  kill();
}

void CoordinatorProcess::say(const std::string& line) {
  if (line.starts_with("lost server")) context_->facts.replicas.server_lost();
  if (line.find(" for its load: ") != std::string::npos) ++context_->facts.rebalanced;
  if (line.find("members cannot reach it") != std::string::npos) ++context_->facts.condemned;
  if (line.starts_with("took over job")) {
    for (const auto& [key, epoch] : bent_.found)
      context_->facts.replicas.taken_over(key.first, key.second, epoch);
    // Servers that it waited for in vain count no more than those that it would have lost.
    const size_t from = line.find(" from ");
    const uint64_t holders = std::strtoull(line.c_str() + from + 6, nullptr, 10);
    for (uint64_t n = holders; n < context_->plan.servers; ++n)
      context_->facts.replicas.server_lost();
  }
  context_->world.tell(name() + ": " + line);
}

void CoordinatorProcess::finished(const JobOutcome& outcome) {
  finished_(outcome);
}

JobPlan CoordinatorProcess::make_plan() const {
  const ClusterPlan& sim = context_->plan;
  JobPlan plan;
  plan.spec = {"sim.yaml", "simulated", {}};
  plan.name = "sim";
  plan.output = kSimOutput;
  plan.model = {{"sim", "1"}};
  plan.sparse_shards = sim.shards;
  plan.all_shards = context_->all_shards();
  for (const SimPass& pass : sim.passes) plan.passes.push_back(fmt::format("p{}", pass.pass));
  plan.schedule = sim.schedule;
  plan.counted_phases = sim.schedule.phases;
  plan.mode = sim.mode;
  plan.replicas = sim.replicas;
  plan.rebalance = sim.rebalance;
  plan.skip_limit = 1;
  plan.deterministic = sim.deterministic;
  plan.checkpoint_every_s = sim.checkpoint_every_s;
  plan.checkpoint_keep = sim.checkpoint_keep;
  plan.slots = kSimSlots;
  plan.has_test = sim.has_test;
  plan.scan = [sim](uint32_t pass, const std::atomic<bool>*) -> Result<Geometry> {
    return sim_geometry(sim.passes[pass]);
  };
  plan.check_frozen = [](uint32_t, const Geometry&) -> Result<std::string> {
    return std::string();
  };
  plan.scan_test = [](const std::atomic<bool>*) -> Result<Geometry> {
    return sim_geometry({1000, 2, 4, 3, 2, 0});
  };
  return plan;
}

JobMasterOptions CoordinatorProcess::make_options() const {
  JobMasterOptions options;
  options.servers = context_->plan.servers;
  options.election = blind_.get();
  options.workers_wanted = static_cast<uint32_t>(context_->plan.workers);
  options.incarnation = incarnation_;
  options.member_lease_ns = 3 * kSecond;
  options.call_timeout_ns = 30 * kSecond;
  options.block_timeout_floor_ns = 5 * kSecond;
  options.lease_hold_ns = kSecond / 2;
  options.drain_deadline_ns = 15 * kSecond;
  options.tick_ns = 100 * kMillisecond;
  if (context_->plan.rebalance)  // as often as it can
    options.rebalance = {kSecond / 4, 1, 0.02, 0.001, 0.8, 1, 2};
  options.suspicion = {kSecond, 2 * kSecond, 8 * kSecond};  // often, in short runs
  return options;
}

std::shared_ptr<ServerAdminPort> CoordinatorProcess::reach(const std::string& address) {
  const auto held = std::make_shared<HeldAdmin>(
      context_->net.connect(node_.get(), address, PeerRole::kCoordinator), node_.get(), draw_seed(),
      &bent_);
  return std::shared_ptr<ServerAdminPort>(held, &held->bent);
}

// --- server ---

ServerProcess::ServerProcess(ClusterContext* context, uint32_t index)
    : SimProcess(context, fmt::format("server-{}", index)),
      index_(index),
      jobs_([this](const OpenJob& job) { return build(job); }) {
  const FindServer find = [this](uint64_t incarnation) { return server(incarnation); };
  buggy_ = std::make_unique<BuggyServer>(&jobs_, context->bug, node_.get(), find, &context->facts);
  watched_ = std::make_unique<WatchedServer>(buggy_.get(), find, &context->facts);
  ServerServiceOptions options;
  options.slow = [this](std::function<void()> task) {
    slow_.push_back(std::move(task));
    if (slow_.size() == 1) node_->post(context_->world.draw(0, kSlowWork), [this] { run_slow(); });
    return true;
  };
  options.data = watched_.get();
  service_ = std::make_unique<ServerService>(&jobs_, std::move(options));
  fenceless_ = std::make_unique<FencelessService>(service_.get(), &context->facts,
                                                  [this] { return incarnation_; });
  const bool fenced = context->bug != ClusterBug::kNoIncarnationCheck;
  listens_ = fenced ? static_cast<Service*>(service_.get()) : fenceless_.get();
  context_->net.listen(server_address(index), node_.get(), listens_);
  join();
}

Result<std::shared_ptr<Server>> ServerProcess::build(const OpenJob& job) {
  incarnation_ = job.incarnation;
  context_->facts.lives.insert(job.incarnation);
  ServerOptions options;
  options.shards = context_->plan.shards;
  options.tables.resize(1);
  options.tables[0].name = "weight";
  options.tables[0].dim = 1;
  options.tables[0].init = "zero";
  const bool differs = context_->bug == ClusterBug::kRowsDiffer && index_ % 2 == 1;
  options.tables[0].optimizer = {.rule = "sgd", .lr = differs ? 0.2F : 0.1F};
  options.dense_optimizer = {.rule = "sgd", .lr = 0.1F};
  const ModelShape shape = context_->shape();
  options.parameters = shape.parameters;
  options.phases = shape.phases;
  options.incarnation = job.incarnation;
  options.places = job.places;
  options.self = job.self;
  options.files = &files_;
  options.executor = node_.get();
  options.reach = [this](const std::string& address) { return reach(address); };
  options.seed = draw_seed() | 1;
  options.chain = {4, 1e9};  // tiny shards: by size alone all of them would be whole
  options.log = [this](const std::string& line) {
    context_->world.tell(name() + ": " + line);
    if (line.find("differs from its primary") != std::string::npos)
      context_->facts.fail(name() + ": " + line);
  };
  FLUX_ASSIGN_OR_RETURN(auto server, Server::create(options));
  std::vector<float> initial;
  for (uint32_t phase = 0; phase < context_->plan.schedule.phases; ++phase) {
    const auto one = context_->graph->initial_parameters(1 + phase);
    initial.insert(initial.end(), one.begin(), one.end());
  }
  server->init_dense(initial);
  return server;
}

std::shared_ptr<ReplicaPort> ServerProcess::reach(const std::string& address) {
  const auto shape = std::make_shared<const ModelShape>(context_->shape());
  const auto remote = std::make_shared<RemoteReplica>(
      node_.get(),
      [this, address] { return context_->net.connect(node_.get(), address, PeerRole::kServer); },
      [shape](uint64_t) { return shape; });
  return std::make_shared<BentReplica>(remote, context_->bug, context_->plan.schedule.passes);
}

ServerProcess::~ServerProcess() {
  kill();
  // A push that waits for its sync step holds its job, which holds the push.
  for (const auto& job : jobs_.all()) job->close();
}

const Server* ServerProcess::server(uint64_t incarnation) const {
  const auto found = jobs_.find(incarnation);
  return found.is_ok() ? found.value()->server() : nullptr;
}

// One at a time, in order.
void ServerProcess::run_slow() {
  slow_.front()();
  slow_.pop_front();
  if (!slow_.empty()) node_->post(context_->world.draw(0, kSlowWork), [this] { run_slow(); });
}

void ServerProcess::join() {
  channel_ = context_->net.connect(node_.get(), kCoordinatorAddress, PeerRole::kServer, [this] {
    if (member_) member_->broken();
  });
  registry_ = std::make_unique<RemoteRegistry>(channel_.get(), node_.get(), draw_seed(), kOnce);
  ServerMemberOptions options;
  options.join = {name(), node_->boot(), server_address(index_), "sim", 0};
  options.coordinator = kCoordinatorAddress;
  options.first_answer_ns = options.silence_ns = kSilence;
  options.work_every_ns = 100 * kMillisecond;
  service_->set_boot(options.join.boot);
  ServerMemberHooks hooks;
  hooks.new_boot = [this] {
    const uint64_t boot = draw_seed();
    service_->set_boot(boot);
    return boot;
  };
  hooks.suspects = [this] { return jobs_.suspects(); };
  hooks.silent = [this] { return jobs_.silent(); };
  hooks.differed = [this] { return jobs_.differed(); };
  hooks.rss_bytes = [] { return uint64_t{0}; };
  hooks.work = [this] { return jobs_.work(); };
  if (context_->plan.rebalance) hooks.work = made_up_work(node_.get(), context_->all_shards());
  hooks.heard = [this] { jobs_.heard_coordinator(); };
  hooks.joined = [](ServerId) {};
  hooks.forget = [this] {
    context_->world.tell(name() + " is no member any more and begins anew");
    service_->forget_all();
  };
  hooks.end = [this](const Status& status) { end(status); };
  member_ = std::make_unique<ServerMember>(registry_.get(), node_.get(), std::move(options),
                                           std::move(hooks));
  member_->start();
}

void ServerProcess::probe(uint64_t incarnation, uint64_t geometry, const BatchId& id) {
  const Server* server = this->server(incarnation);
  if (server == nullptr) return;
  std::vector<ShardId> shards;
  std::vector<ShardEpoch> epochs;
  for (const ShardId shard : server->primaries().shards) {
    if (shard >= server->sparse_shards()) continue;
    shards.push_back(shard);
    epochs.push_back(server->replica(shard).epoch());
    --epochs.back().n;
  }
  const std::vector<uint32_t> begin(server->sparse_shards() + 1, 0);
  const uint64_t no_key = 0;
  const uint32_t no_count = 0;
  const float no_gradient = 0;
  const std::vector<const float*> tables = {&no_gradient};
  PushRequest request;
  request.claim = {incarnation, geometry, {id}, Verdict::kApplied};
  request.shards = shards;
  request.epochs = epochs;
  request.keys.keys = &no_key;
  request.keys.begin = begin.data();
  request.counts = &no_count;
  request.tables = tables;
  if (shards.empty()) return;
  watched_->push(request, [](const PushReply&) {});
  probe_former_life(request);
}

void ServerProcess::probe_former_life(PushRequest request) {
  const std::set<uint64_t>& lives = context_->facts.lives;
  const auto other = std::find_if(lives.begin(), lives.end(),
                                  [&](uint64_t life) { return life != request.claim.incarnation; });
  if (other == lives.end()) return;
  request.claim.incarnation = *other;
  Buffer<uint16_t> halves;
  const auto encoded = encode_push(request, context_->shape(), WireValue::kFp32, &halves);
  if (!encoded.is_ok()) return;
  const auto bytes = std::make_shared<PayloadMemory>();
  bytes->control = encoded.value().control;
  bytes->payload.resize_discard(total_bytes(encoded.value().payload));
  gather(encoded.value().payload, bytes->payload.data());
  RpcRequest message;
  message.verb = static_cast<Verb>(ApiVerb::kPush);
  message.peer = "a former life";
  message.control = bytes->control;
  message.payload = bytes->payload.span();
  message.memory = bytes;
  listens_->handle(std::move(message), Responder([](const Status&, const RpcAnswer&) {}));
}

// --- worker ---

WorkerProcess::WorkerProcess(ClusterContext* context, uint32_t index)
    : SimProcess(context, fmt::format("worker-{}", index)), index_(index) {
  channel_ = context_->net.connect(node_.get(), kCoordinatorAddress, PeerRole::kWorker);
  job_ = std::make_unique<RemoteJob>(
      channel_.get(), node_.get(), draw_seed(),
      RemoteJobOptions{.plain = kQuick,
                       .lease = {.try_timeout_ns = 2 * kSecond, .deadline_ns = 10 * kSecond}});
  AgentOptions options;
  options.join.name = name();
  options.join.boot = node_->boot();
  options.join.host = "sim";
  options.silence_ns = kSilence;
  options.drain_ns = 5 * kSecond;
  options.report_auc = false;
  agent_ =
      std::make_unique<WorkerAgent>(options, node_.get(), job_.get(), &offload_, &driver_,
                                    [this](const JoinReply& joined) { return set_up(joined); });
  agent_->start([this](const WorkerOutcome& outcome) { end(outcome.status); });
}

WorkerProcess::~WorkerProcess() {
  kill();
}

Result<WorkerSetup> WorkerProcess::set_up(const JoinReply& joined) {
  const ClusterPlan& plan = context_->plan;
  const ModelShape shape = context_->shape();
  const auto answers = std::make_shared<BentAnswers>();
  WorkerSetup setup;
  setup.mode = plan.mode;
  setup.deterministic = plan.deterministic;
  setup.trainer.batch_max = 4;
  setup.trainer.pull_ahead = static_cast<uint32_t>(context_->world.random().below(3));
  setup.trainer.metrics = false;
  setup.trainer.answer_deadline_ns = 30 * kSecond;
  setup.trainer.client.incarnation = joined.incarnation;
  setup.trainer.client.shape = shape;
  setup.trainer.client.session.answer_timeout_ns = 300 * kMillisecond;
  setup.trainer.client.session.timeout_max_ns = 2 * kSecond;
  setup.trainer.client.session.pushes_max =
      1 + static_cast<uint32_t>(context_->world.random().below(4));
  setup.trainer.client.pull_deadline_ns = 20 * kSecond;
  setup.executor = node_.get();
  setup.team = std::make_shared<Team>(1);
  for (uint32_t phase = 0; phase < plan.schedule.phases; ++phase) {
    FLUX_ASSIGN_OR_RETURN(auto net, Net::compile(context_->graph, {Precision::kFp32, 4, false}));
    setup.nets.push_back(std::move(net));
  }
  setup.reach = [this, shape, answers](ServerId, const std::string& address) {
    const auto held = std::make_shared<HeldServer>(
        context_->net.connect(node_.get(), address, PeerRole::kWorker), shape);
    const std::shared_ptr<ServerPort> port(held, &held->server);
    return std::make_shared<BentPort>(port, context_->bug, node_.get(), answers);
  };
  setup.open_dataset = [this](const Geometry& geometry) { return open_data(geometry); };
  return setup;
}

Result<std::shared_ptr<const Dataset>> WorkerProcess::open_data(const Geometry& geometry) {
  const std::vector<SimPass>& passes = context_->plan.passes;
  FLUX_ASSIGN_OR_RETURN(const uint32_t pass, sim_pass_of(geometry));
  const auto die = [this] {
    ++context_->facts.poisoned;
    context_->world.tell(name() + " dies of a deadly record");
    node_->kill();
  };
  Geometry cut = geometry;
  // The files have changed a little after the pass was opened.
  const bool changed = context_->world.now_ns() > kSecond;
  if (context_->bug == ClusterBug::kListedAnew && changed) ++cut.shuffle_seed;
  SimFlaws flaws = pass < passes.size() ? passes[pass].flaws : SimFlaws();
  flaws.left_out = context_->bug == ClusterBug::kLocalSkip;
  FLUX_ASSIGN_OR_RETURN(auto data, open_sim_dataset(cut, std::move(flaws), die));
  return std::shared_ptr<const Dataset>(std::move(data));
}

}  // namespace flux
