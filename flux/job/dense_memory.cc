#include "flux/job/dense_memory.h"

#include "flux/base/text.h"
#include "flux/nn/attributes.h"
#include "flux/nn/operator.h"

namespace flux {
namespace {

struct Largest {
  const Node* node = nullptr;
  uint64_t parameters = 0;
};

Largest largest_node(const Graph& graph) {
  Largest most;
  for (const Node& node : graph.nodes()) {
    uint64_t parameters = 0;
    for (const uint32_t p : node.parameters) parameters += graph.parameters()[p].size;
    if (parameters > most.parameters) most = {&node, parameters};
  }
  return most;
}

Status refuse(const Largest& most, uint64_t all, const std::string& why) {
  return invalid("{}has {} of the model's {} dense parameters: {}; make it smaller",
                 node_prefix(most.node->origin, most.node->name, most.node->op),
                 with_commas(most.parameters), with_commas(all), why);
}

}  // namespace

uint64_t dense_bytes(const Job& job, const Graphs& graphs) {
  uint64_t floats = 0;
  for (const DenseRange& range : dense_ranges(job, graphs)) {
    const auto rule = make_optimizer(range.optimizer);
    floats += 2 * range.size + (rule.is_ok() ? rule.value()->state_size(range.size) : 0);
  }
  return floats * sizeof(float);
}

Status check_dense_memory(const Job& job, const Graphs& graphs, uint64_t limit) {
  const uint64_t bytes = dense_bytes(job, graphs);
  if (limit == 0 || bytes <= limit) return Status::ok();
  Largest most;
  uint64_t all = 0;
  for (const auto& graph : graphs) {
    all += graph->parameter_count();
    const Largest own = largest_node(*graph);
    if (own.parameters > most.parameters) most = own;
  }
  return refuse(most, all,
                fmt::format("with gradients and the optimizer's state they need {}, and there are "
                            "{} of memory",
                            human_bytes(bytes), human_bytes(limit)));
}

Status check_dense_count(const Graph& graph) {
  if (graph.parameter_count() <= kDenseParametersMax) return Status::ok();
  return refuse(largest_node(graph), graph.parameter_count(),
                fmt::format("at most {} fit into a worker", with_commas(kDenseParametersMax)));
}

}  // namespace flux
