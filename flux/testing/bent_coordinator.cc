#include "flux/testing/bent_coordinator.h"

#include "flux/base/hash.h"
#include "flux/checkpoint/increment_file.h"
#include "flux/checkpoint/store.h"
#include "flux/coordinator/decision_log.h"
#include "flux/storage/atomic_file.h"
#include "flux/testing/mem_files.h"

namespace flux {
namespace {
constexpr uint64_t kFileMax = 64ULL << 20;
constexpr size_t kLeasesKept = 8;
constexpr uint64_t kRumourServers = 4;  // may be more than there are
}  // namespace

// A batch of a block that was leased lately, applied or not.
void BentJob::add_lie(LeaseRequest* request) {
  Random& random = bent_->node->world()->random();
  if (leased_.empty() || !random.chance(bent_->lies)) return;
  const BlockLease& lease = leased_[random.below(leased_.size())];
  const BatchId id{lease.id, static_cast<uint8_t>(random.below(lease.batches)),
                   static_cast<uint8_t>(lease.batches)};
  if (bent_->node->world()->telling())
    bent_->node->world()->tell("a false hint: " + to_string(id) + " is applied");
  request->applied.push_back(id);
}

void BentJob::spread_rumour(WorkerId worker, WorkerReport* report) {
  SimWorld* world = bent_->node->world();
  Random& random = world->random();
  Bent::Rumour& rumour = bent_->rumour;
  const TimeNs now = bent_->node->now_ns();
  if (now >= rumour.until) {
    if (!random.chance(0.2)) return;
    rumour.server = static_cast<ServerId>(random.below(kRumourServers));
    rumour.by = random.chance(0.3) ? worker : 0;
    rumour.until = now + world->draw(kSecond, 8 * kSecond);
    ++bent_->facts->rumours;
    world->tell(fmt::format("a rumour: server {} is dead", rumour.server));
  }
  if (rumour.by == 0 || rumour.by == worker) report->suspects.push_back(rumour.server);
}

// Workers tell what every shard has told them.
void BentJob::check_hints(const LeaseRequest& request) const {
  for (const BatchId& id : request.applied)
    for (ShardId shard = 0; shard < bent_->shards; ++shard)
      if (!bent_->facts->replicas.ever_told(shard, id))
        return bent_->facts->fail(fmt::format(
            "a worker takes {} for applied, which shard {} has never said", to_string(id), shard));
}

void BentJob::lease(LeaseRequest request, std::function<void(Result<LeaseAnswer>)> done) {
  check_hints(request);
  if (bent_->bug == ClusterBug::kRefusalsLost) request.refused.clear();
  add_lie(&request);
  bent_->hinted.insert(request.applied.begin(), request.applied.end());
  inner_->lease(std::move(request), [this, done = std::move(done)](Result<LeaseAnswer> answer) {
    if (answer.is_ok() && answer.value().kind == LeaseAnswer::Kind::kBlock) {
      LeaseAnswer& given = answer.value();
      if (leased_.size() == kLeasesKept) leased_.erase(leased_.begin());
      leased_.push_back(given.lease);
      if (bent_->bug == ClusterBug::kLeaseLost && given.lease.attempt > 1) {
        LeaseAnswer wait;
        wait.wait_ms = 100;
        wait.reason = "for nothing";
        return done(wait);
      }
    }
    done(std::move(answer));
  });
}

void BentAdmin::holdings(std::string name, uint64_t term,
                         std::function<void(Result<Holdings>)> done) {
  bent_->job = name;
  inner_->holdings(
      std::move(name), term, [bent = bent_, done = std::move(done)](Result<Holdings> holdings) {
        if (!holdings.is_ok()) return done(std::move(holdings));
        for (const ShardState& state : holdings.value().shards) {
          ShardEpoch& latest = bent->found[{holdings.value().incarnation, state.shard}];
          if (state.complete && state.role != ReplicaRole::kLearner)
            latest = std::max(latest, state.epoch);
        }
        if (bent->bug == ClusterBug::kTermReused) holdings.value().term = 0;
        done(std::move(holdings));
      });
}

// A shard that is put back to a checkpoint may lack what was acknowledged since.
void BentAdmin::load(AdminCall call, LoadJob load, Done done) {
  for (size_t i = 0; i < call.shards.size(); ++i)
    bent_->facts->replicas.rolled_back(call.incarnation, call.shards[i], call.epochs[i]);
  if (bent_->bug == ClusterBug::kIncarnationInKey) remember_former(call, load);
  if (bent_->bug == ClusterBug::kEmptyPromoted) load = {load.folder, 0, {}, 0};
  inner_->load(std::move(call), std::move(load), std::move(done));
}

void BentAdmin::marked(AdminCall call, BlockId section, uint32_t blocks, bool any,
                       std::function<void(Result<std::vector<uint32_t>>)> done) {
  if (bent_->bug == ClusterBug::kMarksOfAny) any = true;
  if (bent_->bug == ClusterBug::kIncarnationInKey)
    return inner_->marked(
        call, section, blocks, any,
        [bent = bent_, call, section, done = std::move(done)](Result<std::vector<uint32_t>> masks) {
          BlockId id = section;
          for (id.block = 0; masks.is_ok() && id.block < masks.value().size(); ++id.block)
            masks.value()[id.block] &= ~former_marks(bent->facts->planted, call, id);
          done(std::move(masks));
        });
  if (bent_->bug != ClusterBug::kHintsTrusted)
    return inner_->marked(std::move(call), section, blocks, any, std::move(done));
  inner_->marked(
      std::move(call), section, blocks, any,
      [bent = bent_, section, done = std::move(done)](Result<std::vector<uint32_t>> masks) {
        if (masks.is_ok())
          for (const BatchId& id : bent->hinted)
            if (id.block.pass == section.pass && id.block.epoch == section.epoch &&
                id.block.phase == section.phase && id.block.block < masks.value().size())
              masks.value()[id.block.block] |= 1U << id.batch;
        done(std::move(masks));
      });
}

std::set<BatchId> logged_skips(Files* disk, const std::string& log) {
  const auto text = disk->read(log, kFileMax);
  std::set<BatchId> out;
  if (!text.is_ok()) return out;
  SimWorld world(1);  // reading cuts off a torn end: do that to a copy
  MemDisk copy(&world);
  MemFiles files(&copy, nullptr, {});
  if (!files.write_atomic("log", text.value()).is_ok()) return out;
  const auto decisions = DecisionLog(&files, "log").read();
  if (!decisions.is_ok()) return out;
  for (const Decision& decision : decisions.value())
    if (decision.kind == "verdict") out.insert(decision.batch);
  return out;
}

void BentAdmin::mark(AdminCall call, uint64_t geometry, std::vector<BatchId> ids, Verdict verdict,
                     Done done) {
  std::set<BatchId>& decided = bent_->facts->decided;
  decided.merge(logged_skips(bent_->disk, bent_->log));
  for (const BatchId& id : ids)
    if (!decided.contains(id))
      bent_->facts->fail(to_string(id) + " is marked before the verdict is logged");
  inner_->mark(std::move(call), geometry, std::move(ids), verdict, std::move(done));
}

void BentAdmin::void_member(AdminCall call, uint64_t round, BlockId block, Done done) {
  bent_->facts->voided.insert({call.incarnation, round, block});
  inner_->void_member(std::move(call), round, block, std::move(done));
}

void BentAdmin::seal(AdminCall call, States done) {
  const States sealed = [bent = bent_, call,
                         done = std::move(done)](const Result<std::vector<ShardState>>& states) {
    for (size_t i = 0; states.is_ok() && i < states.value().size(); ++i) {
      const ShardState& state = states.value()[i];
      if (state.sealed)
        bent->facts->sealed[{call.incarnation, state.shard, state.epoch}] = state.op;
    }
    done(states);
  };
  if (bent_->bug == ClusterBug::kUnsealed) return unsealed(call, sealed);
  inner_->seal(std::move(call), sealed);
}

// It says that it is sealed, and goes on.
void BentAdmin::unsealed(const AdminCall& call, const States& done) {
  inner_->holdings(bent_->job, call.term, [call, done](const Result<Holdings>& holdings) {
    if (!holdings.is_ok()) return done(holdings.status());
    std::vector<ShardState> states;
    for (const ShardState& state : holdings.value().shards)
      for (size_t i = 0; i < call.shards.size(); ++i)
        if (state.shard == call.shards[i] && state.epoch == call.epochs[i] &&
            state.role == ReplicaRole::kPrimary)
          states.push_back(state);
    if (states.size() != call.shards.size() || holdings.value().incarnation != call.incarnation)
      return done(error(Code::kStale, "a shard is not served here"));
    for (ShardState& state : states) state.sealed = true;
    done(states);
  });
}

// What is loaded in a new life was marked by a former one.
void BentAdmin::remember_former(const AdminCall& call, const LoadJob& load) {
  const CheckpointStore store(load.folder, bent_->disk);
  const auto manifest = store.load(load.number);
  if (load.number == 0 || !manifest.is_ok()) return;
  for (const ShardId shard : call.shards) {
    const auto state = store.read_state(manifest.value(), shard);
    if (state.is_ok() && state.value().incarnation() != call.incarnation)
      bent_->facts->planted.former[{call.incarnation, shard}] = state.value().ledger();
  }
}

uint32_t BentAdmin::former_marks(const PlantedFacts& planted, const AdminCall& call,
                                 const BlockId& block) {
  uint32_t marks = 0;
  for (const ShardId shard : call.shards) {
    const auto former = planted.former.find({call.incarnation, shard});
    if (former == planted.former.end() || block.pass < former->second.watermark()) continue;
    marks |= former->second.marked(block);
    for (const auto& [key, id] : planted.redone)
      if (key == former->first && id.block == block) marks &= ~(1U << id.batch);
  }
  return marks;
}

void BentAdmin::save(AdminCall call, std::string folder, uint64_t number, uint64_t committed,
                     std::function<void(Result<std::vector<SavedShard>>)> done) {
  if (bent_->bug == ClusterBug::kPrunedEarly)
    inner_->close_below(call, bent_->pass + 1, [](const Status&) {});
  const bool bends = bent_->bug == ClusterBug::kSnapshotTorn ||
                     bent_->bug == ClusterBug::kManifestUnaudited ||
                     bent_->bug == ClusterBug::kSnapshotByOp;
  const std::string path = join_path(folder, fmt::format("{:06}", number));
  // Whole files only where files are bent: such a one must be no base.
  inner_->save(call, std::move(folder), number, bends ? 0 : committed,
               [bent = bent_, call, path, bends,
                done = std::move(done)](Result<std::vector<SavedShard>> saved) {
                 if (saved.is_ok() && bends)
                   for (SavedShard& shard : saved.value()) bend(bent, path, &shard);
                 if (saved.is_ok()) check_saved(*bent, call, path, saved.value());
                 done(std::move(saved));
               });
}

// A file is of the life and the epoch that were asked for, else its history is another one.
void BentAdmin::check_saved(const Bent& bent, const AdminCall& call, const std::string& folder,
                            const std::vector<SavedShard>& saved) {
  for (const SavedShard& one : saved) {
    const std::string path = join_path(folder, one.name);
    const auto bytes = bent.disk->read(path, kFileMax);
    if (!bytes.is_ok()) continue;  // a later coordinator has removed it
    ShardReplica replica;
    if (is_increment(bytes.value())) {
      const auto increment = decode_increment(path, bytes.value());
      if (increment.is_ok()) replica = increment.value().replica;
    } else if (const auto image = decode_shard(path, bytes.value()); image.is_ok()) {
      replica = image.value().replica;
    }
    for (size_t i = 0; i < call.shards.size(); ++i)
      if (call.shards[i] == one.shard &&
          (replica.incarnation() != call.incarnation || replica.epoch() != call.epochs[i]))
        bent.facts->fail(fmt::format("{}: shard {} was saved as of epoch {}.{}, not {}.{}", path,
                                     one.shard, replica.epoch().term, replica.epoch().n,
                                     call.epochs[i].term, call.epochs[i].n));
  }
}

// The file of this operation is there already, whoever wrote it.
void BentAdmin::take_former(Bent* bent, const std::string& path, std::string bytes,
                            SavedShard* saved) {
  const auto [at, is_new] =
      bent->facts->planted.by_op.try_emplace({saved->shard, saved->op}, std::move(bytes));
  const auto image = decode_shard(path, at->second);
  if (is_new || !image.is_ok() || !bent->disk->write_synced(path, at->second).is_ok()) return;
  saved->bytes = at->second.size();
  saved->hash = hash_bytes(at->second);
  saved->stream_hash = image.value().replica.stream_hash();
  saved->rows = image.value().tables.empty() ? 0 : image.value().tables[0].rows;
}

void BentAdmin::bend(Bent* bent, const std::string& folder, SavedShard* saved) {
  const std::string path = join_path(folder, saved->name);
  const auto bytes = bent->disk->read(path, kFileMax);
  if (!bytes.is_ok()) return;
  if (bent->bug == ClusterBug::kSnapshotByOp) return take_former(bent, path, bytes.value(), saved);
  auto image = decode_shard(path, bytes.value());
  if (!image.is_ok()) return;
  const auto former = bent->saved.find(saved->shard);
  const ShardImage now = image.value();
  if (former != bent->saved.end()) {
    if (bent->bug == ClusterBug::kSnapshotTorn) {
      image.value().tables = former->second.tables;
      const std::string torn = encode_shard(image.value());
      if (bent->disk->write_synced(path, torn).is_ok()) {
        saved->bytes = torn.size();
        saved->hash = hash_bytes(torn);
        saved->rows = image.value().tables.empty() ? 0 : image.value().tables[0].rows;
      }
    } else {
      bent->shadows[path] = bytes.value();
      (void)bent->disk->write_synced(path, encode_shard(former->second));
    }
  }
  bent->saved[saved->shard] = now;
}

Status ShadowFiles::write_atomic(const std::string& path, std::string_view content) {
  if (bent_->bug != ClusterBug::kSkippedAsApplied || !path.ends_with("/manifest.json"))
    return inner_->write_atomic(path, content);
  auto manifest = decode_manifest(path, std::string(content));
  if (!manifest.is_ok()) return manifest.status();
  for (ClosedPass& pass : manifest.value().closed) pass.skipped_examples = 0;
  return inner_->write_atomic(path, encode_manifest(manifest.value()));
}

Result<std::string> ShadowFiles::read(const std::string& path, uint64_t bytes_max) {
  const auto it = bent_->shadows.find(path);
  if (it != bent_->shadows.end()) return it->second;
  return inner_->read(path, bytes_max);
}

}  // namespace flux
