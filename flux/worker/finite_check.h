// The last look at a batch before its gradient leaves the worker: is all of it finite?
//
// One NaN or infinity that is pushed spoils its row for ever, and through the dense layers the
// whole model. So what is not finite is not pushed; the batch is refused with a text that says
// what, where in the model, where in the data, and whether the model was broken before. The dense
// parameters are looked at, too: behind columns of zeros, which are not multiplied, one that is not
// finite would hide. Pure functions. A good batch costs one pass over its gradients and dense
// parameters, which a team shares; only a bad one is looked into.
#pragma once

#include <span>
#include <string>

#include "flux/base/team.h"
#include "flux/nn/graph.h"
#include "flux/worker/batch_work.h"

namespace flux {

constexpr size_t kRefusalBytesMax = 2000;

// What the trainer knows of a computed batch.
struct Computed {
  const BatchWork* work = nullptr;
  const Graph* graph = nullptr;
  std::span<const uint32_t> tables;    // of the graph's tables: where the work has their rows
  double loss = 0;                     // sum over the batch
  const float* predictions = nullptr;  // [batch]
  const float* parameters = nullptr;   // that it was computed with; null: none
};

// "" if loss, gradients and dense parameters are finite; else why the batch is refused, at most
// kRefusalBytesMax long:
//   "the gradient of table embedding is nan at key 123; data: a.tsv:200..310 (records 21 to 30);
//    record: a.tsv:200..211 (record 21)"
std::string why_refused(const Computed& batch, Team* team);

// The first dense parameter that is not finite: "fc1.weight is nan at element 7"; "": none.
std::string broken_parameter(const Graph& graph, const float* parameters);

}  // namespace flux
