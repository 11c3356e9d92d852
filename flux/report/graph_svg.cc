#include "flux/report/graph_svg.h"

#include <algorithm>

#include <fmt/format.h>

#include "flux/base/text.h"
#include "flux/nn/operator.h"
#include "flux/report/markup.h"

namespace flux {
namespace {

constexpr int kBoxWidth = 200, kBoxHeight = 62, kGapX = 24, kGapY = 44, kMargin = 20, kTitle = 30;
constexpr size_t kTextMax = 28;  // characters that fit into a box

constexpr const char* kStyle = R"(<style>
svg { background: #ffffff; font: 12px sans-serif; }
rect { fill: #f2f5fa; stroke: #1a5fb4; } text { fill: #1c1c1c; } .dim { fill: #5a5a5a; }
.title { font-size: 15px; } .op { font-weight: bold; } path { fill: none; stroke: #8a8a8a; }
@media (prefers-color-scheme: dark) {
svg { background: #161616; } rect { fill: #22262c; stroke: #78aeed; } text { fill: #e8e8e8; }
.dim { fill: #a8a8a8; } path { stroke: #7a7a7a; } }
</style>
)";

struct Place {
  uint32_t layer = 0;
  int x = 0, y = 0;  // of the box's upper left corner
};

int middle(const Place& place) {
  return place.x + kBoxWidth / 2;
}

std::vector<std::vector<uint32_t>> layers_of(std::span<const PictureNode> nodes,
                                             std::vector<Place>* places) {
  std::vector<std::vector<uint32_t>> layers;
  for (uint32_t i = 0; i < nodes.size(); ++i) {
    uint32_t layer = 0;
    for (const uint32_t input : nodes[i].inputs)
      layer = std::max(layer, (*places)[input].layer + 1);
    (*places)[i].layer = layer;
    layers.resize(std::max<size_t>(layers.size(), layer + 1));
    layers[layer].push_back(i);
  }
  return layers;
}

// Nodes without inputs keep their order; others go where their inputs are.
void order_layer(std::span<const PictureNode> nodes, const std::vector<Place>& places,
                 std::vector<uint32_t>* layer) {
  const auto wish = [&](uint32_t node) {
    double sum = 0;
    for (const uint32_t input : nodes[node].inputs) sum += middle(places[input]);
    return nodes[node].inputs.empty() ? 0 : sum / static_cast<double>(nodes[node].inputs.size());
  };
  std::stable_sort(layer->begin(), layer->end(),
                   [&](uint32_t a, uint32_t b) { return wish(a) < wish(b); });
}

std::string shortened(const std::string& text) {
  if (text.size() <= kTextMax) return text;
  return text.substr(0, kTextMax - 2) + "..";
}

std::string draw_box(const PictureNode& node, const Place& place) {
  const auto line = [&](const char* kind, int down, const std::string& text) {
    return fmt::format("<text class='{}' x='{}' y='{}' text-anchor='middle'>{}</text>\n", kind,
                       middle(place), place.y + down, escaped(shortened(text)));
  };
  std::string out = fmt::format("<g><title>{} = {} {} {}</title>\n", escaped(node.name),
                                escaped(node.op), escaped(node.shape), escaped(node.note));
  out += fmt::format("<rect x='{}' y='{}' width='{}' height='{}' rx='6'/>\n", place.x, place.y,
                     kBoxWidth, kBoxHeight);
  out += line("op", 18, node.op == node.name ? node.op : node.op + "  " + node.name);
  out += line("dim", 36, node.shape);
  if (!node.note.empty()) out += line("dim", 52, node.note);
  return out + "</g>\n";
}

std::string draw_edge(const Place& from, const Place& to) {
  const int y1 = from.y + kBoxHeight, y2 = to.y, half = (y2 - y1) / 2;
  return fmt::format("<path d='M{} {} C{} {} {} {} {} {}'/>\n", middle(from), y1, middle(from),
                     y1 + half, middle(to), y2 - half, middle(to), y2);
}

}  // namespace

std::vector<PictureNode> picture_of(const Graph& graph) {
  std::vector<PictureNode> out;
  for (const Node& node : graph.nodes()) {
    PictureNode picture{node.name, node.op, node.shape(), "", node.inputs};
    size_t size = 0;
    for (const uint32_t p : node.parameters) size += graph.parameters()[p].size;
    if (size > 0) picture.note = fmt::format("{} parameters", with_commas(size));
    if (node.table >= 0) picture.note = "table " + graph.tables()[static_cast<size_t>(node.table)];
    out.push_back(std::move(picture));
  }
  return out;
}

std::string graph_svg(const std::string& title, std::span<const PictureNode> nodes) {
  std::vector<Place> places(nodes.size());
  auto layers = layers_of(nodes, &places);
  size_t widest = 1;
  for (const auto& layer : layers) widest = std::max(widest, layer.size());
  const auto row_width = [](size_t n) { return static_cast<int>(n) * (kBoxWidth + kGapX) - kGapX; };
  const int width = row_width(widest) + 2 * kMargin;
  const int height =
      kTitle + 2 * kMargin + static_cast<int>(layers.size()) * (kBoxHeight + kGapY) - kGapY;
  int y = kTitle + kMargin;
  for (auto& layer : layers) {
    order_layer(nodes, places, &layer);
    int x = (width - row_width(layer.size())) / 2;
    for (const uint32_t node : layer) {
      places[node].x = x;
      places[node].y = y;
      x += kBoxWidth + kGapX;
    }
    y += kBoxHeight + kGapY;
  }
  std::string out = fmt::format(
      "<svg xmlns='http://www.w3.org/2000/svg' width='{0}' height='{1}' viewBox='0 0 {0} {1}'>\n"
      "{2}<text class='title' x='{3}' y='22'>{4}</text>\n",
      width, height, kStyle, kMargin, escaped(title));
  for (size_t i = 0; i < nodes.size(); ++i)
    for (const uint32_t input : nodes[i].inputs) out += draw_edge(places[input], places[i]);
  for (size_t i = 0; i < nodes.size(); ++i) out += draw_box(nodes[i], places[i]);
  return out + "</svg>\n";
}

}  // namespace flux
