// loss_operator<F>: the whole of a loss that looks at each example alone. Its inputs are
// F::kValues values, then the label if F::kLabel, then perhaps the example's weight [B,1].
//
// F is made from (graph, node) and has
//   template <typename T> T loss(const T* const* x, T label, T* prediction) const;
//   void gradient(const float* const* x, float label, float* const* dx) const;  // writes all of dx
//   static constexpr size_t kValues; static constexpr bool kLabel;
//   size_t values() const;   // only if it may have more than kValues
// The net reports the sum of weight * loss and descends along its mean.
#pragma once

#include <memory>
#include <vector>

#include "flux/nn/attribute_specs.h"
#include "flux/nn/loss_inputs.h"
#include "flux/nn/operator.h"
#include "flux/nn/row_operator.h"

namespace flux {

template <typename F>
size_t loss_values(const F& f) {
  if constexpr (requires { f.values(); }) return f.values();
  return F::kValues;
}
// Where among the inputs the example's weight is.
template <typename F>
size_t weight_input(const F& f) {
  return loss_values(f) + (F::kLabel ? 1 : 0);
}

template <typename F>
class RowLossKernel : public Kernel {
 public:
  explicit RowLossKernel(const KernelArgs& args)
      : f_(args.graph, args.node),
        inputs_(args.inputs.begin(),
                args.inputs.begin() + static_cast<std::ptrdiff_t>(loss_values(f_))),
        weights_(args, weight_input(f_)),
        head_(args.head),
        head_weight_(args.head_weight) {
    if (F::kLabel)
      label_ = static_cast<size_t>(label_column(args.graph.nodes()[args.node.inputs[F::kValues]]));
    for (const KernelInput& input : inputs_) {
      values_.emplace_back(input.value.width);
      gradients_.emplace_back(input.value.width);
      x_.push_back(nullptr);
      dx_.push_back(gradients_.back().data());
    }
  }

  void forward(Step& step) override {
    float* predictions = step.head_predictions(head_);
    for_sum_rows(step.first, step.end, [&](uint32_t begin, uint32_t end) {
      double sum = 0;
      for (uint32_t b = begin; b < end; ++b) {
        read_inputs(b);
        float prediction = 0;
        const float loss = f_.template loss<float>(x_.data(), label(step, b), &prediction);
        sum += loss * weights_.of(b);
        if (predictions != nullptr) predictions[b] = prediction;
      }
      if (!F::kLabel || step.input->labels != nullptr) step.set_loss(head_, begin, sum);
    });
  }
  void backward(Step& step) override {
    const float scale = head_weight_ / static_cast<float>(step.batch);
    for (uint32_t b = step.first; b < step.end; ++b) {
      read_inputs(b);
      f_.gradient(x_.data(), label(step, b), dx_.data());
      const float by = scale * weights_.of(b);
      for (size_t i = 0; i < inputs_.size(); ++i) {
        if (!inputs_[i].gradient) continue;
        for (float& d : gradients_[i]) d *= by;
        write_row(inputs_[i].gradient, b, dx_[i], inputs_[i].add);
      }
    }
  }

 private:
  void read_inputs(uint32_t b) {
    for (size_t i = 0; i < inputs_.size(); ++i)
      x_[i] = read_row(inputs_[i].value, b, values_[i].data());
  }
  float label(const Step& step, uint32_t b) const {
    const float* labels = step.input->labels;
    return F::kLabel && labels != nullptr ? labels[label_ * step.batch + b] : 0.0F;
  }

  F f_;
  std::vector<KernelInput> inputs_;
  LossWeights weights_;
  uint32_t head_;
  float head_weight_;
  size_t label_ = 0;
  std::vector<std::vector<float>> values_, gradients_;
  std::vector<const float*> x_;
  std::vector<float*> dx_;
};

template <typename F>
void row_loss_reference(const ReferenceCall& call) {
  const F f(call.graph, call.node);
  std::vector<const double*> x(loss_values(f));
  for (uint32_t b = 0; b < call.batch; ++b) {
    for (size_t i = 0; i < x.size(); ++i)
      x[i] = call.inputs[i] + static_cast<size_t>(b) * call.input_width(i);
    const double label = F::kLabel ? call.inputs[F::kValues][b] : 0;
    const double loss = f.template loss<double>(x.data(), label, call.predictions + b);
    call.output[b] = loss * loss_weight(call, weight_input(f), b);
  }
}

// The last input of a loss without a label may be the example's weight.
inline Status check_loss_weight(const InferContext& context, size_t input) {
  if (context.inputs.size() <= input) return Status::ok();
  const Node& weight = *context.inputs[input];
  if (weight.width == 1 && !weight.trainable) return Status::ok();
  return context.fail(fmt::format("the weight must be [B,1] and depend on the data alone, got {}",
                                  context.shapes()));
}

// Everything that a loss has but its kernel and its reference.
inline OperatorDef loss_def(const char* name, const char* doc, int values, bool label,
                            Status (*infer)(InferContext&), std::vector<AttrSpec> attrs) {
  OperatorDef def;
  const int inputs = values + (label ? 1 : 0);
  attrs.push_back(loss_weight_attribute());
  def.info = {name, doc, inputs, inputs + 1, std::move(attrs)};
  def.infer = infer;
  def.is_loss = true;
  def.label_input = label ? values : -1;
  return def;
}

template <typename F>
OperatorDef loss_operator(const char* name, const char* doc, Status (*infer)(InferContext&),
                          std::vector<AttrSpec> attrs = {}) {
  OperatorDef def = loss_def(name, doc, F::kValues, F::kLabel, infer, std::move(attrs));
  def.reference = row_loss_reference<F>;
  def.make_kernel = [](const KernelArgs& args) -> Result<std::unique_ptr<Kernel>> {
    return std::unique_ptr<Kernel>(new RowLossKernel<F>(args));
  };
  return def;
}

// For losses of one number against a label.
inline Status infer_point_loss(InferContext& context) {
  FLUX_RETURN_IF_ERROR(check_loss_inputs(context, 1));
  context.node.width = 1;
  return Status::ok();
}
struct PointLoss {
  static constexpr size_t kValues = 1;
  static constexpr bool kLabel = true;
};

}  // namespace flux
