// What the shapes of a model cannot tell: that it would learn nothing, or what it is to predict.
//
// check_graph() refuses what can never be right; graph_warnings() names what is most likely a
// mistake but has its uses. Both take a finished graph.
// Pure functions. Failure: kInvalid that names the node and its origin ("job.yaml:12:5").
#pragma once

#include <string>
#include <vector>

#include "flux/base/status.h"
#include "flux/nn/graph.h"

namespace flux {

Status check_graph(const Graph& graph);
// One line each: "job.yaml:12:5: node 'loss' (logistic_loss): ...".
std::vector<std::string> graph_warnings(const Graph& graph);

// A label that is the number of a class, as softmax_cross_entropy needs it.
struct ClassLabel {
  uint32_t label = 0;    // index into ModelInputs::labels
  uint32_t classes = 0;  // that its loss has
};
std::vector<ClassLabel> class_labels(const Graph& graph);

}  // namespace flux
