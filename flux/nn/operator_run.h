// run_operator(): the kernel of one operator alone, forward and backward, on numbers that the
// caller gives. For comparisons with other programs; nets run operators through nn/net.h.
// Failure: kInvalid when the operator refuses the inputs or sizes do not fit.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "flux/base/status.h"
#include "flux/nn/graph.h"

namespace flux {

struct OperatorRun {
  struct Input {
    uint32_t length = 1, dim = 1;
    std::vector<float> values;  // [batch][length * dim]
  };
  std::string op;
  std::map<std::string, AttrValue> attrs;
  uint32_t batch = 0;
  std::vector<Input> inputs;
  std::vector<float> labels, weights;  // [batch]; follow the inputs if not empty
  std::vector<float> parameters;       // of the operator, one after the other
  std::vector<float> output_gradient;  // [batch][width]; of a loss: none
};

struct OperatorResult {
  std::vector<float> output;                  // of a loss: what it predicts
  double loss = 0;                            // of a loss: the sum over the batch
  std::vector<std::vector<float>> gradients;  // of each input; of a loss: of the mean
  std::vector<float> parameter_gradient;
};

// The operator as node "y" behind one table per input, so that every input wants its gradient.
Result<std::shared_ptr<const Graph>> operator_graph(const OperatorRun& run);

Result<OperatorResult> run_operator(const OperatorRun& run);

}  // namespace flux
