// run_operator(): the kernel of one operator alone, forward and backward, on numbers that the
// caller gives. For comparisons with other programs; nets run operators through nn/net.h.
// An operator that reads the rows of a table by itself gets those of OperatorRun::keys, and names
// the table "t" and the slots "s0", "s1", ...
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
  // The keys of a batch and the rows that they have; NetInput says how they lie.
  struct Keys {
    uint32_t slots = 1;
    uint32_t dim = 0;             // of a row; 0: there is no table
    std::vector<float> rows;      // [rows][dim]
    std::vector<uint32_t> begin;  // NetInput::begin; empty: each slot has one key
    std::vector<uint32_t> index;  // row of each occurrence
    std::vector<float> values;    // of each occurrence; empty: keys have none
    uint64_t noise = 0;
  };
  std::string op;
  std::map<std::string, AttrValue> attrs;
  uint32_t batch = 0;
  std::vector<Input> inputs;
  Keys keys;
  std::vector<float> labels, weights;  // [batch]; follow the inputs if not empty
  std::vector<float> parameters;       // of the operator, one after the other
  std::vector<float> output_gradient;  // [batch][width]; of a loss: none
};

struct OperatorResult {
  std::vector<float> output;                  // of a loss: what it predicts
  double loss = 0;                            // of a loss: the sum over the batch
  std::vector<std::vector<float>> gradients;  // of each input; of a loss: of the mean
  std::vector<float> parameter_gradient;
  std::vector<float> row_gradient;  // of OperatorRun::Keys::rows
};

// The operator as node "y" behind one table per input, so that every input wants its gradient.
Result<std::shared_ptr<const Graph>> operator_graph(const OperatorRun& run);

Result<OperatorResult> run_operator(const OperatorRun& run);

}  // namespace flux
