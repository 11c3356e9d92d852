// MergedPush: several batches summed into one push: the union of their keys, the weighted sum of
// their gradients, the sum of their counts.
//
// The weight of a part is fixed when the set is made (examples of the batch / examples of the whole
// set) and stays the same when a shard turns out to have some of the set and the rest is summed
// anew. Parts are added in the order given, so the same parts give the same bits.
// Ranges of the dense vector whose gradients are sums over examples (`sums`) are added up as they
// are: whatever is merged, each batch is in the sum once and whole.
// Threads: one owner. Memory is reused from merge to merge.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "flux/api/server.h"
#include "flux/base/buffer.h"
#include "flux/base/flat_range.h"
#include "flux/client/key_plan.h"

namespace flux {

// One batch and its gradient; pointers into somebody's buffers.
struct PushPart {
  BatchId id;
  ShardedKeys keys;
  const uint32_t* counts = nullptr;
  std::vector<const float*> tables;
  const float* dense = nullptr;
  uint64_t examples = 0;
  float weight = 1;
  float lr_scale = 1;
};

class MergedPush {
 public:
  explicit MergedPush(const ModelShape& shape, std::vector<FlatRange> sums = {});

  void merge(std::span<const PushPart> parts);

  ShardedKeys keys() const { return plan_.sharded(); }
  size_t unique() const { return plan_.unique(); }
  const uint32_t* counts() const { return counts_.data(); }
  const std::vector<const float*>& tables() const { return pointers_; }
  const float* dense() const { return dense_.data(); }
  uint64_t examples() const { return examples_; }
  uint64_t bytes() const;  // of gradients held

 private:
  void add_rows(const PushPart& part, const uint32_t* position);

  const ModelShape shape_;
  std::vector<FlatRange> sums_;
  KeyPlan plan_;
  std::vector<uint64_t> all_keys_;   // of all parts, one after the other
  std::vector<uint8_t> all_groups_;  // theirs
  std::vector<uint32_t> counts_;
  std::vector<Buffer<float>> tables_;
  std::vector<const float*> pointers_;
  Buffer<float> dense_;
  uint64_t examples_ = 0;
};

// The weights of batches of these sizes in a mean over all their examples.
std::vector<float> mean_weights(std::span<const uint64_t> examples);
// The one scale of the learning rate that a push of these parts carries: theirs if they agree, else
// the mean over all their examples. Fixed with the set, like the weights.
float merged_lr_scale(std::span<const PushPart> parts);

}  // namespace flux
