// BatchWork: one batch on its way through the trainer: examples, plan, rows, gradients. Reused.
// Threads: the trainer's; while it is prepared, one member of the team.
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

// What a batch needs from its pull to the end of its push. It goes from batch to batch, so that no
// more of it is in use than batches are between those two.
struct BatchSpace {
  std::vector<Buffer<float>> rows, row_gradients;  // by table
  Buffer<float> dense_gradient;
};

struct BatchWork : BatchSpace {
  enum class Stage : uint8_t { kPlanned, kPulling, kPulled };

  explicit BatchWork(const ModelShape& shape)
      : BatchSpace{std::vector<Buffer<float>>(shape.dims.size()),
                   std::vector<Buffer<float>>(shape.dims.size()),
                   {}},
        plan(shape),
        row_pointers(shape.dims.size()),
        first_rows(shape.dims.size()),
        last_rows(shape.dims.size()) {}

  BatchSpace& space() { return *this; }
  // Makes room for the rows of the plan and a dense gradient, as the batch's phase has them. Rows
  // lie by position, also where a table has only some.
  void size_for(const ModelShape& shape, uint32_t number) {
    const PhaseView phase = shape.phase(number);
    for (size_t t = 0; t < rows.size(); ++t) {
      const ShardRange shards = shape.table_shards(t);
      first_rows[t] = plan.begin()[shards.begin];
      last_rows[t] = plan.begin()[shards.end];
      rows[t].resize_discard(last_rows[t] * phase.dims[t]);
      row_gradients[t].resize_discard(last_rows[t] * phase.dims[t]);
      row_pointers[t] = rows[t].data() + first_rows[t] * phase.dims[t];
    }
    dense_gradient.resize_discard(phase.parameters());
  }
  // Its gradient as a push; the caller adds what is called when it is over.
  PushWork push() const {
    PushWork out;
    out.ids = {item.id};
    out.geometry = item.geometry;
    out.keys = plan.sharded();
    out.counts = plan.counts().data();
    for (size_t t = 0; t < rows.size(); ++t)
      out.tables.push_back(row_gradients[t].data() + (row_pointers[t] - rows[t].data()));
    out.dense = dense_gradient.data();
    out.examples = batch.size;
    out.lr_scale = item.lr_scale;
    out.bytes = gradient_bytes();
    out.step = item.step;
    out.pulled = marks;
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
  std::vector<float*> row_pointers;           // to the first row of each table
  std::vector<size_t> first_rows, last_rows;  // its positions in the plan
  std::vector<uint8_t> groups;                // of each key, where the model has several
  std::shared_ptr<Buffer<float>> dense;       // pulled with the rows
  PullMarks marks;                            // of the pull of the rows
  Stage stage = Stage::kPlanned;
  uint64_t pull_number = 0;
};

using BatchWorkPtr = std::shared_ptr<BatchWork>;

}  // namespace flux
