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

  BatchWork(uint32_t shards, const std::vector<uint32_t>& dims, size_t parameters)
      : plan(shards),
        rows(dims.size()),
        row_gradients(dims.size()),
        row_pointers(dims.size()),
        dense_gradient(parameters) {}

  // Makes room for the rows of the plan.
  void size_rows(const std::vector<uint32_t>& dims) {
    for (size_t t = 0; t < dims.size(); ++t) {
      rows[t].resize_discard(plan.unique() * dims[t]);
      row_gradients[t].resize_discard(plan.unique() * dims[t]);
      row_pointers[t] = rows[t].data();
    }
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
