#include "flux/worker/batch_health.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "flux/nn/operator.h"

namespace flux {
namespace {

constexpr uint64_t kLookAll = 1024;  // batches of a phase that are all looked at
constexpr uint64_t kLookEvery = 8;
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

// A sum of logarithms as the logarithm of a product, which is several times as fast.
class LogSum {
 public:
  void add(double factor) {
    product_ *= factor;
    if (product_ < 1e-280) take();
  }
  double value() {
    take();
    return sum_;
  }

 private:
  void take() {
    sum_ += std::log(product_);
    product_ = 1;
  }
  double sum_ = 0, product_ = 1;
};

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
    phase->layers.push_back({bias.offset, std::vector<uint8_t>(bias.size, 0)});
    phase->piece.layers.push_back(
        {node.name.substr(0, kHealthNameMax), static_cast<uint32_t>(bias.size), 0});
  }
}

// The labels of classes are their numbers; the network's loss is this head's.
double BatchHealth::cost_of_classes(const Column& of, Labels* known) {
  double cost = 0;
  for (size_t i = 0; i < of.n; ++i) {
    const auto c =
        static_cast<size_t>(std::clamp(double{of.labels[i]}, 0.0, double{kClassesMax - 1}));
    if (c >= known->classes.size()) known->classes.resize(c + 1);
    const double all = known->weight + static_cast<double>(known->classes.size());
    cost -= std::log((known->classes[c] + 1) / all);
    ++known->classes[c];
    ++known->weight;
  }
  return cost;
}

// What a constant would predict of this batch: the mean of labels before it, of the first its own.
double BatchHealth::constant_of(const Column& of, const Labels& known, bool rates) {
  double weight = known.weight, sum = known.sum;
  for (size_t i = 0; i < of.n && known.weight <= 0; ++i) {
    weight += of.weight(i);
    sum += of.weight(i) * of.labels[i];
  }
  return rates ? (sum + 0.5) / (weight + 1) : sum / std::max(weight, 1e-30);
}

// Sums of predictions and labels; the losses are added to `model` and `constant`.
void BatchHealth::look_at_column(const Column& of, bool rates, double mean, Labels* known,
                                 HeadHealth* head, double* model, double* constant) {
  const double one = -std::log(mean), zero = -std::log(1 - mean);
  LogSum plain;
  for (size_t i = 0; i < of.n; ++i) {
    const double w = of.weight(i), y = of.labels[i];
    if (w == 0) continue;
    const double p = rates ? std::clamp(double{of.predictions[i]}, kCertain, 1 - kCertain)
                           : double{of.predictions[i]};
    ++head->examples;
    head->label += y;
    head->label_squares += y * y;
    head->prediction += p;
    head->prediction_squares += p * p;
    head->product += p * y;
    known->weight += w;
    known->sum += w * y;
    if (!rates) {
      *model += w * (p - y) * (p - y);
      *constant += w * (mean - y) * (mean - y);
      continue;
    }
    *constant += w * (y * one + (1 - y) * zero);
    if (w == 1 && (y == 0 || y == 1))
      plain.add(y == 1 ? p : 1 - p);
    else
      *model -= w * (y * std::log(p) + (1 - y) * std::log(1 - p));
    if (const double doubt = std::min(p, 1 - p); doubt < kSureWithin) {
      ++head->sure;
      head->sure_expected += doubt;
      head->sure_wrong += std::abs(p - y) > 0.5 ? 1 : 0;
    }
  }
  *model -= plain.value();
}

void BatchHealth::look_at_head(const BatchWork& work, const float* predictions, double loss,
                               HeadLook* look, HeadHealth* head) {
  const size_t n = work.batch.size;
  const bool weighted = look->weighted && !work.batch.weights.empty();
  const Column of{n, work.batch.labels.data() + look->column * n, predictions + look->index * n,
                  weighted ? work.batch.weights.data() : nullptr};
  double model = 0, constant = 0;
  if (head->kind == HeadKind::kClasses) {
    head->examples += n;
    model = loss;
    constant = cost_of_classes(of, &look->labels);
  } else {
    const bool rates = head->kind == HeadKind::kLogLoss;
    Labels& known = look->labels;
    const double mean = constant_of(of, known, rates);
    look_at_column(of, rates, mean, &known, head, &model, &constant);
    if (known.weight > kRemembered) {
      known.weight /= 2;
      known.sum /= 2;
    }
  }
  ++head->batches;
  head->loss += model;
  head->constant += constant;
  head->gap_squares += (model - constant) * (model - constant);
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
  if (batch < kLookAll || batch % kLookEvery == 0)
    for (size_t h = 0; h < of.heads.size(); ++h)
      look_at_head(work, predictions, loss, &of.heads[h], &piece.heads[h]);
  for (LayerLook& layer : of.layers) {
    const float* gradient = work.dense_gradient.data() + layer.offset;
    for (size_t u = 0; u < layer.live.size(); ++u)
      layer.live[u] = static_cast<uint8_t>(layer.live[u] | (gradient[u] != 0 ? 1 : 0));
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
    std::vector<uint8_t>& live = phase->layers[l].live;
    piece.layers[l].dead = static_cast<uint32_t>(std::count(live.begin(), live.end(), 0));
    live.assign(live.size(), 0);
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
