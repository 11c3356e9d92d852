#include "flux/testing/bent_coordinator.h"

#include "flux/base/hash.h"
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
  inner_->load(std::move(call), std::move(load), std::move(done));
}

void BentAdmin::marked(AdminCall call, BlockId section, uint32_t blocks, bool any,
                       std::function<void(Result<std::vector<uint32_t>>)> done) {
  if (bent_->bug == ClusterBug::kMarksOfAny) any = true;
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

void BentAdmin::save(AdminCall call, std::string folder, uint64_t number, uint64_t committed,
                     std::function<void(Result<std::vector<SavedShard>>)> done) {
  if (bent_->bug == ClusterBug::kPrunedEarly)
    inner_->close_below(call, bent_->pass + 1, [](const Status&) {});
  const bool bends =
      bent_->bug == ClusterBug::kSnapshotTorn || bent_->bug == ClusterBug::kManifestUnaudited;
  if (!bends)
    return inner_->save(std::move(call), std::move(folder), number, committed, std::move(done));
  const std::string path = join_path(folder, fmt::format("{:06}", number));
  // Whole files only: a bent one must be no base.
  inner_->save(std::move(call), std::move(folder), number, 0,
               [bent = bent_, path, done = std::move(done)](Result<std::vector<SavedShard>> saved) {
                 if (saved.is_ok())
                   for (SavedShard& shard : saved.value()) bend(bent, path, &shard);
                 done(std::move(saved));
               });
}

void BentAdmin::bend(Bent* bent, const std::string& folder, SavedShard* saved) {
  const std::string path = join_path(folder, saved->name);
  const auto bytes = bent->disk->read(path, kFileMax);
  if (!bytes.is_ok()) return;
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
