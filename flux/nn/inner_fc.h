// A fully connected part of a larger operator: its tensors (fp32 or bf16 like its input) and its
// kernel, made from the operator's own parameters.
// One thread, like its Net. Memory is the Net's.
#pragma once

#include <memory>

#include "flux/nn/fc_kernel.h"
#include "flux/nn/operator.h"

namespace flux {

struct InnerFc {
  KernelInput input;
  Tensor output, output_gradient;
  const char* activation = "none";
  std::vector<uint32_t> parameters;  // weight and perhaps bias, of Graph::parameters()
};

// Rows of `width` numbers, as the planner would place them.
inline Tensor allocate_rows(const KernelArgs& args, uint32_t width, DType type) {
  const uint32_t stride = (width + 31) / 32 * 32;
  const size_t bytes = static_cast<size_t>(stride) * args.batch_max * dtype_size(type);
  return {args.memory.allocate(bytes), width, stride, type};
}

inline Result<std::unique_ptr<Kernel>> make_inner_fc(const KernelArgs& outer, const InnerFc& fc) {
  Node node = outer.node;
  node.attrs["activation"] = std::string(fc.activation);
  node.parameters = fc.parameters;
  const KernelArgs args{outer.graph,        node,         outer.precision,
                        outer.batch_max,    outer.memory, fc.output,
                        fc.output_gradient, false,        {fc.input}};
  return make_fc_kernel(args);
}

}  // namespace flux
