// DenseShard: one contiguous range of the fused dense parameters, with its optimizer state.
//
// To an update rule it is one long row, or one for each of its pieces (table/dense_rules.h), which
// lie one after the other. `examples` is the integer oracle, as `count` is for
// sparse rows: it grows by the number of examples that each push stands for, and is never decayed.
// Threads: none inside; the owner holds the shard's lock around every call (pull may run
// concurrently with pull). Failure: load() refuses bytes that are not this shard's.
//
// Saved form (little-endian): offset u64, size u64, examples u64, size weights f32, state f32 of
// each piece in turn.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "flux/base/buffer.h"
#include "flux/base/status.h"
#include "flux/optimizer/optimizer.h"
#include "flux/table/dense_rules.h"

namespace flux {

class DenseShard {
 public:
  // The range [offset, offset + size) of the flat vector, zero until init() or load().
  // `rules` (or the one `rule`) must outlive the shard.
  DenseShard(const DenseRules& rules, size_t offset, size_t size);
  DenseShard(const Optimizer* rule, size_t offset, size_t size);

  size_t offset() const { return offset_; }
  size_t size() const { return size_; }
  uint64_t examples() const { return examples_; }

  // Starts anew from size() values: fresh state, no examples.
  void init(std::span<const float> values);
  void pull(float* out) const;
  // One step with the gradient of size() floats. lr_scale: see Optimizer; each piece multiplies it
  // by its own. A summary has no learning rate, so no scale changes what it becomes.
  void push(const float* gradient, uint64_t examples, float lr_scale = 1);

  size_t saved_bytes() const;
  void save(std::string* out) const;  // appends
  // kCorrupt if the bytes are not a saved shard of this range and rule; nothing changes then.
  Status load(std::string_view saved);
  uint64_t content_hash() const;  // of all that is saved

 private:
  DenseShard(std::vector<DensePiece> pieces, size_t offset, size_t size);
  void init_state();

  size_t offset_;
  size_t size_;
  std::vector<DensePiece> pieces_;
  uint64_t examples_ = 0;
  Buffer<float> floats_;  // weights, then state
};

}  // namespace flux
