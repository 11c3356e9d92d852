// Plan: where every value and gradient of a graph lies, decided once when a Net is compiled.
//
// Why: nothing is allocated and nothing is copied needlessly per step. Inputs of a concat become
// slices of its output where that is sound; gradients follow when concat is the only consumer;
// what leads to nothing trainable (the dense features) gets no gradient at all; a relu before a
// single consumer that can do so is folded into that consumer's gradient; and a gradient takes the
// place of its value where nobody needs the value any more, which halves what the caches must hold.
// Memory comes from the Net; kernels hold views. One thread.
#pragma once

#include <vector>

#include "flux/nn/net_memory.h"
#include "flux/nn/operator.h"

namespace flux {

class Plan {
 public:
  Plan(const Graph& graph, Precision precision, uint32_t batch_max, NetMemory& memory);
  // What the kernel of node i needs.
  KernelArgs args(size_t i) const;

 private:
  struct Place {
    DType type = DType::kF32;
    int concat = -1;  // value lies in this concat's output, from column `begin`
    uint32_t begin = 0;
    bool shares_gradient = false;  // so does the gradient
    uint32_t gradient_width = 0;   // leading columns whose gradient is wanted
    bool relu_by_consumer = false;
    std::vector<uint32_t> consumers;
    Tensor value, gradient;
  };
  void choose_types();
  void choose_slices();
  void choose_gradients();
  bool gradient_may_replace_value(size_t i) const;
  bool output_unused_in_backward(size_t i) const;
  void allocate();
  Tensor allocate_tensor(uint32_t width, DType type);
  bool gradient_overwrites(size_t consumer, size_t position) const;

  const Graph& graph_;
  Precision precision_;
  uint32_t batch_max_;
  std::vector<Place> places_;
  NetMemory& memory_;
};

}  // namespace flux
