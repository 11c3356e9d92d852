// Fully connected parts of a larger operator: their tensors (fp32 or bf16 like their inputs) and
// their kernels, made from the operator's own parameters.
// Threads: as Kernel; each member of the team has inner kernels of its own. Memory is the Net's.
#pragma once

#include <memory>
#include <utility>
#include <vector>

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

// The fully connected kernels of one operator. Rows go through them as the operator says; what is
// cut into parts follows from them alone, one kernel after the other.
class InnerFcs : public Kernel {
 public:
  void set_parameters(const float* flat) override {
    for (auto& one : inner_) one->set_parameters(flat);
  }
  uint32_t pack_parts() const override {
    uint32_t parts = 0;
    for (const auto& one : inner_) parts += one->pack_parts();
    return parts;
  }
  void pack(uint32_t part) override {
    for (auto& one : inner_) {
      if (part < one->pack_parts()) return one->pack(part);
      part -= one->pack_parts();
    }
  }
  uint32_t sum_parts(uint32_t batch) const override {
    uint32_t parts = 0;
    for (const auto& one : inner_) parts += one->sum_parts(batch);
    return parts;
  }
  void sum(Step& step, uint32_t part) override {
    for (auto& one : inner_) {
      if (part < one->sum_parts(step.batch)) return one->sum(step, part);
      part -= one->sum_parts(step.batch);
    }
  }

 protected:
  // Adds a kernel; every member of the team adds the same ones in the same order.
  Status add_inner(const KernelArgs& outer, const InnerFc& fc) {
    Node node = outer.node;
    node.attrs["activation"] = std::string(fc.activation);
    node.parameters = fc.parameters;
    KernelArgs args{outer.graph,        node,         outer.precision,
                    outer.batch_max,    outer.memory, fc.output,
                    fc.output_gradient, false,        {fc.input}};
    args.members = outer.members;
    args.inner = true;
    if (outer.first != nullptr)
      args.first = static_cast<const InnerFcs*>(outer.first)->inner_[inner_.size()].get();
    FLUX_ASSIGN_OR_RETURN(auto kernel, make_fc_kernel(args));
    inner_.push_back(std::move(kernel));
    return Status::ok();
  }
  std::vector<std::unique_ptr<Kernel>> inner_;
};

}  // namespace flux
