// clip: x limited to [min, max], element by element.
#include <algorithm>

#include "flux/nn/elementwise.h"

namespace flux {
namespace {

struct Clip : ElementwiseFunction {
  explicit Clip(const Node& node)
      : ElementwiseFunction(node),
        min(static_cast<float>(node.float_attr("min"))),
        max(static_cast<float>(node.float_attr("max"))) {}
  float forward(float x) const { return x < min ? min : (x > max ? max : x); }
  float derivative(float x, float) const { return x >= min && x <= max ? 1.0F : 0.0F; }
  double plain(double x) const {
    return std::clamp(x, static_cast<double>(min), static_cast<double>(max));
  }

  float min, max;
};

Status infer(InferContext& context) {
  const double min = context.node.float_attr("min"), max = context.node.float_attr("max");
  if (!(min < max))
    return context.fail(
        fmt::format("'min' must be below 'max', got {} and {} for {}", min, max, context.shapes()));
  context.node.width = context.inputs[0]->width;
  context.node.length = context.inputs[0]->length;
  return Status::ok();
}

}  // namespace

OperatorDef operator_clip() {
  OperatorDef def = elementwise_operator<Clip>(
      "clip", "x limited to [min, max], element by element; outside the gradient is 0.",
      {required(float_attribute("min", 0, -1e30, 1e30, "smallest result")),
       required(float_attribute("max", 1, -1e30, 1e30, "largest result"))});
  def.infer = infer;
  return def;
}

}  // namespace flux
