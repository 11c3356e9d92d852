#include "flux/worker/batch_health.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "flux/nn/operator.h"

namespace flux {
namespace {

constexpr uint64_t kLookAll = 512;  // batches of a phase that are all looked at
constexpr uint64_t kLookEvery = 4;
constexpr uint64_t kNormAll = 64;
constexpr uint64_t kNormEvery = 32;

// A piece: longer as a run goes on, so that a report does not need many.
constexpr uint64_t kPieceBatches = 8, kPieceExamples = 512, kPieceBatchesMax = 1024;
constexpr uint64_t kPieceShare = 64;
constexpr size_t kPiecesKept = 64;

constexpr double kRemembered = 200'000;  // examples, before old labels count half
constexpr size_t kClassesMax = 4096;
constexpr double kCertain = 1e-7;  // a probability is at least this far from 0 and 1
constexpr uint32_t kUnitsMin = 8;

// Those of its inputs that say how much an example counts are the data's own, or there are none.
bool weights_known(const Graph& graph, const Node& node) {
  return node.inputs.size() < 3 ||
         (node.inputs.size() == 3 && graph.nodes()[node.inputs[2]].op == "weight");
}

bool behind_relu(const Graph& graph, uint32_t at) {
  if (graph.nodes()[at].relu_output) return true;
  bool any = false;
  for (const Node& node : graph.nodes()) {
    if (std::find(node.inputs.begin(), node.inputs.end(), at) == node.inputs.end()) continue;
    if (node.op != "relu") return false;
    any = true;
  }
  return any;
}

double squares(std::span<const float> values) {
  double sums[8] = {};
  size_t i = 0;
  for (; i + 8 <= values.size(); i += 8)
    for (size_t j = 0; j < 8; ++j) {
      const double v = values[i + j];
      sums[j] += v * v;
    }
  for (; i < values.size(); ++i) sums[0] += static_cast<double>(values[i]) * values[i];
  double sum = 0;
  for (const double s : sums) sum += s;
  return sum;
}

double norm_of(const BatchWork& work) {
  double sum = squares({work.dense_gradient.data(), work.dense_gradient.size()});
  for (size_t t = 0; t < work.row_gradients.size(); ++t) {
    const Buffer<float>& table = work.row_gradients[t];
    if (work.last_rows[t] == 0) continue;
    const size_t first = work.first_rows[t] * (table.size() / work.last_rows[t]);
    sum += squares({table.data() + first, table.size() - first});
  }
  return std::sqrt(sum);
}

double log_loss(double y, double p) {
  if (y == 0) return -std::log(1 - p);
  if (y == 1) return -std::log(p);
  return -y * std::log(p) - (1 - y) * std::log(1 - p);
}

}  // namespace

void HealthTold::add(const std::vector<HealthPiece>& pieces) {
  for (const HealthPiece& piece : pieces) {
    uint64_t& newest = newest_[piece.lane];
    newest = std::max(newest, piece.number);
  }
}

void HealthTold::leave_new(std::vector<HealthPiece>* pieces) const {
  std::erase_if(*pieces, [this](const HealthPiece& piece) {
    const auto at = newest_.find(piece.lane);
    return at != newest_.end() && piece.number <= at->second;
  });
  if (pieces->size() > kHealthPiecesMax) pieces->resize(kHealthPiecesMax);
}

void BatchHealth::begin(const Graph& graph, Phase* phase) const {
  *phase = {};
  phase->graph = &graph;
  size_t labelled = 0;
  for (const Head& head : graph.heads()) labelled += head.label >= 0 ? 1 : 0;
  for (size_t h = 0; h < graph.heads().size(); ++h) {
    const Head& head = graph.heads()[h];
    const Node& node = graph.nodes()[head.node];
    if (head.label < 0 || !weights_known(graph, node)) continue;
    HeadHealth health;
    health.name = labelled == 1 ? "" : head.name.substr(0, kHealthNameMax);
    const bool alone = graph.heads().size() == 1 && head.weight == 1.0F && node.inputs.size() == 2;
    if (node.op == "logistic_loss")
      health.kind = HeadKind::kLogLoss;
    else if (node.op == "mse_loss")
      health.kind = HeadKind::kSquares;
    else if (node.op == "softmax_cross_entropy" && alone)  // its loss is not told by predictions
      health.kind = HeadKind::kClasses;
    else
      continue;
    if (phase->heads.size() == kHealthPartsMax) break;
    phase->heads.push_back({h, static_cast<size_t>(head.label), node.inputs.size() == 3, {}});
    phase->piece.heads.push_back(std::move(health));
  }
  for (uint32_t n = 0; n < graph.nodes().size(); ++n) {
    const Node& node = graph.nodes()[n];
    if (node.op != "fc" || node.parameters.size() < 2 || !behind_relu(graph, n)) continue;
    const Parameter& bias = graph.parameters()[node.parameters[1]];
    if (bias.size < kUnitsMin || phase->layers.size() == kHealthPartsMax) continue;
    phase->layers.push_back({bias.offset, std::vector<bool>(bias.size, false)});
    phase->piece.layers.push_back(
        {node.name.substr(0, kHealthNameMax), static_cast<uint32_t>(bias.size), 0});
  }
}

void BatchHealth::look_at_head(const BatchWork& work, const float* predictions, double loss,
                               HeadLook* look, HeadHealth* head) const {
  const size_t n = work.batch.size;
  const float* labels = work.batch.labels.data() + look->column * n;
  const float* p_of = predictions + look->index * n;
  const bool classes = head->kind == HeadKind::kClasses, rates = head->kind == HeadKind::kLogLoss;
  const auto weight_of = [&](size_t i) {
    return look->weighted && !work.batch.weights.empty() ? double{work.batch.weights[i]} : 1.0;
  };
  Labels& known = look->labels;
  double weight = 0, sum = 0, of_model = 0, of_constant = 0;
  for (size_t i = 0; i < n; ++i) {
    weight += weight_of(i);
    sum += weight_of(i) * labels[i];
  }
  const Labels before = known.weight > 0 ? Labels{known.weight, known.sum, {}}
                                         : Labels{weight, sum, {}};  // the first: its own
  const double mean = rates ? (before.sum + 0.5) / (before.weight + 1)
                            : before.sum / std::max(before.weight, 1e-30);
  const double one = -std::log(mean), zero = -std::log(1 - mean);
  for (size_t i = 0; i < n; ++i) {
    const double w = weight_of(i), y = labels[i];
    if (w == 0) continue;
    ++head->examples;
    if (classes) {
      const auto c = static_cast<size_t>(std::clamp(y, 0.0, double{kClassesMax - 1}));
      if (c >= known.classes.size()) known.classes.resize(c + 1);
      const double all = known.weight + static_cast<double>(known.classes.size());
      of_constant -= std::log((known.classes[c] + 1) / all);
      ++known.classes[c];
      ++known.weight;
      continue;
    }
    const double p = rates ? std::clamp(double{p_of[i]}, kCertain, 1 - kCertain) : p_of[i];
    of_model += w * (rates ? log_loss(y, p) : (p - y) * (p - y));
    of_constant += w * (rates ? y * one + (1 - y) * zero : (mean - y) * (mean - y));
    head->label += y;
    head->label_squares += y * y;
    head->prediction += p;
    head->prediction_squares += p * p;
    head->product += p * y;
    if (const double doubt = std::min(p, 1 - p); rates && doubt < kSureWithin) {
      ++head->sure;
      head->sure_expected += doubt;
      head->sure_wrong += std::abs(p - y) > 0.5 ? 1 : 0;
    }
  }
  if (classes) of_model = loss;
  if (!classes) {
    known.weight += weight;
    known.sum += sum;
    if (known.weight > kRemembered) {
      known.weight /= 2;
      known.sum /= 2;
    }
  }
  ++head->batches;
  head->loss += of_model;
  head->constant += of_constant;
  head->gap_squares += (of_model - of_constant) * (of_model - of_constant);
}

void BatchHealth::add(const Graph& graph, uint32_t phase, const BatchWork& work,
                      const float* predictions, double loss) {
  if (phase >= phases_.size()) phases_.resize(phase + 1);
  Phase& of = phases_[phase];
  if (of.graph != &graph) begin(graph, &of);
  HealthPiece& piece = of.piece;
  const uint64_t batch = of.batches++;
  const double n = work.batch.size;
  if (work.batch.size == 0) return;
  piece.examples += work.batch.size;
  ++piece.batches;
  piece.loss += loss;
  piece.loss_squares += loss / n * (loss / n);
  if (batch < kNormAll || batch % kNormEvery == 0) {
    ++piece.norms;
    piece.norm += norm_of(work);
  }
  if (batch < kLookAll || batch % kLookEvery == 0) {
    for (size_t h = 0; h < of.heads.size(); ++h)
      look_at_head(work, predictions, loss, &of.heads[h], &piece.heads[h]);
    for (LayerLook& layer : of.layers)
      for (size_t u = 0; u < layer.live.size(); ++u)
        if (work.dense_gradient.data()[layer.offset + u] != 0) layer.live[u] = true;
  }
  const uint64_t batches = std::clamp(of.batches / kPieceShare, kPieceBatches, kPieceBatchesMax);
  if (piece.batches >= batches && piece.examples >= kPieceExamples) close(phase, &of);
}

void BatchHealth::close(uint32_t number, Phase* phase) {
  HealthPiece& piece = phase->piece;
  piece.lane = lane_;
  piece.number = ++pieces_;
  piece.phase = number;
  for (size_t l = 0; l < phase->layers.size(); ++l) {
    std::vector<bool>& live = phase->layers[l].live;
    piece.layers[l].dead = static_cast<uint32_t>(std::count(live.begin(), live.end(), false));
    live.assign(live.size(), false);
  }
  complete_.push_back(piece);
  if (complete_.size() > kPiecesKept) complete_.pop_front();
  HealthPiece next;
  for (const HeadHealth& head : piece.heads) {
    next.heads.emplace_back();
    next.heads.back().name = head.name;
    next.heads.back().kind = head.kind;
  }
  next.layers = piece.layers;
  piece = std::move(next);
}

void BatchHealth::tell(std::vector<HealthPiece>* out) const {
  out->insert(out->end(), complete_.begin(), complete_.end());
}

}  // namespace flux
