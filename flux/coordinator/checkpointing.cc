#include "flux/coordinator/checkpointing.h"

#include <bit>
#include <ctime>

namespace flux {
namespace {

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  const size_t n = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return std::string(text, n);
}

constexpr uint8_t verdict_bit(Verdict verdict) {
  return static_cast<uint8_t>(1U << static_cast<unsigned>(verdict));
}
constexpr uint8_t kAppliedOnly = verdict_bit(Verdict::kApplied);
constexpr uint8_t kAppliedOrSkipped = kAppliedOnly | verdict_bit(Verdict::kSkipped);

// Verdicts of one pass over all shards.
class PassVerdicts {
 public:
  explicit PassVerdicts(const PassToClose& closing)
      : closing_(closing), geometry_(*closing.geometry) {}

  // A shard's ledger must be complete and agree with those before it.
  Status add(const ShardReplica& replica) {
    if (replica.geometry(closing_.pass) != geometry_.hash())
      return error(Code::kCorrupt, "shard {}: pass {} has another geometry", replica.shard(),
                   closing_.pass);
    return for_each_block([&](BatchId id, uint32_t batches, size_t first) {
      if ((replica.ledger().marked(id.block) & batch_mask(batches)) != batch_mask(batches))
        return error(Code::kCorrupt, "shard {} lacks batches of {}", replica.shard(),
                     to_string(id.block));
      for (id.batch = 0; id.batch < batches; ++id.batch) {
        const auto verdict = replica.ledger().find(id);
        const auto all = static_cast<uint8_t>(seen_[first + id.batch] |
                                              verdict_bit(verdict.value_or(Verdict::kLost)));
        if (!std::has_single_bit(all) && all != kAppliedOrSkipped)
          return error(Code::kCorrupt, "shard {} and shard 0 disagree about {}", replica.shard(),
                       to_string(id));
        seen_[first + id.batch] = all;
      }
      return Status::ok();
    });
  }
  PassAudit result() {
    PassAudit audit;
    audit.skipped_by_phase.resize(closing_.schedule.phases);
    const Status counted = for_each_block([&](BatchId id, uint32_t batches, size_t first) {
      for (uint32_t b = 0; b < batches; ++b) {
        if (seen_[first + b] == kAppliedOnly || seen_[first + b] == 0) continue;
        ++audit.skipped_batches;
        const uint64_t examples = geometry_.batch_records(id.block.block, b);
        audit.skipped_examples += examples;
        audit.skipped_by_phase[id.block.phase] += examples;
      }
      return Status::ok();
    });
    (void)counted;  // nothing in it fails
    return audit;
  }

 private:
  // Calls visit(id, batches, place of its first batch) until one fails.
  template <typename Visit>
  Status for_each_block(const Visit& visit) {
    size_t place = 0;
    for (uint32_t i = 0; i < closing_.schedule.sections(); ++i) {
      BatchId id;
      id.block = closing_.schedule.section(closing_.pass, i);
      for (id.block.block = 0; id.block.block < geometry_.blocks.size(); ++id.block.block) {
        const uint32_t batches = geometry_.batches_in(id.block.block);
        id.batches_in_block = static_cast<uint8_t>(batches);
        if (seen_.size() < place + batches) seen_.resize(place + batches);
        FLUX_RETURN_IF_ERROR(visit(id, batches, place));
        place += batches;
      }
    }
    return Status::ok();
  }

  const PassToClose& closing_;
  const Geometry& geometry_;
  std::vector<uint8_t> seen_;  // by batch: a bit for each verdict that some shard has
};

}  // namespace

Result<std::vector<ShardEntry>> link_shards(std::span<const SavedShard> saved,
                                            const Manifest* last) {
  std::vector<ShardEntry> entries;
  for (size_t s = 0; s < saved.size(); ++s) {
    const SavedShard& file = saved[s];
    if (file.shard != s)
      return error(Code::kCorrupt, "shard {} was saved where {} is expected", file.shard, s);
    ShardEntry entry{{file.name, file.bytes, file.hash}, file.op, file.stream_hash, file.rows};
    if (file.incremental) {
      if (last == nullptr || s >= last->shards.size() || last->shards[s].op != file.base_op ||
          last->shards[s].stream_hash != file.base_stream_hash ||
          last->shards[s].chain.size() >= kChainMax)
        return error(Code::kCorrupt,
                     "the increment of shard {} builds on operation {}, which the last checkpoint "
                     "does not have; the next one is written whole",
                     s, file.base_op);
      const ShardEntry& before = last->shards[s];
      entry.chain = before.chain;
      entry.chain.push_back({last->number, before.file, before.op, before.stream_hash});
    }
    entries.push_back(std::move(entry));
  }
  return entries;
}

ShardToLoad to_load(const Manifest& manifest, ShardId shard) {
  const ShardEntry& entry = manifest.shards[shard];
  ShardToLoad part{
      shard, entry.file.name, entry.file.bytes, entry.file.hash, entry.op, entry.stream_hash, {}};
  for (const ChainLink& link : entry.chain)
    part.chain.push_back(
        {link.number, link.file.name, link.file.bytes, link.file.hash, link.op, link.stream_hash});
  return part;
}

Result<PassAudit> audit_pass(const CheckpointStore& store, const Manifest& manifest,
                             const PassToClose& closing) {
  PassVerdicts verdicts(closing);
  for (size_t s = 0; s < manifest.shards.size(); ++s) {
    FLUX_ASSIGN_OR_RETURN(const ShardReplica replica, store.read_state(manifest, s));
    if (replica.incarnation() != manifest.incarnation)
      return error(Code::kCorrupt, "shard {} belongs to another incarnation", s);
    if (replica.ledger().watermark() != closing.pass)
      return error(Code::kCorrupt, "shard {}: watermark {}, pass {} is closing", s,
                   replica.ledger().watermark(), closing.pass);
    FLUX_RETURN_IF_ERROR(verdicts.add(replica));
  }
  return verdicts.result();
}

Result<Manifest> commit_checkpoint(const CheckpointStore& store, Manifest base,
                                   const Geometry* geometry, const PassToClose* closing) {
  const auto abandon = [&](const Status& status) {
    const Status ignored = store.abandon(base.number);
    (void)ignored;  // a leftover without a manifest is removed at the next start anyway
    return status;
  };
  base.created = utc_now();
  if (geometry != nullptr) {
    auto file = store.add(base.number, "geometry.json", geometry->to_json());
    if (!file.is_ok()) return abandon(file.status());
    base.files.push_back(file.value());
  }
  if (closing != nullptr) {
    const auto audit = audit_pass(store, base, *closing);
    if (!audit.is_ok()) return abandon(audit.status().with_context("the pass cannot close"));
    if (!base.closed.empty()) {
      ClosedPass& pass = base.closed.back();
      pass.skipped_examples = audit.value().skipped_examples;
      if (closing->schedule.phases > 1) pass.skipped_by_phase = audit.value().skipped_by_phase;
    }
  }
  const Status committed = store.commit(base);
  if (!committed.is_ok()) return abandon(committed);
  return base;
}

}  // namespace flux
