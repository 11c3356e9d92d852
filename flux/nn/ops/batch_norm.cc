// batch_norm: each feature brought to mean 0 and variance 1 over the batch (in prediction: by the
// summaries of nn/batch_statistics.h), then scaled and moved by trainable vectors.
#include "flux/nn/normalised_operator.h"
#include "flux/nn/row_operator.h"

namespace flux {
namespace {

Status infer(InferContext& context) {
  context.node.length = context.inputs[0]->length;
  context.node.width = context.inputs[0]->width;
  const int64_t width = context.node.width;
  add_constant_parameter(context, "scale", {width}, 1.0F);
  add_constant_parameter(context, "bias", {width}, 0.0F);
  add_summaries(context, width, static_cast<float>(context.node.float_attr("decay")));
  return Status::ok();
}

// own: scale, bias.
struct BatchNorm {
  static constexpr size_t kOwn = 2;
  using Own = std::array<float, kOwn>;
  template <typename T>
  static T value(const std::array<T, kOwn>& own, T, T u) {
    return u * own[0] + own[1];
  }
  static float direct(const Own&, float, float, float) { return 0; }
  static float through(const Own& own, float, float, float dy) { return dy * own[0]; }
  static Own own_gradient(const Own&, float, float u, float dy) { return {dy * u, dy}; }
};

}  // namespace

OperatorDef operator_batch_norm() {
  return normalised_operator<BatchNorm>(
      "batch_norm",
      "Features brought to mean 0 and variance 1 over the batch, then scale * x + bias; in "
      "prediction by moving averages.",
      infer, 1e-5);
}

}  // namespace flux
