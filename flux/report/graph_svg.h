// graph_svg: a network as a picture: one box per node, layer by layer from its inputs down.
//
// A node lies below everything it reads; inside a layer nodes are ordered by where their inputs
// lie. Self-contained SVG without scripts, for a dark and a light ground. Pure; no failure.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "flux/nn/graph.h"

namespace flux {

struct PictureNode {
  std::string name, op;
  std::string shape;             // "[B,32]"
  std::string note;              // parameters, table
  std::vector<uint32_t> inputs;  // all smaller than its own number
};

std::vector<PictureNode> picture_of(const Graph& graph);
std::string graph_svg(const std::string& title, std::span<const PictureNode> nodes);

}  // namespace flux
