#include "flux/worker/model_layout.h"

#include <algorithm>

namespace flux {

std::vector<const Graph*> graphs_of(std::span<const std::shared_ptr<const Graph>> graphs) {
  std::vector<const Graph*> out;
  for (const auto& graph : graphs) out.push_back(graph.get());
  return out;
}

std::vector<const Graph*> graphs_of(std::span<const std::unique_ptr<Net>> nets) {
  std::vector<const Graph*> out;
  for (const auto& net : nets) out.push_back(&net->graph());
  return out;
}

ModelLayout model_layout(std::span<const Graph* const> graphs, uint32_t sparse_shards) {
  ModelLayout out;
  out.shape.sparse_shards = sparse_shards;
  for (const Graph* graph : graphs) {
    std::vector<uint32_t>& of = out.table_of.emplace_back();
    for (const std::string& table : graph->tables()) {
      auto at = std::find(out.tables.begin(), out.tables.end(), table);
      if (at == out.tables.end()) {
        at = out.tables.insert(out.tables.end(), table);
        out.shape.dims.push_back(graph->inputs().tables.at(table));
      }
      of.push_back(static_cast<uint32_t>(at - out.tables.begin()));
    }
    out.shape.parameters += graph->parameter_count();
    out.sums.push_back(graph->summaries());
  }
  for (size_t p = 0; p < graphs.size() && graphs.size() > 1; ++p) {
    PhaseShape phase{std::vector<uint32_t>(out.tables.size(), 0), graphs[p]->parameter_count()};
    for (const uint32_t t : out.table_of[p]) phase.dims[t] = out.shape.dims[t];
    out.shape.phases.push_back(std::move(phase));
  }
  return out;
}

PsClientOptions with_model(PsClientOptions options, std::span<const Graph* const> graphs) {
  ModelLayout layout = model_layout(graphs, options.shape.sparse_shards);
  layout.shape.groups = options.shape.groups;
  layout.shape.table_groups = std::move(options.shape.table_groups);
  options.shape = std::move(layout.shape);
  return options;
}

}  // namespace flux
