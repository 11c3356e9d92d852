// ModelLayout: how the networks of a job, one for each phase, lie in its one model.
//
// The tables of the model are those that the networks name, in the order in which they first do;
// each network has a range of the flat dense vector, one after the other. Every role of a job
// computes the same from the same graphs. Plain values; pure.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "flux/api/model_shape.h"
#include "flux/base/flat_range.h"
#include "flux/client/ps_client.h"
#include "flux/nn/net.h"

namespace flux {

struct ModelLayout {
  ModelShape shape;                             // without phases if there is one network
  std::vector<std::string> tables;              // names, in the order of shape.dims
  std::vector<std::vector<uint32_t>> table_of;  // by phase: its network's table -> the model's
  std::vector<std::vector<FlatRange>> sums;     // by phase: Graph::summaries()
};

// At least one graph.
ModelLayout model_layout(std::span<const Graph* const> graphs, uint32_t sparse_shards);
std::vector<const Graph*> graphs_of(std::span<const std::shared_ptr<const Graph>> graphs);
std::vector<const Graph*> graphs_of(std::span<const std::unique_ptr<Net>> nets);

// The options with the layout of these networks; shards and groups of `options.shape` stay.
PsClientOptions with_model(PsClientOptions options, std::span<const Graph* const> graphs);

}  // namespace flux
