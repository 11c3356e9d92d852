// RowOperator<F>: the whole of an operator that turns the rows of one example into its output row,
// example by example, with or without trainable parameters.
//
// F is made from (graph, node), knows its shape, and has
//   template <typename T> void forward(const Row<T>& row) const;    // writes row.y
//   void backward(const RowGradient& row) const;                    // adds to row.dx and row.dp
//   size_t scratch() const;                                         // numbers wanted beside
//   static constexpr bool kNeedsOutput;                             // whether backward() reads y
// Deriving from RowFunction gives the last two. forward() runs in float for the net and in double
// as the reference, so it must be the plain formula; outside judges are the numeric derivatives of
// check_net() and the numbers of tests/compare.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "flux/nn/attribute_specs.h"
#include "flux/nn/operator.h"
#include "flux/nn/row_math.h"

namespace flux {

inline const Node& input_of(const Graph& graph, const Node& node, size_t i) {
  return graph.nodes()[node.inputs[i]];
}

// A parameter that begins with the same number everywhere.
inline void add_constant_parameter(InferContext& context, const std::string& name,
                                   std::vector<int64_t> shape, float value) {
  context.add_parameter(name, std::move(shape), 0).init = {InitKind::kConstant, value};
}

template <typename T>
struct Row {
  const T* const* x;  // of each input
  const T* p;         // the node's parameters, one after the other
  T* y;
  T* scratch;
};

struct RowGradient {
  const float* const* x;
  const float* p;
  const float* y;  // only if F::kNeedsOutput
  const float* dy;
  float* const* dx;  // of each input, never null; zero before
  float* dp;         // sums over some rows
  float* scratch;
};

struct RowFunction {
  static size_t scratch() { return 0; }
  static constexpr bool kNeedsOutput = false;
};

template <typename F>
class RowKernel : public Kernel {
 public:
  explicit RowKernel(const KernelArgs& args)
      : f_(args.graph, args.node),
        inputs_(args.inputs),
        out_(args.output),
        out_gradient_(args.output_gradient),
        y_(out_.width),
        dy_(out_.width),
        scratch_(f_.scratch()) {
    for (const KernelInput& input : inputs_) {
      x_.emplace_back(input.value.width);
      dx_.emplace_back(input.value.width);
      x_rows_.push_back(nullptr);
      dx_rows_.push_back(dx_.back().data());
    }
    for (const uint32_t p : args.node.parameters) {
      const Parameter& parameter = args.graph.parameters()[p];
      if (parameter_count_ == 0) offset_ = parameter.offset;
      parameter_count_ += parameter.size;
    }
    if (parameter_count_ > 0) sums_ = RowSums(&args.memory, args.batch_max, parameter_count_);
  }

  void set_parameters(const float* flat) override { parameters_ = flat + offset_; }
  void forward(Step& step) override {
    for (uint32_t b = step.first; b < step.end; ++b) {
      read_inputs(b);
      float* y = out_.type == DType::kF32 ? out_.f32(b) : y_.data();
      f_.template forward<float>({x_rows_.data(), parameters_, y, scratch_.data()});
      if (y == y_.data()) write_row(out_, b, y, false);
    }
  }
  void backward(Step& step) override {
    for_sum_rows(step.first, step.end, [&](uint32_t begin, uint32_t end) {
      float* dp = parameter_count_ == 0 ? nullptr : sums_.clear_part(begin);
      for (uint32_t b = begin; b < end; ++b) backward_row(b, dp);
    });
  }
  uint32_t sum_parts(uint32_t) const override { return parameter_count_ == 0 ? 0 : sums_.pieces(); }
  void sum(Step& step, uint32_t part) override {
    sums_.add_up(step.batch, part, step.gradients->parameters + offset_);
  }

 private:
  void backward_row(uint32_t b, float* dp) {
    read_inputs(b);
    clear_gradients(b);
    const float* y = F::kNeedsOutput ? read_row(out_, b, y_.data()) : nullptr;
    const float* dy = read_row(out_gradient_, b, dy_.data());
    f_.backward({x_rows_.data(), parameters_, y, dy, dx_rows_.data(), dp, scratch_.data()});
    for (size_t i = 0; i < inputs_.size(); ++i)
      if (inputs_[i].gradient && !in_place(inputs_[i]))
        write_row(inputs_[i].gradient, b, dx_[i].data(), inputs_[i].add);
  }

  void read_inputs(uint32_t b) {
    for (size_t i = 0; i < inputs_.size(); ++i)
      x_rows_[i] = read_row(inputs_[i].value, b, x_[i].data());
  }

  // Whether backward() may add up an input's gradient where it belongs.
  static bool in_place(const KernelInput& input) {
    return input.gradient && !input.add && input.gradient.type == DType::kF32 &&
           input.gradient.width == input.value.width;
  }
  void clear_gradients(uint32_t b) {
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (in_place(inputs_[i])) dx_rows_[i] = inputs_[i].gradient.f32(b);
      std::fill_n(dx_rows_[i], dx_[i].size(), 0.0F);
    }
  }

  F f_;
  std::vector<KernelInput> inputs_;
  Tensor out_, out_gradient_;
  std::vector<std::vector<float>> x_, dx_;
  std::vector<const float*> x_rows_;
  std::vector<float*> dx_rows_;
  std::vector<float> y_, dy_, scratch_;
  const float* parameters_ = nullptr;
  size_t offset_ = 0, parameter_count_ = 0;
  RowSums sums_;
};

template <typename F>
void row_reference(const ReferenceCall& call) {
  const F f(call.graph, call.node);
  std::vector<double> scratch(f.scratch());
  std::vector<const double*> x(call.inputs.size());
  const double* p = call.node.parameters.empty() ? nullptr : call.parameter(0);
  for (size_t b = 0; b < call.batch; ++b) {
    for (size_t i = 0; i < x.size(); ++i) x[i] = call.inputs[i] + b * call.input_width(i);
    f.template forward<double>({x.data(), p, call.output + b * call.node.width, scratch.data()});
  }
}

template <typename F>
OperatorDef row_operator(const char* name, const char* doc, int inputs_min, int inputs_max,
                         Status (*infer)(InferContext&), std::vector<AttrSpec> attrs = {}) {
  OperatorDef def;
  def.info = {name, doc, inputs_min, inputs_max, std::move(attrs)};
  def.infer = infer;
  def.reference = row_reference<F>;
  if (!F::kNeedsOutput) def.forgets_output = [](const Node&) { return true; };
  def.make_kernel = [](const KernelArgs& args) -> Result<std::unique_ptr<Kernel>> {
    return std::unique_ptr<Kernel>(new RowKernel<F>(args));
  };
  return def;
}

}  // namespace flux
