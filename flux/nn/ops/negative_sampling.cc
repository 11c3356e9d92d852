// negative_sampling: word2vec's loss, log(1 + exp(-z)) of the true pair's score z plus the sum of
// log(1 + exp(n)) over the scores n of pairs that were drawn at random.
#include "flux/nn/row_loss.h"
#include "flux/nn/vector_math.h"

namespace flux {
namespace {

Status infer(InferContext& context) {
  if (context.inputs[0]->width != 1)
    return context.fail(
        fmt::format("inputs must be the true pair's score [B,1] and those of drawn ones [B,n], "
                    "got {}",
                    context.shapes()));
  FLUX_RETURN_IF_ERROR(check_loss_weight(context, 2));
  context.node.width = 1;
  return Status::ok();
}

struct NegativeSampling {
  static constexpr size_t kValues = 2;
  static constexpr bool kLabel = false;
  NegativeSampling(const Graph& graph, const Node& node) : drawn(input_of(graph, node, 1).width) {}
  template <typename T>
  T loss(const T* const* x, T, T* prediction) const {
    *prediction = sigmoid(*x[0]);
    T sum = softplus_of(-*x[0]);
    for (size_t k = 0; k < drawn; ++k) sum += softplus_of(x[1][k]);
    return sum;
  }
  void gradient(const float* const* x, float, float* const* dx) const {
    *dx[0] = -sigmoid(-*x[0]);
    for (size_t k = 0; k < drawn; ++k) dx[1][k] = sigmoid(x[1][k]);
  }

  size_t drawn;
};

}  // namespace

OperatorDef operator_negative_sampling() {
  return loss_operator<NegativeSampling>(
      "negative_sampling",
      "Loss of a true pair's score [B,1] and the scores of drawn pairs [B,n], as in word2vec; "
      "predictions are the score's sigmoid.",
      infer);
}

}  // namespace flux
