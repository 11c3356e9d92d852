#include "flux/coordinator/checkpointing.h"

#include <algorithm>
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

// One shard's ledger must be complete and agree with the first shard's.
Status audit_shard(const ShardReplica& replica, const Ledger& first, const PassToClose& closing) {
  const Geometry& geometry = *closing.geometry;
  const auto may_differ = [&](const BatchId& id) {
    return std::find(closing.skipped.begin(), closing.skipped.end(), id) != closing.skipped.end();
  };
  if (replica.geometry(closing.pass) != geometry.hash())
    return error(Code::kCorrupt, "shard {}: pass {} has another geometry", replica.shard(),
                 closing.pass);
  for (uint32_t i = 0; i < closing.schedule.sections(); ++i) {
    BatchId id;
    id.block = closing.schedule.section(closing.pass, i);
    for (id.block.block = 0; id.block.block < geometry.blocks.size(); ++id.block.block) {
      const uint32_t batches = geometry.batches_in(id.block.block);
      if ((replica.ledger().marked(id.block) & batch_mask(batches)) != batch_mask(batches))
        return error(Code::kCorrupt, "shard {} lacks batches of {}", replica.shard(),
                     to_string(id.block));
      id.batches_in_block = static_cast<uint8_t>(batches);
      for (id.batch = 0; id.batch < batches; ++id.batch)
        if (replica.ledger().find(id) != first.find(id) && !may_differ(id))
          return error(Code::kCorrupt, "shard {} and shard 0 disagree about {}", replica.shard(),
                       to_string(id));
    }
  }
  return Status::ok();
}

}  // namespace

Status audit_pass(const CheckpointStore& store, const Manifest& manifest,
                  const PassToClose& closing) {
  Ledger first;
  for (size_t s = 0; s < manifest.shards.size(); ++s) {
    FLUX_ASSIGN_OR_RETURN(const ShardImage image, store.read_shard(manifest, s));
    if (image.replica.incarnation() != manifest.incarnation)
      return error(Code::kCorrupt, "shard {} belongs to another incarnation", s);
    if (image.replica.ledger().watermark() != closing.pass)
      return error(Code::kCorrupt, "shard {}: watermark {}, pass {} is closing", s,
                   image.replica.ledger().watermark(), closing.pass);
    if (s == 0) first = image.replica.ledger();
    FLUX_RETURN_IF_ERROR(audit_shard(image.replica, first, closing));
  }
  return Status::ok();
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
    const Status audit = audit_pass(store, base, *closing);
    if (!audit.is_ok()) return abandon(audit.with_context("the pass cannot close"));
  }
  const Status committed = store.commit(base);
  if (!committed.is_ok()) return abandon(committed);
  return base;
}

}  // namespace flux
