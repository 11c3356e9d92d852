// bpr_loss: the Bayesian personalised ranking loss, the mean over the n others of
// log(1 + exp(other - score)): the score of what was chosen should be above those of the others.
#include "flux/nn/row_loss.h"
#include "flux/nn/vector_math.h"

namespace flux {
namespace {

Status infer(InferContext& context) {
  if (context.inputs[0]->width != 1)
    return context.fail(fmt::format(
        "inputs must be the score [B,1] and those of others [B,n], got {}", context.shapes()));
  FLUX_RETURN_IF_ERROR(check_loss_weight(context, 2));
  context.node.width = 1;
  return Status::ok();
}

struct BprLoss {
  static constexpr size_t kValues = 2;
  static constexpr bool kLabel = false;
  BprLoss(const Graph& graph, const Node& node) : others(input_of(graph, node, 1).width) {}
  template <typename T>
  T loss(const T* const* x, T, T* prediction) const {
    T sum = 0, won = 0;
    for (size_t k = 0; k < others; ++k) {
      sum += softplus_of(x[1][k] - *x[0]);
      won += sigmoid(*x[0] - x[1][k]);
    }
    *prediction = won / static_cast<T>(others);
    return sum / static_cast<T>(others);
  }
  void gradient(const float* const* x, float, float* const* dx) const {
    *dx[0] = 0;
    for (size_t k = 0; k < others; ++k) {
      const float lost = sigmoid(x[1][k] - *x[0]) / static_cast<float>(others);
      *dx[0] -= lost;
      dx[1][k] = lost;
    }
  }

  size_t others;
};

}  // namespace

OperatorDef operator_bpr_loss() {
  return loss_operator<BprLoss>(
      "bpr_loss",
      "Pairwise ranking loss of a score [B,1] against others [B,n]; an optional weight [B,1]; "
      "predictions are the mean probability to win.",
      infer);
}

}  // namespace flux
