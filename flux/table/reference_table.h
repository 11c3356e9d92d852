// ReferenceTable: a sparse table as plainly as it can be written, kept for ever as the oracle of
// SparseShard: a standard map from key to a vector of floats, and the scalar reference optimizers.
// One per table, not per shard: it needs no shards. Not thread-safe. For tests.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "flux/optimizer/optimizer.h"
#include "flux/table/sparse_shard.h"

namespace flux {

class ReferenceTable {
 public:
  struct Row {
    uint32_t count = 0;
    std::vector<float> floats;  // weights, then state
  };

  explicit ReferenceTable(const TableOptions& options);

  // As SparseShard.
  void pull(std::span<const Key> keys, float* out) const;
  void push(std::span<const Key> keys, const float* gradients, const uint32_t* counts,
            float lr_scale = 1);
  uint64_t count_sum() const;

  const std::unordered_map<Key, Row>& rows() const { return rows_; }

 private:
  Row fresh_row(Key key) const;

  TableOptions options_;
  std::unique_ptr<const Optimizer> optimizer_;
  std::unordered_map<Key, Row> rows_;
};

}  // namespace flux
