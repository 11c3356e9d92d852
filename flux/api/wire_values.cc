#include "flux/api/wire_values.h"

#include <map>

#include "flux/api/lr_scale.h"

namespace flux {

void put_block(const BlockId& id, wire::Block* out) {
  out->set_pass(id.pass);
  out->set_phase(id.phase);
  out->set_epoch(id.epoch);
  out->set_block(id.block);
}

Status take_block(const wire::Block& in, BlockId* out) {
  if (in.phase() > UINT16_MAX || in.epoch() > UINT16_MAX)
    return invalid("a block of phase {} epoch {}, at most {}", in.phase(), in.epoch(), UINT16_MAX);
  *out = BlockId{in.pass(), static_cast<uint16_t>(in.phase()), static_cast<uint16_t>(in.epoch()),
                 in.block()};
  return Status::ok();
}

void put_batch(const BatchId& id, wire::Batch* out) {
  put_block(id.block, out->mutable_block());
  out->set_batch(id.batch);
  out->set_batches_in_block(id.batches_in_block);
}

Status take_batch(const wire::Batch& in, BatchId* out) {
  FLUX_RETURN_IF_ERROR(take_block(in.block(), &out->block));
  if (in.batches_in_block() > kBatchesPerBlockMax || in.batch() >= in.batches_in_block())
    return invalid("batch {} of a block of {}; a block has 1 to {}", in.batch(),
                   in.batches_in_block(), kBatchesPerBlockMax);
  out->batch = static_cast<uint8_t>(in.batch());
  out->batches_in_block = static_cast<uint8_t>(in.batches_in_block());
  return Status::ok();
}

void put_batches(std::span<const BatchId> ids, WireBatches* out) {
  out->Reserve(static_cast<int>(ids.size()));
  for (const BatchId& id : ids) put_batch(id, out->Add());
}

Status take_batches(const WireBatches& in, const char* what, std::vector<BatchId>* out) {
  if (in.size() > kWireIdsMax)
    return invalid("{}: names {} batches, at most {}", what, in.size(), kWireIdsMax);
  out->resize(static_cast<size_t>(in.size()));
  for (int i = 0; i < in.size(); ++i) {
    const Status status = take_batch(in[i], &(*out)[static_cast<size_t>(i)]);
    if (!status.is_ok()) return status.with_context(what);
  }
  return Status::ok();
}

void put_epoch(const ShardEpoch& epoch, wire::Epoch* out) {
  out->set_term(epoch.term);
  out->set_n(epoch.n);
}

ShardEpoch take_epoch(const wire::Epoch& in) {
  return {in.term(), in.n()};
}

void put_epochs(std::span<const ShardEpoch> epochs, WireEpochs* distinct, WireNumbers* index) {
  std::map<ShardEpoch, uint32_t> found;
  uint32_t last = 0;  // number of the former shard's epoch
  for (size_t i = 0; i < epochs.size(); ++i) {
    if (i == 0 || epochs[i] != epochs[i - 1]) {
      const auto [at, is_new] = found.try_emplace(epochs[i], static_cast<uint32_t>(found.size()));
      last = at->second;
      if (is_new) put_epoch(epochs[i], distinct->Add());
      if (is_new && found.size() == 2)  // until here all had the first
        index->Resize(static_cast<int>(i), 0);
    }
    if (found.size() > 1) index->Add(last);
  }
}

Status take_epochs(const WireEpochs& distinct, const WireNumbers& index, size_t shards,
                   std::vector<ShardEpoch>* out) {
  if (!index.empty() && static_cast<size_t>(index.size()) != shards)
    return invalid("{} epochs for {} shards", index.size(), shards);
  if (index.empty() && shards > 0 && distinct.size() != 1)
    return invalid("{} epochs, and nothing says which shard has which", distinct.size());
  out->resize(shards);
  for (size_t i = 0; i < shards; ++i) {
    const uint32_t at = index.empty() ? 0 : index[static_cast<int>(i)];
    if (at >= static_cast<uint32_t>(distinct.size()))
      return invalid("epoch number {} of {}", at, distinct.size());
    (*out)[i] = take_epoch(distinct[static_cast<int>(at)]);
  }
  return Status::ok();
}

void put_call(const AdminCall& call, wire::Call* out) {
  out->set_incarnation(call.incarnation);
  out->set_term(call.term);
  out->mutable_shards()->Assign(call.shards.begin(), call.shards.end());
  put_epochs(call.epochs, out->mutable_epochs(), out->mutable_epoch_of());
}

Status take_call(const char* verb, const wire::Call& in, AdminCall* out) {
  out->incarnation = in.incarnation();
  out->term = in.term();
  FLUX_RETURN_IF_ERROR(take_rising(verb, in.shards(), &out->shards));
  const Status epochs = take_epochs(in.epochs(), in.epoch_of(), out->shards.size(), &out->epochs);
  return epochs.is_ok() ? epochs : epochs.with_context(verb);
}

Status take_rising(const char* verb, const WireNumbers& in, std::vector<ShardId>* out) {
  out->assign(in.begin(), in.end());
  for (size_t i = 0; i < out->size(); ++i) {
    const ShardId shard = (*out)[i];
    if (shard >= kWireShardsMax || (i > 0 && shard <= (*out)[i - 1]))
      return invalid("{}: shard {} at place {}; shards rise and are below {}", verb, shard, i,
                     kWireShardsMax);
  }
  return Status::ok();
}

Status take_lr_scale(const char* what, float number, float* out) {
  *out = number == 0 ? 1 : number;
  if (!is_lr_scale(*out)) return invalid("{}: a learning rate scaled by {}", what, number);
  return Status::ok();
}

void put_job(const JobSpec& job, wire::JobSpec* out) {
  out->set_path(job.path);
  out->set_text(job.text);
  for (const auto& [path, value] : job.sets) {
    wire::Override* set = out->add_sets();
    set->set_path(path);
    set->set_value(value);
  }
}

JobSpec take_job(const wire::JobSpec& in) {
  JobSpec job{in.path(), in.text(), {}};
  for (const wire::Override& set : in.sets()) job.sets.emplace_back(set.path(), set.value());
  return job;
}

}  // namespace flux
