// BatchWork: one batch on its way through a lane: examples, plan, rows, gradients. Reused.
// Threads: owned by its lane; a merged push reads the gradients of other lanes' batches while those
// lanes wait.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "flux/base/buffer.h"
#include "flux/client/key_plan.h"
#include "flux/client/ps_client.h"
#include "flux/data/batch.h"
#include "flux/worker/batch_source.h"

namespace flux {

struct BatchWork {
  enum class Stage : uint8_t { kPlanned, kPulling, kPulled };

  BatchWork(uint32_t shards, size_t tables)
      : plan(shards), rows(tables), row_gradients(tables), row_pointers(tables) {}

  // Makes room for the rows of the plan and a dense gradient, as the batch's phase has them.
  void size_for(const PhaseView& phase) {
    for (size_t t = 0; t < rows.size(); ++t) {
      rows[t].resize_discard(plan.unique() * phase.dims[t]);
      row_gradients[t].resize_discard(plan.unique() * phase.dims[t]);
      row_pointers[t] = rows[t].data();
    }
    dense_gradient.resize_discard(phase.parameters());
  }
  // The gradient as a part of a push.
  PushPart part() const {
    PushPart out;
    out.id = item.id;
    out.keys = plan.sharded();
    out.counts = plan.counts().data();
    for (const Buffer<float>& table : row_gradients) out.tables.push_back(table.data());
    out.dense = dense_gradient.data();
    out.examples = batch.size;
    out.lr_scale = item.lr_scale;
    return out;
  }
  uint64_t gradient_bytes() const {
    uint64_t floats = dense_gradient.size();
    for (const Buffer<float>& table : row_gradients) floats += table.size();
    return floats * sizeof(float);
  }

  BatchItem item;
  Batch batch;
  KeyPlan plan;
  std::vector<Buffer<float>> rows, row_gradients;  // by table
  std::vector<float*> row_pointers;
  Buffer<float> dense_gradient;
  std::shared_ptr<Buffer<float>> dense;  // pulled with the rows
  Stage stage = Stage::kPlanned;
  uint64_t pull_number = 0;
};

using BatchWorkPtr = std::shared_ptr<BatchWork>;

}  // namespace flux
