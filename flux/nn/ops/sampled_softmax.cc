// sampled_softmax: -log of the probability that a softmax gives to the true item among itself and n
// items that were drawn: log(sum of exp(s)) - s of the true one.
//
// If items are drawn with unequal chances, those that are drawn often are pushed down too much. The
// third input is the log of each item's chance, the true one's first; it is taken from the scores
// (logQ correction), so that the loss estimates the softmax over all items.
#include <algorithm>
#include <cmath>

#include "flux/nn/row_loss.h"
#include "flux/nn/row_operator.h"

namespace flux {
namespace {

// Whether the third input is the log of chances; else it is the example's weight.
bool has_chances(const Node& others, const Node& third) {
  return third.width == others.width + 1;
}

Status infer(InferContext& context) {
  const auto& inputs = context.inputs;
  if (inputs[0]->width != 1)
    return context.fail(
        fmt::format("inputs must be the true item's score [B,1] and those of drawn ones [B,n], "
                    "got {}",
                    context.shapes()));
  const bool chances = inputs.size() > 2 && has_chances(*inputs[1], *inputs[2]);
  if (!chances && (inputs.size() > 3 || (inputs.size() == 3 && inputs[2]->width != 1)))
    return context.fail(fmt::format(
        "the third input must be [B,{}], the log of the chance of the true item and of each drawn "
        "one, got {}",
        inputs[1]->width + 1, context.shapes()));
  FLUX_RETURN_IF_ERROR(check_loss_weight(context, chances ? 3 : 2));
  context.node.width = 1;
  return Status::ok();
}

struct SampledSoftmax {
  static constexpr size_t kValues = 2;
  static constexpr bool kLabel = false;
  SampledSoftmax(const Graph& graph, const Node& node)
      : drawn(input_of(graph, node, 1).width),
        chances(node.inputs.size() > 2 &&
                has_chances(input_of(graph, node, 1), input_of(graph, node, 2))) {}
  size_t values() const { return chances ? 3 : 2; }

  template <typename T>
  T own_score(const T* const* x) const {
    return chances ? *x[0] - x[2][0] : *x[0];
  }
  template <typename T>
  T drawn_score(const T* const* x, size_t k) const {
    return chances ? x[1][k] - x[2][k + 1] : x[1][k];
  }
  template <typename T>
  T top_score(const T* const* x) const {
    T top = own_score(x);
    for (size_t k = 0; k < drawn; ++k) top = std::max(top, drawn_score(x, k));
    return top;
  }

  template <typename T>
  T loss(const T* const* x, T, T* prediction) const {
    *prediction = sigmoid(*x[0]);
    const T top = top_score(x), own = own_score(x);
    T sum = exp_of(own - top);
    for (size_t k = 0; k < drawn; ++k) sum += exp_of(drawn_score(x, k) - top);
    return top + std::log(sum) - own;
  }
  void gradient(const float* const* x, float, float* const* dx) const {
    const float top = top_score(x);
    for (size_t k = 0; k < drawn; ++k) dx[1][k] = exp_of(drawn_score(x, k) - top);
    const float others = sum_of(dx[1], drawn);
    const float share = 1.0F / (others + exp_of(own_score(x) - top));
    *dx[0] = -others * share;
    for (size_t k = 0; k < drawn; ++k) dx[1][k] *= share;
    if (!chances) return;
    dx[2][0] = -*dx[0];
    for (size_t k = 0; k < drawn; ++k) dx[2][k + 1] = -dx[1][k];
  }

  size_t drawn;
  bool chances;
};

}  // namespace

OperatorDef operator_sampled_softmax() {
  OperatorDef def = loss_operator<SampledSoftmax>(
      "sampled_softmax",
      "-log softmax of the true item's score [B,1] among those of drawn items [B,n]; optional: the "
      "log of their chances to be drawn [B,n+1], the true one's first, then a weight [B,1]; "
      "predictions are the score's sigmoid.",
      infer);
  def.info.inputs_max = 4;
  return def;
}

}  // namespace flux
