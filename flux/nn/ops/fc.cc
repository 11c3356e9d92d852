// fc: a fully connected layer, y = f(x W + b), of the whole example or of each position.
#include <algorithm>
#include <cmath>

#include "flux/nn/attribute_specs.h"
#include "flux/nn/fc_kernel.h"
#include "flux/nn/operator.h"
#include "flux/nn/per_position.h"

namespace flux {
namespace {

Status infer(InferContext& context) {
  const Node& input = *context.inputs[0];
  const uint32_t length = context.node.bool_attr("per_position") ? input.length : 1;
  const int64_t in = input.width / length;
  const int64_t units = context.node.int_attr("units");
  const float range = std::sqrt(1.0F / static_cast<float>(in));
  context.add_parameter("weight", {in, units}, range);
  if (context.node.bool_attr("bias")) context.add_parameter("bias", {units}, range);
  context.node.length = length;
  context.node.width = static_cast<uint32_t>(units) * length;
  context.node.relu_output = context.node.text_attr("activation") == "relu";
  return Status::ok();
}

// Tiny products (the dense features of a logistic regression) gain nothing from bf16.
bool wants_bf16(const Node& node, const Node& input) {
  return static_cast<uint64_t>(node.width) * input.width >= 256;
}

std::vector<AttrSpec> attributes() {
  return {required(int_attribute("units", 1, 1, 65536, "width of the output")),
          choice_attribute("activation",
                           {"none", "relu", "sigmoid", "tanh", "leaky_relu", "elu", "softplus"},
                           "applied to the output; leaky_relu has the slope 0.01, elu the alpha 1"),
          bool_attribute("bias", true, "whether to add a trainable vector"),
          bool_attribute("per_position", false,
                         "whether each position of [B,T,d] is a row of its own: [B,T,units]")};
}

double activate(const std::string& name, double z) {
  if (name == "relu") return z < 0 ? 0 : z;
  if (name == "sigmoid") return 1 / (1 + std::exp(-z));
  if (name == "leaky_relu") return z > 0 ? z : 0.01 * z;
  if (name == "elu") return z > 0 ? z : std::exp(z) - 1;
  if (name == "softplus") return std::max(z, 0.0) + std::log1p(std::exp(-std::fabs(z)));
  return name == "tanh" ? std::tanh(z) : z;
}

void reference(const ReferenceCall& call) {
  const uint32_t length = call.node.length, units = call.node.dim();
  const uint32_t in = call.input_width(0) / length;
  const bool bias = call.node.bool_attr("bias");
  const std::string& activation = call.node.text_attr("activation");
  for (uint32_t b = 0; b < call.batch * length; ++b) {
    for (uint32_t u = 0; u < units; ++u) {
      double z = bias ? call.parameter(1)[u] : 0;
      for (uint32_t k = 0; k < in; ++k)
        z += call.inputs[0][b * in + k] * call.parameter(0)[k * units + u];
      call.output[b * units + u] = activate(activation, z);
    }
  }
}

}  // namespace

OperatorDef operator_fc() {
  OperatorDef def;
  def.info.name = "fc";
  def.info.doc = "Fully connected layer: activation(x W + bias).";
  def.info.inputs_min = def.info.inputs_max = 1;
  def.info.attrs = attributes();
  def.infer = infer;
  def.reference = reference;
  def.make_kernel = [](const KernelArgs& args) {
    return args.node.length > 1 ? make_per_position(args, make_fc_kernel) : make_fc_kernel(args);
  };
  def.masks_relu = true;
  def.replaces_input = true;
  def.forgets_output = [](const Node& node) { return node.text_attr("activation") == "none"; };
  def.wants_bf16 = wants_bf16;
  return def;
}

}  // namespace flux
