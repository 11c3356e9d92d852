#include "flux/server/server.h"

#include <algorithm>
#include <numeric>
#include <random>

#include "flux/base/hash.h"

namespace flux {
namespace {

constexpr TimeNs kTick = 100 * kMillisecond;

uint64_t draw_seed() {
  std::random_device device;
  return (static_cast<uint64_t>(device()) << 32) | device();
}

ReplicatorOptions replicator_options(const ServerOptions& options) {
  ReplicatorOptions o;
  o.executor = options.executor;
  o.reach = options.reach;
  o.bytes_max = options.forward_bytes_max;
  o.seed = hash_pair(options.seed, options.incarnation);
  return o;
}

ServerOptions with_defaults(ServerOptions options) {
  if (options.files == nullptr) options.files = &real_files();
  if (options.seed == 0) options.seed = draw_seed();
  return options;
}

Result<std::shared_ptr<const DenseRules>> make_dense_rules(const ServerOptions& options) {
  FLUX_RETURN_IF_ERROR(check_optimizer_options(options.dense_optimizer));
  std::vector<DenseRange> ranges = options.dense_ranges;
  if (ranges.empty()) ranges.push_back({options.parameters, options.dense_optimizer, 1});
  FLUX_ASSIGN_OR_RETURN(auto rules, DenseRules::make(ranges));
  if (rules->size() != options.parameters)
    return invalid("dense rules for {} parameters of {}", rules->size(), options.parameters);
  return rules;
}

ModelShape shape_of(const ServerOptions& options) {
  ModelShape shape{options.shards, {}, options.parameters, options.groups, {}, options.phases};
  for (const TableOptions& table : options.tables) {
    shape.dims.push_back(table.dim);
    if (options.groups > 1) shape.table_groups.push_back(table.group);
  }
  return shape;
}

}  // namespace

Status Server::check_options(const ServerOptions& options) {
  uint64_t parameters = 0;
  for (const PhaseShape& phase : options.phases) {
    parameters += phase.parameters;
    bool fits = phase.dims.size() == options.tables.size();
    for (size_t t = 0; fits && t < phase.dims.size(); ++t)
      fits = phase.dims[t] == 0 || phase.dims[t] == options.tables[t].dim;
    if (!fits) return invalid("a phase whose tables are not those of the model");
  }
  if (!options.phases.empty() && parameters != options.parameters)
    return invalid("phases with {} dense parameters of {}", parameters, options.parameters);
  if (options.shards < 1 || options.shards > 65536)
    return invalid("shards: {} is not between 1 and 65536", options.shards);
  if (options.groups < 1 || options.groups > std::min(options.shards, 256U))
    return invalid("{} groups of keys over {} shards; each needs one", options.groups,
                   options.shards);
  for (const TableOptions& table : options.tables)
    if (table.group > options.groups)
      return invalid("table '{}' is of group {}, there are {}", table.name, table.group,
                     options.groups);
  if (!options.places) return Status::ok();
  const uint64_t total = shape_of(options).all_shards();
  const std::vector<ShardAssignment>& places = options.places->shards;
  for (size_t i = 0; i < places.size(); ++i) {
    if (places[i].shard >= total)
      return invalid("shard {} for a server of a job with {} shards", places[i].shard, total);
    if (i > 0 && places[i - 1].shard >= places[i].shard)
      return invalid("the shards of a server must rise; {} follows {}", places[i].shard,
                     places[i - 1].shard);
  }
  return Status::ok();
}

Server::Server(const ServerOptions& options)
    : options_(with_defaults(options)),
      shape_(shape_of(options_)),
      replicator_(replicator_options(options_)),
      age_clock_(hash_pair(options_.seed, options_.incarnation)) {
  set_self(options_.self);
}

Server::~Server() {
  close();
}

void Server::give_up_waits() {
  std::vector<AdminWait> waits;
  {
    const std::lock_guard lock(mutex_);
    waits.swap(admin_waits_);
  }
  for (const AdminWait& wait : waits) replicator_.receipts().give_up(wait.receipt);
  replicator_.receipts().give_up_all();
}

Result<std::shared_ptr<Server>> Server::create(const ServerOptions& options) {
  FLUX_RETURN_IF_ERROR(check_options(options));
  std::shared_ptr<Server> server(new Server(options));
  for (const TableOptions& table : options.tables) {
    FLUX_ASSIGN_OR_RETURN(auto rule, make_optimizer(table.optimizer));
    server->table_rules_.push_back(std::move(rule));
    server->arenas_.push_back(make_row_arena(table));
  }
  for (uint32_t p = 0; p < std::max<size_t>(1, options.phases.size()); ++p)
    for (uint32_t g = 0; g < options.groups; ++g)
      server->widths_.push_back(server->shape_.widths(p, g));
  FLUX_ASSIGN_OR_RETURN(server->dense_rules_, make_dense_rules(options));
  server->replicator_.set_book(std::shared_ptr<FollowerBook>(server, server.get()));
  server->heard_coordinator();
  server->build_slots();
  server->arm_tick();
  return server;
}

void Server::build_slots() {
  slots_.resize(shape_.all_shards());
  for (ShardId id = 0; id < slots_.size(); ++id) {
    slots_[id] = std::make_unique<ShardSlot>();
    slots_[id]->replica = ShardReplica(id, options_.incarnation, {});
    slots_[id]->replica.set_role(ReplicaRole::kNone);
  }
  Assignments all;
  if (!options_.places)
    for (ShardId id = 0; id < slots_.size(); ++id)
      all.shards.push_back({id, options_.epoch, ReplicaRole::kPrimary, kNoServer, kAnyOp});
  const Assignments& places = options_.places ? *options_.places : all;
  for (const ShardAssignment& place : places.shards) {
    if (place.role == ReplicaRole::kNone) continue;
    ShardSlot& slot = *slots_[place.shard];
    slot.replica = ShardReplica(place.shard, options_.incarnation, place.epoch);
    slot.replica.set_role(place.role);
    slot.rows = make_rows(place.shard);
    slot.complete = true;
    if (place.role != ReplicaRole::kPrimary || place.backup == kNoServer) continue;
    const bool known = place.backup < places.servers.size();
    slot.backup.peer =
        replicator_.peer(place.backup, known ? places.servers[place.backup] : std::string());
    slot.backup.link = replicator_.new_link();
    slot.set_backup_link(slot.backup.link);
  }
}

ShardRows Server::make_rows(ShardId id) const {
  ShardRows rows;
  if (!is_dense(id)) {
    for (size_t t = 0; t < options_.tables.size(); ++t)
      rows.tables.emplace_back(options_.tables[t], table_rules_[t].get(), arenas_[t]);
    return rows;
  }
  rows.dense = std::make_unique<DenseShard>(*dense_rules_, dense_begin(id), dense_size(id));
  if (!initial_dense_.empty())
    rows.dense->init(std::span(initial_dense_).subspan(dense_begin(id), dense_size(id)));
  return rows;
}

void Server::init_dense(std::span<const float> parameters) {
  FLUX_CHECK(parameters.size() == options_.parameters, "{} initial parameters for {}",
             parameters.size(), options_.parameters);
  initial_dense_.assign(parameters.begin(), parameters.end());
  for (ShardId id = options_.shards; id < slots_.size(); ++id)
    if (slots_[id]->rows.dense)
      slots_[id]->rows.dense->init(parameters.subspan(dense_begin(id), dense_size(id)));
}

bool Server::is_serving(const ShardSlot& slot, TimeNs now) const {
  if (slot.replica.role() != ReplicaRole::kPrimary || !slot.complete || slot.superseded)
    return false;
  if (options_.executor == nullptr) return true;
  const TimeNs heard = std::max(coordinator_ns_.load(std::memory_order_relaxed),
                                slot.heard_ns.load(std::memory_order_relaxed));
  return now - heard < options_.lease_ns;
}

bool Server::serves(ShardId shard) const {
  if (shard >= slots_.size() || closed_) return false;
  const std::lock_guard lock(slots_[shard]->mutex);
  return is_serving(*slots_[shard], replicator_.now_ns());
}

std::vector<ShardWork> Server::work() const {
  std::vector<ShardWork> work;
  for (ShardId id = 0; id < slots_.size(); ++id)
    if (const uint64_t keys = slots_[id]->served.load(std::memory_order_relaxed); keys > 0)
      work.push_back({id, keys});
  return work;
}

void Server::heard_coordinator() {
  coordinator_ns_.store(replicator_.now_ns(), std::memory_order_relaxed);
}

AdminCall Server::primaries() const {
  AdminCall call;
  call.incarnation = options_.incarnation;
  for (ShardId id = 0; id < slots_.size(); ++id) {
    const std::lock_guard lock(slots_[id]->mutex);
    if (slots_[id]->replica.role() != ReplicaRole::kPrimary || !slots_[id]->complete) continue;
    call.shards.push_back(id);
    call.epochs.push_back(slots_[id]->replica.epoch());
  }
  return call;
}

void Server::arm_tick() {
  if (options_.executor == nullptr || closed_) return;
  options_.executor->post(kTick, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->tick();
  });
}

void Server::tick() {
  const TimeNs now = replicator_.now_ns();
  std::vector<ReceiptPtr> late;
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(admin_waits_, [&](const AdminWait& wait) {
      if (Receipts::is_settled(wait.receipt)) return true;
      if (now < wait.deadline_ns) return false;
      late.push_back(wait.receipt);
      return true;
    });
  }
  for (const ReceiptPtr& receipt : late) replicator_.receipts().give_up(receipt);
  if (now - probed_ns_ >= options_.lease_ns / 10) {
    probed_ns_ = now;
    probe_quiet_backups();
    drop_silent_learners();
  }
  compare_one();
  arm_tick();
}

// A learner counts for nothing, so nobody else notices that it is gone; what is kept for it would
// fill the bound.
void Server::drop_silent_learners() {
  constexpr int kPatience = 3;  // times the deadline of a verb
  for (const PeerPtr& peer : replicator_.silent_for(kPatience * options_.admin_deadline_ns))
    for (const auto& slot : slots_) {
      const std::lock_guard lock(slot->mutex);
      if (slot->learner.peer == peer) slot->learner = Follower();
    }
}

// A backup that says nothing because there is nothing to say is asked, so that the lease goes on.
void Server::probe_quiet_backups() {
  const TimeNs now = replicator_.now_ns();
  Outbox outbox(&replicator_);
  for (ShardId id = 0; id < slots_.size(); ++id) {
    ShardSlot& slot = *slots_[id];
    const std::lock_guard lock(slot.mutex);
    if (slot.replica.role() != ReplicaRole::kPrimary || slot.superseded || !slot.backup.peer)
      continue;
    if (now - slot.heard_ns.load(std::memory_order_relaxed) < options_.lease_ns / 10) continue;
    if (Replicator::is_open(slot.backup)) continue;  // it is being asked
    outbox.add(&slot.backup, true, id, slot.replica.epoch(), slot.replica.op(),
               slot.replica.stream_hash(), 0);
  }
  if (!outbox.has_forwards()) return;
  ReplicateRequest probe;
  probe.kind = OpKind::kProbe;
  probe.push.claim.incarnation = options_.incarnation;
  replicator_.send(&outbox, probe);
}

std::vector<ServerId> Server::silent() const {
  constexpr int kMissed = 3;  // words of a primary
  const TimeNs before = replicator_.now_ns() - kMissed * options_.lease_ns / 10;
  std::vector<ServerId> found;
  for (const auto& slot : slots_) {
    const std::unique_lock lock(slot->mutex, std::try_to_lock);
    if (!lock || slot->replica.role() != ReplicaRole::kBackup || slot->primary == kNoServer)
      continue;
    if (slot->primary_ns < before &&
        std::find(found.begin(), found.end(), slot->primary) == found.end())
      found.push_back(slot->primary);
  }
  return found;
}

ServerTotals Server::totals(std::span<const ShardId> shards) const {
  ServerTotals sum;
  sum.occurrences.resize(options_.tables.size());
  if (options_.parameters > 0) sum.dense.resize(std::max<size_t>(1, shape_.phases.size()));
  sum.pulls = pulls_.load(std::memory_order_relaxed);
  sum.pushes = pushes_.load(std::memory_order_relaxed);
  sum.duplicates = duplicates_.load(std::memory_order_relaxed);
  sum.refused = refused_.load(std::memory_order_relaxed);
  for (const ShardId id : shards) {
    if (id >= slots_.size()) continue;
    const ShardSlot& slot = *slots_[id];
    const std::lock_guard lock(slot.mutex);
    for (size_t t = 0; t < slot.rows.tables.size(); ++t) {
      sum.rows += slot.rows.tables[t].size();
      sum.memory_bytes += slot.rows.tables[t].memory_bytes();
      sum.occurrences[t] += slot.rows.tables[t].count_sum();
    }
    if (!slot.rows.dense) continue;
    const uint64_t examples = slot.rows.dense->examples();
    sum.dense[shape_.phase_of_dense(id - options_.shards)].add(examples, examples);
  }
  return sum;
}

uint64_t Server::content_hash(std::span<const ShardId> shards) const {
  uint64_t sum = 0;
  for (const ShardId id : shards) {
    if (id >= slots_.size()) continue;
    const ShardSlot& slot = *slots_[id];
    const std::lock_guard lock(slot.mutex);
    sum += content_of(slot);
  }
  return sum;
}

void Server::for_each_row(std::span<const ShardId> shards,
                          const std::function<void(Key, uint32_t)>& visit) const {
  for (const ShardId id : shards) {
    if (id >= slots_.size()) continue;
    const std::lock_guard lock(slots_[id]->mutex);
    if (slots_[id]->rows.tables.empty()) continue;
    slots_[id]->rows.tables[0].for_each(
        [&](Key key, uint32_t count, const float*) { visit(key, count); });
  }
}

}  // namespace flux
