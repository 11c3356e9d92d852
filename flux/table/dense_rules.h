// DenseRules: which update rule has which part of the flat dense vector.
//
// Most parameters follow the job's dense optimizer; some have a learning rate of their own, some
// are summaries (sums that decay), see nn/graph.h. Neighbours with the same settings are one run:
// to a rule it is one vector, so that a model with one rule has one run and the state it always
// had. A dense shard cuts runs at its ends; both ends depend on the model alone, never on the
// cluster. Immutable; any thread. Failure: kInvalid from settings that no rule can have.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "flux/base/flat_range.h"
#include "flux/base/status.h"
#include "flux/optimizer/optimizer.h"

namespace flux {

// The next `size` floats of the vector.
struct DenseRange {
  size_t size = 0;
  OptimizerOptions optimizer;
  float lr_scale = 1;  // multiplies the learning rate
};

// A part of a run that lies in one shard.
struct DensePiece {
  const Optimizer* rule = nullptr;
  size_t size = 0;
  float lr_scale = 1;
};

class DenseRules {
 public:
  // `ranges` lie one after the other and are all of the vector.
  static Result<std::shared_ptr<const DenseRules>> make(const std::vector<DenseRange>& ranges);

  size_t size() const { return size_; }
  // Of [offset, offset + size), in order.
  std::vector<DensePiece> pieces(size_t offset, size_t size) const;
  // Ranges whose gradients are sums over the examples of a batch: where pushes are merged, these
  // are added up as they are, and all others weighted by examples.
  const std::vector<FlatRange>& sums() const { return sums_; }

 private:
  struct Run {
    FlatRange range;
    DenseRange settings;
    std::unique_ptr<const Optimizer> rule;
  };
  std::vector<Run> runs_;
  std::vector<FlatRange> sums_;
  size_t size_ = 0;
};

// "0..430801 adam", "0..39 summary, 39..430840 adam x0.1": what a checkpoint must have been made
// with, because each run has state of its own.
std::string to_string(const std::vector<DenseRange>& ranges);

}  // namespace flux
