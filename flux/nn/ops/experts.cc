// experts: several fully connected layers of one size, each with its own weights (MMoE, PLE). All
// see the whole input; or, with own_position, each sees its own position of [B,E,d], as a further
// layer of the same experts.
#include <algorithm>
#include <cmath>

#include "flux/nn/attribute_specs.h"
#include "flux/nn/inner_fc.h"

namespace flux {
namespace {

Status infer(InferContext& context) {
  const Node& input = *context.inputs[0];
  const int64_t experts = context.node.int_attr("experts");
  const int64_t units = context.node.int_attr("units");
  const bool own = context.node.bool_attr("own_position");
  if (own && input.length != experts)
    return context.fail(
        fmt::format("the input must have one position for each of the {} experts, got {}", experts,
                    context.shapes()));
  const int64_t in = own ? input.dim() : input.width;
  const float range = std::sqrt(1.0F / static_cast<float>(in));
  for (int64_t e = 0; e < experts; ++e) {
    context.add_parameter(fmt::format("weight{}", e), {in, units}, range);
    context.add_parameter(fmt::format("bias{}", e), {units}, range);
  }
  context.node.length = static_cast<uint32_t>(experts);
  context.node.width = static_cast<uint32_t>(experts * units);
  return Status::ok();
}

// Columns [begin, begin + width) of a gradient of which perhaps only the head is wanted.
Tensor gradient_part(const Tensor& gradient, uint32_t begin, uint32_t width) {
  if (!gradient || gradient.width <= begin) return {};
  return slice(gradient, begin, std::min(width, gradient.width - begin));
}

class ExpertsKernel : public InnerFcs {
 public:
  Status make(const KernelArgs& args) {
    const Node& input = args.graph.nodes()[args.node.inputs[0]];
    const bool own = args.node.bool_attr("own_position");
    const uint32_t units = args.node.dim(), in = own ? input.dim() : input.width;
    for (uint32_t e = 0; e < args.node.length; ++e) {
      InnerFc fc;
      fc.input = args.inputs[0];
      if (own) {
        fc.input.value = slice(fc.input.value, e * in, in);
        fc.input.gradient = gradient_part(fc.input.gradient, e * in, in);
      } else if (e + 1 < args.node.length) {
        fc.input.add = true;  // backward() runs from the last expert to the first
      }
      fc.output = slice(args.output, e * units, units);
      fc.output_gradient = slice(args.output_gradient, e * units, units);
      fc.activation = args.node.text_attr("activation") == "relu" ? "relu" : "none";
      fc.parameters = {args.node.parameters[2 * e], args.node.parameters[2 * e + 1]};
      FLUX_RETURN_IF_ERROR(add_inner(args, fc));
    }
    return Status::ok();
  }
  void forward(Step& step) override {
    for (auto& expert : inner_) expert->forward(step);
  }
  void backward(Step& step) override {
    for (size_t e = inner_.size(); e-- > 0;) inner_[e]->backward(step);
  }
};

void reference(const ReferenceCall& call) {
  const Node& input = call.graph.nodes()[call.node.inputs[0]];
  const bool own = call.node.bool_attr("own_position");
  const uint32_t experts = call.node.length, units = call.node.dim();
  const uint32_t in = own ? input.dim() : input.width;
  const bool relu = call.node.text_attr("activation") == "relu";
  for (uint32_t b = 0; b < call.batch; ++b) {
    for (uint32_t e = 0; e < experts; ++e) {
      const double* x = call.inputs[0] + b * input.width + (own ? e * in : 0);
      for (uint32_t u = 0; u < units; ++u) {
        double z = call.parameter(2 * e + 1)[u];
        for (uint32_t k = 0; k < in; ++k) z += x[k] * call.parameter(2 * e)[k * units + u];
        call.output[(b * experts + e) * units + u] = relu ? std::max(z, 0.0) : z;
      }
    }
  }
}

}  // namespace

OperatorDef operator_experts() {
  OperatorDef def;
  def.info = {
      "experts",
      "Several fc layers of the same input, each with its own weights: [B,E,units].",
      1,
      1,
      {required(int_attribute("experts", 2, 1, 256, "how many there are")),
       required(int_attribute("units", 1, 1, 65536, "width of each one's output")),
       choice_attribute("activation", {"relu", "none"}, "applied to the output"),
       bool_attribute("own_position", false, "whether each sees only its position of [B,E,d]")}};
  def.infer = infer;
  def.reference = reference;
  def.forgets_output = [](const Node& node) { return node.text_attr("activation") == "none"; };
  def.wants_bf16 = [](const Node& node, const Node& input) {
    return static_cast<uint64_t>(node.dim()) * input.width >= 256;
  };
  def.make_kernel = [](const KernelArgs& args) -> Result<std::unique_ptr<Kernel>> {
    auto kernel = std::make_unique<ExpertsKernel>();
    FLUX_RETURN_IF_ERROR(kernel->make(args));
    return std::unique_ptr<Kernel>(std::move(kernel));
  };
  return def;
}

}  // namespace flux
