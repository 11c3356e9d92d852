// dice: DIN's activation, p x + (1 - p) slope x with a trainable slope for each feature, where p is
// the sigmoid of x normalised over the batch (mean and variance of this batch in training, the
// summaries of nn/batch_statistics.h in prediction).
#include "flux/nn/normalised_operator.h"
#include "flux/nn/row_operator.h"
#include "flux/nn/vector_math.h"

namespace flux {
namespace {

Status infer(InferContext& context) {
  context.node.length = context.inputs[0]->length;
  context.node.width = context.inputs[0]->width;
  const int64_t width = context.node.width;
  add_constant_parameter(context, "slope", {width}, 0.25F);
  add_summaries(context, width, static_cast<float>(context.node.float_attr("decay")));
  return Status::ok();
}

// own: slope.
struct Dice {
  static constexpr size_t kOwn = 1;
  using Own = std::array<float, kOwn>;
  template <typename T>
  static T value(const std::array<T, kOwn>& own, T x, T u) {
    const T p = sigmoid(u);
    return x * (p + own[0] * (T(1) - p));
  }
  static float direct(const Own& own, float, float u, float dy) {
    const float p = sigmoid(u);
    return dy * (p + own[0] * (1.0F - p));
  }
  static float through(const Own& own, float x, float u, float dy) {
    const float p = sigmoid(u);
    return dy * x * (1.0F - own[0]) * p * (1.0F - p);
  }
  static Own own_gradient(const Own&, float x, float u, float dy) {
    return {dy * x * (1.0F - sigmoid(u))};
  }
};

}  // namespace

OperatorDef operator_dice() {
  return normalised_operator<Dice>(
      "dice",
      "p x + (1 - p) slope x, where p is the sigmoid of x normalised over the batch; a trainable "
      "slope for each feature.",
      infer, 1e-8);
}

}  // namespace flux
